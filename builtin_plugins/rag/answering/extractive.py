"""An answer without a model runtime: the passages' own best-fitting sentences, each with its source.

Three steps, so that a caller can embed between them without blocking: ``candidates`` picks sentences worth
scoring, somebody scores them, ``compose`` decides and writes. ``answer`` does all three.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from builtin_plugins.rag.answering.calibration import BY_MEANING, BY_WORDS, Calibration, Signs
from builtin_plugins.rag.answering.expectations import fits, needs_reckoning
from builtin_plugins.rag.answering.passages import Answer, Passage
from builtin_plugins.rag.answering.refusing import refusal_in
from builtin_plugins.rag.answering.sentences import Sentence, split_sentences
from builtin_plugins.rag.answering.support import Scored, assess, gather
from builtin_plugins.rag.answering.words import content_stems, found_in, has_number, words

ScoreSentences = Callable[[str, Sequence[str]], Sequence[float]]
DEPTH = 5
"""Passages that an answer is made from, however many are shown."""

MAX_SENTENCES = 3
MAX_CANDIDATES = 6
_ENOUGH_WORDS = 34
_SAME_WORDS = 0.7
_SAME_SHAPE = 0.5
_LONG = 40
_FAR = 0.1
_RANK_PRICE = 0.05
_LONGEST_HEADING = 80
_INNER_CITATION = re.compile(r"\[(\d+(?:\s*[,;–-]\s*\d+)*)\]")
_WIDE = "\u2e7f"  # ideographs and kana are above


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may be quoted, with its passage's 1-based position and its place there.

    ``overlap`` is its share of the question's words, rare ones counting more; ``joined`` that of the sentence
    together with the one before it and its heading: "It was founded in 1897" leaves out what was.
    """

    text: str
    passage: int
    start: int
    overlap: float
    joined: float
    stems: frozenset[str]
    is_row: bool
    order: int
    fits: int
    nearness: float


def answer(
    question: str, passages: Sequence[Passage], score_sentences: ScoreSentences | None = None
) -> Answer:
    """The best-supported 1 to 3 sentences, each followed by its citation ``[n]``.

    ``score_sentences`` gives each sentence's similarity to the question; without it, shared words decide
    alone.
    """
    found = candidates(question, passages)
    scores = score_sentences(question, [one.text for one in found]) if score_sentences and found else None
    return compose(question, passages, found, scores)


def candidates(
    question: str, passages: Sequence[Passage], limit: int = MAX_CANDIDATES, *, language: str | None = None
) -> list[Candidate]:
    """At most ``limit`` sentences worth scoring, each text once: overlapping chunks repeat sentences.

    Those that share words with the question come first, then those of better-ranked passages.
    ``language`` is the question's.
    """
    pieces = [
        piece for number, passage in enumerate(passages, 1) for piece in _pieces(question, number, passage)
    ]
    known = _Words(question, pieces, language)
    best = max((passage.score for passage in passages), default=0.0) or 1.0
    unique: dict[str, Candidate] = {}
    for piece in pieces:
        if piece.quotable:
            nearness = max(0.0, passages[piece.passage - 1].score / best)
            unique.setdefault(piece.text.casefold(), known.candidate(piece, nearness))
    return sorted(unique.values(), key=lambda one: (-_promise(one), one.passage, one.start))[:limit]


def compose(
    question: str,
    passages: Sequence[Passage],
    found: Sequence[Candidate],
    similarities: Sequence[float] | None = None,
    *,
    calibration: Calibration | None = None,
    shown: int | None = None,
    language: str | None = None,
) -> Answer:
    """The answer from scored candidates; one that says so where the passages don't support any.

    Only the first ``shown`` passages are quoted; all of them decide whether there is an answer.
    """
    scored = (
        [Scored(one.text, score) for one, score in zip(found, similarities, strict=True)]
        if similarities is not None
        else None
    )
    if not found or not _worth_answering(question, passages, scored):
        return Answer(refusal_in(language), (), supported=False)
    how = calibration or (BY_WORDS if scored is None else BY_MEANING)
    scores = worths(how, found, similarities)
    order = sorted(range(len(found)), key=lambda at: -scores[at])
    evidence = gather(question, passages, sentences=scored)
    signs = Signs.read(evidence, passages, found[order[0]], [scores[at] for at in order])
    confidence = how.confidence(signs)
    quotable = [at for at in order if shown is None or found[at].passage <= shown]
    unsure = scored is not None and confidence < how.least
    if unsure or not quotable or _leaves_reckoning(question, found, found[order[0]]):
        return Answer(refusal_in(language), (), supported=False)
    picked = _pick(
        _numbers(question), [found[at] for at in quotable], [scores[at] for at in quotable], how.near
    )
    text = " ".join(f"{_quotable(one.text)} [{one.passage}]" for one in picked)
    cited = tuple(sorted({one.passage for one in picked}))
    return Answer(text, cited, supported=True, confidence=confidence)


