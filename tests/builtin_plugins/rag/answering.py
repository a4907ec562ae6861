"""Answers from passages without a platform: near is what shares words, unless a test says otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from builtin_plugins.rag.answering.calibration import calibration_of
from builtin_plugins.rag.answering.candidate import Near
from builtin_plugins.rag.answering.coverage import subject_of
from builtin_plugins.rag.answering.extractive import candidates, compose
from builtin_plugins.rag.answering.passages import Answer, Passage
from builtin_plugins.rag.answering.weighing import Weighed, weigh
from builtin_plugins.rag.answering.words import content_stems, found_in

Score = Callable[[str, Sequence[str]], Sequence[float]]


def passages(*texts: str) -> list[Passage]:
    """Equally good passages of documents of their own."""
    return [Passage(text, f"{n}.txt", 0.5, str(n), str(n)) for n, text in enumerate(texts, start=1)]


def by_words(question: str, sentences: Sequence[str]) -> list[float]:
    """The share of words that a sentence has in common with the question."""
    wanted = content_stems(question)
    made = []
    for stems in map(content_stems, sentences):
        shared = sum(found_in(word, stems) for word in wanted)
        made.append(shared / math.sqrt(len(wanted) * len(stems)) if wanted and stems else 0.0)
    return made


def judged(question: str, given: Sequence[Passage], score: Score = by_words) -> Weighed:
    """What speaks for an answer."""
    found = candidates(question, given)
    texts, subject = [one.whole for one in found], subject_of(question, given)
    near = Near(score(question, texts), score(subject, texts) if subject else ())
    return weigh(question, given, found, near, calibration_of("all-minilm"))


def answer(question: str, given: Sequence[Passage], score: Score = by_words) -> Answer:
    """The answer or the refusal."""
    return compose(judged(question, given, score))
