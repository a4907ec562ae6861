"""Decides whether passages support a question at all, before anybody answers it.

A logistic model over a few signals. Its weights follow ``tests/benchmarks/support.py --fit`` on one half of
``tests/benchmarks/data/support.json``; signals, floors and thresholds were chosen by hand with both halves in
view, so its figures flatter a little. Thresholds prefer an answer too many to a refusal too many. Cosines are
those of all-MiniLM-L6-v2: another embedding model needs its own weights.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from builtin_plugins.rag.answering.expectations import offers
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.sentences import split_sentences
from builtin_plugins.rag.answering.words import (
    LEAST_SHARED,
    Initials,
    content_stems,
    fold,
    found_in,
    named_terms,
)


@dataclass(frozen=True, slots=True)
class Scored:
    """A sentence and its cosine to the question, -1..1."""

    text: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for an answer.

    ``similarity`` is the best sentence's cosine, else the best passage's, else None. ``coverage`` and
    ``sentence_coverage`` are the share of the question's content words in the best passage and in the best
    sentence. ``missing_name``: a name, code or number of the question is in no passage. ``wrong_kind``: the
    best sentences have nothing of the kind that is asked for (number, time, name).
    """

    similarity: float | None
    per_sentence: bool
    coverage: float
    sentence_coverage: float
    missing_name: bool
    wrong_kind: bool
    has_words: bool


@dataclass(frozen=True, slots=True)
class Support:
    """The decision, its probability 0..1 and the evidence behind it."""

    supported: bool
    score: float
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Weights:
    """A logistic model: weights of the evidence, and the probability from which it is enough.

    Below ``floor`` similarity, and below ``WEAK`` similarity with next to none of the question's words,
    nothing is supported: one shared word makes no answer.
    """

    bias: float
    similarity: float
    coverage: float
    sentence_coverage: float
    missing_name: float
    wrong_kind: float
    threshold: float
    floor: float


WEAK = 0.35
FEW_WORDS = 0.3
BY_SENTENCE = Weights(-2.1, 2.1, 1.5, 1.8, -1.7, -1.4, threshold=0.24, floor=0.25)
BY_PASSAGE = Weights(-1.8, 1.3, 1.6, 2.0, -1.7, -1.4, threshold=0.24, floor=0.15)
BY_WORDS = Weights(-1.4, 0.0, 1.8, 2.1, -1.7, -1.4, threshold=0.30, floor=0.0)


def assess(
    question: str,
    passages: Sequence[Passage],
    *,
    cosines: Sequence[float] | None = None,
    sentences: Sequence[Scored] | None = None,
    coverage: Coverage | None = None,
) -> Support:
    """Whether ``passages`` can answer ``question``.

    ``sentences`` (of the passages, scored) decide best; ``cosines``, one for each passage, decide less well;
    without both, words alone decide. A question without one content word is never supported.
    """
    evidence = gather(question, passages, cosines=cosines, sentences=sentences, coverage=coverage)
    score = probability(evidence, weights_for(evidence))
    return Support(bool(passages) and judge(evidence), round(score, 4), evidence)


def judge(evidence: Evidence) -> bool:
    """The decision on evidence that was gathered before."""
    weights = weights_for(evidence)
    return not _hopeless(evidence) and probability(evidence, weights) >= weights.threshold


def _hopeless(evidence: Evidence) -> bool:
    """Whether nothing could make an answer of it: no word asked for, or nothing near."""
    weights = weights_for(evidence)
    similarity = evidence.similarity or 0.0
    weak = similarity < WEAK and evidence.coverage < FEW_WORDS
    return not evidence.has_words or similarity < weights.floor or weak


def gather(
    question: str,
    passages: Sequence[Passage],
    *,
    cosines: Sequence[float] | None = None,
    sentences: Sequence[Scored] | None = None,
    coverage: Coverage | None = None,
) -> Evidence:
    """The evidence that ``assess`` weighs. ``coverage`` is that of an earlier call for the same question."""
    covered = coverage or Coverage(question)
    coverage_of_passages = max((covered.of_context(passage) for passage in passages), default=0.0)
    ranked = _ranked(covered, passages, sentences)
    similarities = [sentence.similarity for sentence in sentences] if sentences else list(cosines or ())
    return Evidence(
        similarity=max(similarities, default=None),
        per_sentence=bool(sentences),
        coverage=coverage_of_passages,
        sentence_coverage=max((covered.of(text) for text in ranked[:_NEAR]), default=0.0),
        missing_name=covered.lacks_name(passages),
        wrong_kind=not offers(question, " ".join(ranked[:_BEST])),
        has_words=bool(covered.wanted),
    )


