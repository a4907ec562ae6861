"""Answers from passages without a platform: near is what shares words, unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from builtin_plugins.extractive_answers.answering import answer
from builtin_plugins.rag.answering.matching import asked_words, quotable
from builtin_plugins.rag.answering.words import content_stems, found_in
from builtin_plugins.rag.api import Support
from builtin_plugins.rag.passages import Passage


def passages(*texts: str) -> list[Passage]:
    """Passages of documents of their own, the best first."""
    return [Passage(text, f"{n}.txt", 0.6 - n / 100, str(n), str(n)) for n, text in enumerate(texts, start=1)]


def judged(question: str, given: Sequence[Passage], language: str | None = None) -> Support:
    """What the plugin makes of a question and its passages."""
    measured = [
        one if one.near is not None else replace(one, near=_share(question, one.text)) for one in given
    ]
    asked = asked_words(question, language)
    return answer(asked, quotable(asked, measured))


def quoted(question: str, *texts: str) -> str:
    """What is quoted first; empty for a refusal."""
    found = judged(question, passages(*texts))
    return found.quotes[0].text if found.is_enough else ""


def _share(question: str, text: str) -> float:
    wanted, there = content_stems(question, "en"), content_stems(text, "en")
    return sum(found_in(word, there) for word in wanted) / len(wanted) if wanted else 0.0
