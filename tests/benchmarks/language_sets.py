"""Paragraphs in ten languages, with questions that name their paragraph and words of their answer.

`towns` are made from sentences in `data/languages.json`: seven paragraphs about each of twenty invented
towns, told apart by the town's name and the subject. `articles` are encyclopaedic paragraphs, written for
this project. Both are free of others' rights.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from builtin_plugins.rag.answering.languages import LanguageDetector
from builtin_plugins.vectors.text import InLanguage
from tests.benchmarks.evaluation_sets import DATA

LANGUAGES = ("en", "de", "es", "ru", "zh", "ar", "hi", "tr", "vi", "th")
ARTICLE_LANGUAGES = ("en", "de", "es", "ru", "zh", "tr")


@dataclass(frozen=True)
class Asked:
    """A question, the paragraph that answers it (by place), and words that a right answer holds."""

    text: str
    paragraph: int
    expected: str


@dataclass(frozen=True)
class LanguageSet:
    language: str
    paragraphs: Sequence[str]
    questions: Sequence[Asked]


def towns(language: str) -> LanguageSet:
    """The same towns, facts and questions in each language."""
    data = json.loads((DATA / "languages.json").read_text(encoding="utf-8"))
    script = data["scripts"][language]
    chance, paragraphs, questions = random.Random(99), list[str](), list[Asked]()
    for name in data["names"][script]:
        for aspect in data["aspects"][language]:
            facts = {
                "n": name,
                "p": data["people"][script][chance.randrange(8)],
                "y": chance.randrange(1610, 1935),
                "a": chance.randrange(6, 99),
            }
            for question, expected in aspect["ask"]:
                questions.append(Asked(question.format(**facts), len(paragraphs), expected.format(**facts)))
            paragraphs.append(aspect["text"].format(**facts))
    return LanguageSet(language, paragraphs, questions)


def articles(language: str) -> LanguageSet:
    """Paragraphs of a few hundred words' length, each about something else."""
    entries: list[dict[str, Any]] = json.loads((DATA / "articles.json").read_text(encoding="utf-8"))[language]
    questions = [
        Asked(question, place, expected)
        for place, entry in enumerate(entries)
        for question, expected in entry["ask"]
    ]
    return LanguageSet(language, [entry["text"] for entry in entries], questions)


def told(paragraphs: Sequence[str]) -> list[InLanguage]:
    """The paragraphs as documents of their own, with the languages that are told of them."""
    detector = LanguageDetector()
    return [InLanguage(text, detector.of(text)) for text in paragraphs]