def weights_for(evidence: Evidence) -> Weights:
    """The model for the kind of similarity that there is."""
    if evidence.similarity is None:
        return BY_WORDS
    return BY_SENTENCE if evidence.per_sentence else BY_PASSAGE


def probability(evidence: Evidence, weights: Weights) -> float:
    """The logistic model's probability, 0..1."""
    logit = (
        weights.bias
        + weights.similarity * (evidence.similarity or 0.0)
        + weights.coverage * evidence.coverage
        + weights.sentence_coverage * evidence.sentence_coverage
        + weights.missing_name * evidence.missing_name
        + weights.wrong_kind * evidence.wrong_kind
    )
    return 1.0 / (1.0 + math.exp(-logit))


_BEST = 2
_NEAR = 12
_NAME_JOINTS = re.compile(r"[\W_]+")


def _ranked(covered: Coverage, passages: Sequence[Passage], scored: Sequence[Scored] | None) -> list[str]:
    """Sentences, those nearest to the question first."""
    if scored:
        return [sentence.text for sentence in sorted(scored, key=lambda one: one.similarity, reverse=True)]
    texts = [text for passage in passages for text in covered.sentences(passage.text)]
    return sorted(texts, key=covered.of, reverse=True)


class _Read:
    """A text as its words are compared."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._folded = fold(text)
        self._initials = Initials(text)

    def has(self, word: str) -> bool:
        """Whether a form of the word is there."""
        return self.may_have(word) and found_in(word, self._stems)

    def spells(self, word: str) -> bool:
        """Whether the word's long form is there."""
        return self._initials.spell(word)

    def may_have(self, word: str) -> bool:
        """Whether it is worth a closer look: forms of a word begin alike, and numbers differ in commas."""
        return word[:LEAST_SHARED] in self._folded or word in self._without_commas

    @cached_property
    def _without_commas(self) -> str:
        return self._folded.replace(",", "")

    @cached_property
    def _stems(self) -> frozenset[str]:
        return frozenset(content_stems(self._text))


class Coverage:
    """The share of a question's content words that a text has; each text is read once."""

    def __init__(self, question: str) -> None:
        self.wanted = content_stems(question)
        self._names = named_terms(question)
        self._read: dict[str, _Read] = {}
        self._found: dict[str, frozenset[str]] = {}
        self._sentences: dict[str, list[str]] = {}

    def sentences(self, text: str) -> list[str]:
        """The sentences of a passage."""
        if text not in self._sentences:
            self._sentences[text] = [sentence.text for sentence in split_sentences(text)]
        return self._sentences[text]

    def of(self, sentence: str) -> float:
        if sentence not in self._found:
            read = self._reading(sentence)
            has = (word for word in self.wanted if read.has(word) or read.spells(word))
            self._found[sentence] = frozenset(has)
        return self._share(sentence)

    def of_context(self, passage: Passage) -> float:
        """Of a passage with its document's name. Its sentences are read on the way."""
        context = _context(passage)
        if context not in self._found:
            self._found[context] = self._in_context(context, self.sentences(passage.text))
        return self._share(context)

    def lacks_name(self, passages: Sequence[Passage]) -> bool:
        """Whether a name, code or number of the question is in none of the passages."""
        return self.unnamed(passages) > 0.0

    def unnamed(self, passages: Sequence[Passage]) -> float:
        """The share of the question's names, codes and numbers that none of the passages has."""
        read = [self._reading(_context(passage)) for passage in passages]
        missing = [name for name in self._names if not any(one.has(name) or one.spells(name) for one in read)]
        return len(missing) / len(self._names) if self._names else 0.0

    def _in_context(self, context: str, sentences: Sequence[str]) -> frozenset[str]:
        """What a passage has; what its sentences have, and no other, is looked for only there."""
        whole = self._reading(context)
        spelled = [word for word in self.wanted if whole.spells(word)]
        possible = [word for word in self.wanted if whole.may_have(word)]
        known = set(spelled)
        for sentence in sentences:
            read = self._reading(sentence)
            has = {word for word in possible if read.has(word)}
            has.update(word for word in spelled if read.spells(word))
            self._found[sentence] = frozenset(has)
            known |= has
        known.update(word for word in possible if word not in known and whole.has(word))
        return frozenset(known)

    def _share(self, text: str) -> float:
        return len(self._found[text]) / len(self.wanted) if self.wanted else 0.0

    def _reading(self, text: str) -> _Read:
        if text not in self._read:
            self._read[text] = _Read(text)
        return self._read[text]


def _context(passage: Passage) -> str:
    """A document's name often says what its passages leave unsaid."""
    return f"{_NAME_JOINTS.sub(' ', passage.source)} {passage.text}"