def _worth_answering(question: str, passages: Sequence[Passage], scored: Sequence[Scored] | None) -> bool:
    """By words alone the older measure decides; meanings are left to the calibration."""
    if scored is None:
        return assess(question, passages).supported
    return bool(content_stems(question)) and max((one.similarity for one in scored), default=0.0) >= _FAR


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence on its way to a candidate; ``before`` and ``heading`` are what it may refer to."""

    text: str
    passage: int
    start: int
    stems: frozenset[str]
    around: frozenset[str]
    is_row: bool
    order: int
    quotable: bool


def _pieces(question: str, number: int, passage: Passage) -> Iterator[_Piece]:
    """The sentences of one passage, each with the words of its heading and of the sentence before it."""
    heading, before, first = Sentence("", 0), frozenset[str](), False
    for order, sentence in enumerate(split_sentences(passage.text)):
        stems = frozenset(content_stems(sentence.text))
        if sentence.is_heading:
            heading, before, first = sentence, frozenset(), True
            yield _Piece(sentence.text, number, sentence.start, stems, stems, False, order, quotable=False)
            continue
        text = sentence.text
        if first and not sentence.is_row and len(heading.text) <= _LONGEST_HEADING:
            text = _below(question, heading.text, text)
        around = stems | before | frozenset(content_stems(heading.text))
        yield _Piece(text, number, sentence.start, stems, around, sentence.is_row, order, bool(stems))
        before, first = stems, False


def _below(question: str, heading: str, text: str) -> str:
    """A paragraph's first sentence with the name it stands under, where that is news to who asks."""
    known = {word.casefold() for word in (*words(question), *words(text))}
    missing = any(word.casefold() not in known for word in words(heading))
    is_code = any(not char.isalnum() and not char.isspace() for char in heading) and heading not in question
    return f"{heading.rstrip(' :')}: {text}" if missing or is_code else text


class _Words:
    """The question's words, weighed by how few of the sentences have them."""

    def __init__(self, question: str, pieces: Sequence[_Piece], language: str | None) -> None:
        self._question = question
        self._wanted = content_stems(question, language) or content_stems(question)
        held = [sum(found_in(word, piece.stems) for piece in pieces) for word in self._wanted]
        raw = [math.log1p((len(pieces) - count + 0.5) / (count + 0.5)) for count in held]
        total = sum(raw) or 1.0
        self._weights = [one / total for one in raw]

    def candidate(self, piece: _Piece, nearness: float) -> Candidate:
        return Candidate(
            piece.text,
            piece.passage,
            piece.start,
            self._share(piece.stems),
            self._share(piece.around),
            piece.stems,
            piece.is_row,
            piece.order,
            fits(self._question, piece.text),
            nearness,
        )

    def _share(self, stems: frozenset[str]) -> float:
        pairs = zip(self._wanted, self._weights, strict=True)
        return sum(weight for word, weight in pairs if found_in(word, stems))


def _promise(one: Candidate) -> float:
    """What speaks for scoring a sentence, before its meaning is known."""
    return one.overlap + one.joined + 0.3 * one.fits - _RANK_PRICE * 4 * (one.passage - 1)


def worths(how: Calibration, found: Sequence[Candidate], similarities: Sequence[float] | None) -> list[float]:
    """What each candidate is worth as an answer."""
    rows = features(found, similarities)
    return [how.sentence(row) - _fragment_price(one) for row, one in zip(rows, found, strict=True)]


def features(found: Sequence[Candidate], similarities: Sequence[float] | None) -> list[tuple[float, ...]]:
    """Of each candidate: similarity, what it gains from the sentence before it, words, kind, rank, length."""
    near = list(similarities) if similarities is not None else [0.0] * len(found)
    known = {(one.passage, one.order): similarity for one, similarity in zip(found, near, strict=True)}
    made = list[tuple[float, ...]]()
    for one, similarity in zip(found, near, strict=True):
        carried = max(0.0, known.get((one.passage, one.order - 1), 0.0) - similarity)
        size = min(count_words(one.text), _LONG) / _LONG
        made.append((similarity, carried, one.overlap, one.joined, float(one.fits), one.nearness, size))
    return made


def _fragment_price(one: Candidate) -> float:
    """A chunk that begins in mid-sentence leaves half of one."""
    return 1.0 if one.start == 0 and one.text[0].islower() else 0.0


def count_words(text: str) -> int:
    """Words; two letters of a script without spaces count as one."""
    return sum(max(1, sum(char > _WIDE for char in word) // 2) for word in text.split())


def _leaves_reckoning(question: str, found: Sequence[Candidate], best: Candidate) -> bool:
    """Whether the question counts or compares, and several rows fit it equally well."""
    if not best.is_row or not needs_reckoning(question):
        return False
    return sum(one.is_row and one.overlap >= best.overlap - 1e-9 for one in found) > 1


def _numbers(question: str) -> frozenset[str]:
    return frozenset(word for word in content_stems(question) if has_number(word))


def _pick(
    numbers: frozenset[str], found: Sequence[Candidate], scores: Sequence[float], near: float
) -> list[Candidate]:
    """The best sentence and those nearly as good that add to it, in an order that reads well."""
    best, picked, room = found[0], [found[0]], _ENOUGH_WORDS - count_words(found[0].text)
    for one, score in zip(found[1:], scores[1:], strict=True):
        if len(picked) == MAX_SENTENCES or score < scores[0] - near or room <= 0:
            break
        if _is_sibling(one, best, numbers) or any(_repeats(one, other) for other in picked):
            continue
        picked.append(one)
        room -= count_words(one.text)
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
