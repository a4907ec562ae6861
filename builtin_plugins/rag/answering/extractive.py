"""An answer without a model runtime: the passages' own best-fitting sentences, each with its source.

Three steps, so that a caller can embed between them without blocking: ``candidates`` picks sentences worth
scoring, somebody scores them, ``compose`` decides and writes. ``answer`` does all three.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from builtin_plugins.rag.answering.expectations import offers
from builtin_plugins.rag.answering.passages import Answer, Passage
from builtin_plugins.rag.answering.sentences import split_sentences
from builtin_plugins.rag.answering.support import NOT_SUPPORTED, Scored, assess
from builtin_plugins.rag.answering.words import content_stems, found_in, has_number

ScoreSentences = Callable[[str, Sequence[str]], Sequence[float]]
MAX_SENTENCES = 4
MAX_CANDIDATES = 48
_SIMILARITY_SHARE = 0.6
_KIND_BONUS = 0.15
_RANK_PRICE = 0.02
_NEAR_BEST = 0.78
_SAME_WORDS = 0.7
_SAME_SHAPE = 0.5
_INNER_CITATION = re.compile(r"\[(\d+(?:\s*[,;–-]\s*\d+)*)\]")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may be quoted: its passage's 1-based position, its place, its share of the words."""

    text: str
    passage: int
    start: int
    overlap: float
    stems: frozenset[str]


def answer(
    question: str, passages: Sequence[Passage], score_sentences: ScoreSentences | None = None
) -> Answer:
    """The best-supported 1 to 4 sentences, each followed by its citation ``[n]``.

    ``score_sentences`` gives each sentence's cosine to the question; without it, shared words decide alone.
    """
    found = candidates(question, passages)
    scores = score_sentences(question, [one.text for one in found]) if score_sentences and found else None
    return compose(question, passages, found, scores)


def candidates(question: str, passages: Sequence[Passage], limit: int = MAX_CANDIDATES) -> list[Candidate]:
    """At most ``limit`` sentences worth scoring, each text once: overlapping chunks repeat sentences.

    Those that share words with the question come first, then those of better-ranked passages.
    """
    wanted = content_stems(question)
    unique: dict[str, Candidate] = {}
    for number, passage in enumerate(passages, start=1):
        for one in _of_passage(number, passage, wanted):
            unique.setdefault(one.text.casefold(), one)
    return sorted(unique.values(), key=lambda one: (-one.overlap, one.passage, one.start))[:limit]


def compose(
    question: str,
    passages: Sequence[Passage],
    found: Sequence[Candidate],
    similarities: Sequence[float] | None = None,
) -> Answer:
    """The answer from scored candidates; one that says so where the passages don't support any."""
    scored = (
        [Scored(one.text, score) for one, score in zip(found, similarities, strict=True)]
        if similarities is not None
        else None
    )
    if not found or not assess(question, passages, sentences=scored).supported:
        return Answer(NOT_SUPPORTED, (), supported=False)
    scores = [
        _score(question, one, None if similarities is None else similarities[at])
        for at, one in enumerate(found)
    ]
    picked = _pick(_numbers(question), found, scores)
    text = " ".join(f"{_quotable(one.text)} [{one.passage}]" for one in picked)
    return Answer(text, tuple(sorted({one.passage for one in picked})), supported=True)


def _of_passage(number: int, passage: Passage, wanted: list[str]) -> list[Candidate]:
    """Sentences of one passage. One gains a little from the one before: "It costs 5 EUR." has no topic."""
    made: list[Candidate] = []
    before = 0.0
    for sentence in split_sentences(passage.text):
        stems = content_stems(sentence.text)
        own = sum(found_in(word, stems) for word in wanted) / len(wanted) if wanted else 0.0
        if stems and not sentence.is_heading:
            overlap = max(own, 0.75 * own + 0.25 * before)
            made.append(Candidate(sentence.text, number, sentence.start, overlap, frozenset(stems)))
        before = own
    return made


def _score(question: str, one: Candidate, similarity: float | None) -> float:
    basis = one.overlap
    if similarity is not None:
        basis = _SIMILARITY_SHARE * similarity + (1 - _SIMILARITY_SHARE) * one.overlap
    bonus = _KIND_BONUS if offers(question, one.text) else 0.0
    return basis + bonus - _RANK_PRICE * min(one.passage - 1, 5) - _fragment_price(one)


def _fragment_price(one: Candidate) -> float:
    """A chunk that begins in mid-sentence leaves half of one."""
    return 0.1 if one.start == 0 and one.text[0].islower() else 0.0


def _numbers(question: str) -> frozenset[str]:
    return frozenset(word for word in content_stems(question) if has_number(word))


def _pick(numbers: frozenset[str], found: Sequence[Candidate], scores: Sequence[float]) -> list[Candidate]:
    """The best sentence and those nearly as good that add to it, in an order that reads well."""
    order = sorted(range(len(found)), key=lambda at: -scores[at])
    best = found[order[0]]
    order = [at for at in order if not _is_sibling(found[at], best, numbers)]
    enough = _NEAR_BEST * scores[order[0]]
    picked: list[Candidate] = []
    for at in order:
        if len(picked) == MAX_SENTENCES or scores[at] < enough:
            break
        if not any(_repeats(found[at], other) for other in picked):
            picked.append(found[at])
    return _readable(picked)


def _readable(picked: list[Candidate]) -> list[Candidate]:
    """The best sentence's passage first; within a passage, as written."""
    first = {one.passage: -rank for rank, one in reversed(list(enumerate(picked)))}
    return sorted(picked, key=lambda one: (-first[one.passage], one.start))


def _is_sibling(one: Candidate, best: Candidate, numbers: frozenset[str]) -> bool:
    """Whether a sentence says the same of another number: the row of the Aurora 2 below that of the 3."""
    if not numbers <= best.stems or numbers <= one.stems:
        return False
    return len(one.stems & best.stems) >= _SAME_SHAPE * len(one.stems | best.stems)


def _repeats(one: Candidate, other: Candidate) -> bool:
    """Whether two sentences say nearly the same, or one is a piece of the other.

    Numbers that differ make a different sentence of the same words.
    """
    if one.text.casefold() in other.text.casefold() or other.text.casefold() in one.text.casefold():
        return True
    shared, either = one.stems & other.stems, one.stems | other.stems
    differ = any(char.isdigit() for stem in one.stems ^ other.stems for char in stem)
    return not differ and len(shared) >= _SAME_WORDS * len(either)


def _quotable(text: str) -> str:
    """Bracketed numbers of the document itself would read as citations of ours."""
    plain = _INNER_CITATION.sub(r"(\1)", text).rstrip(" ,;:")
    return plain if plain[-1:] in '.!?…。！？"”»)' else f"{plain}."
