"""An answer without a model runtime: the passages' own best-fitting sentences, each with its source.

Three steps, so that a caller can embed between them without blocking: ``candidates`` picks sentences worth
scoring, somebody scores them, ``compose`` decides and writes. ``answer`` does all three.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from builtin_plugins.rag.answering.calibration import BY_MEANING, BY_WORDS, Calibration
from builtin_plugins.rag.answering.candidate import Candidate, count_words
from builtin_plugins.rag.answering.expectations import fits, needs_reckoning
from builtin_plugins.rag.answering.passages import Answer, Passage
from builtin_plugins.rag.answering.quoting import pick, quoted
from builtin_plugins.rag.answering.refusing import refusal_in
from builtin_plugins.rag.answering.sentences import Sentence, split_sentences
from builtin_plugins.rag.answering.signs import Signs
from builtin_plugins.rag.answering.support import Coverage, assess
from builtin_plugins.rag.answering.words import content_stems, found_in, has_number, words

ScoreSentences = Callable[[str, Sequence[str]], Sequence[float]]
DEPTH = 5
"""Passages that an answer is made from, however many are shown."""

MAX_CANDIDATES = 4  # two more would answer no better, and take half as long again
_LONG = 40
_RANK_PRICE = 0.05
_LONGEST_HEADING = 80


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
    ranked = sorted(unique.values(), key=lambda one: (-_promise(one), one.passage, one.start))
    return _with_first(ranked, limit)


def _with_first(ranked: Sequence[Candidate], limit: int) -> list[Candidate]:
    """The first so many; the best passage is among theirs, so that who is shown it alone gets an answer."""
    best, kept = min((one.passage for one in ranked), default=0), list(ranked[:limit])
    if kept and all(one.passage != best for one in kept):
        kept[-1] = next(one for one in ranked if one.passage == best)
    return kept


def compose(
    question: str,
    passages: Sequence[Passage],
    found: Sequence[Candidate],
    similarities: Sequence[float] | None = None,
    *,
    calibration: Calibration | None = None,
    places: Sequence[int | None] | None = None,
    language: str | None = None,
) -> Answer:
    """The answer from scored candidates; one that says so where the passages don't support any.

    ``places`` tell as which source each passage is cited (its own place where they are not given): those
    without one are not quoted. All passages decide whether there is an answer; if the best sentence is not to
    be quoted, the answer only names its passage.
    """
    how = calibration or (BY_WORDS if similarities is None else BY_MEANING)
    scores = worths(how, found, similarities)
    sure = _confidence(question, passages, found, similarities, scores, how, language) if found else None
    if sure is None:
        return Answer(refusal_in(language), (), supported=False)
    order = sorted(range(len(found)), key=lambda at: -scores[at])
    best, cited_as = found[order[0]], places or range(1, len(passages) + 1)
    if _leaves_reckoning(question, found, best):
        return Answer(refusal_in(language), (), supported=False)
    if cited_as[best.passage - 1] is None:
        return Answer("", (), supported=False, unshown=best.passage)
    quotable = [at for at in order if cited_as[found[at].passage - 1] is not None]
    picked = pick(
        _numbers(question), [found[at] for at in quotable], [scores[at] for at in quotable], how.near
    )
    numbers = [cited_as[one.passage - 1] or 0 for one in picked]
    pairs = zip(picked, numbers, strict=True)
    text = " ".join(f"{quoted(one.text)} [{number}]" for one, number in pairs)
    cited = tuple(sorted(set(numbers)))
    return Answer(text, cited, supported=True, confidence=sure)


def _confidence(
    question: str,
    passages: Sequence[Passage],
    found: Sequence[Candidate],
    similarities: Sequence[float] | None,
    scores: Sequence[float],
    how: Calibration,
    language: str | None,
) -> float | None:
    """How sure one may be of the best sentence; None where that is too little for an answer.

    By words alone the older measure decides.
    """
    covered = Coverage(question)
    if similarities is None:
        assessed = assess(question, passages, coverage=covered)
        return assessed.score if assessed.supported else None
    if not covered.wanted:
        return None
    signs = Signs.read(covered, passages, found, similarities, scores, language)
    return how.confidence(signs)


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
    """The sentences of one passage, each with the words of its heading, of the sentence that opens the
    paragraph, which says what it is about, and of the one before it.
    """
    heading, before, topic, first = Sentence("", 0), frozenset[str](), frozenset[str](), False
    for order, sentence in enumerate(split_sentences(passage.text)):
        stems = frozenset(content_stems(sentence.text))
        if sentence.is_heading:
            heading, before, topic, first = sentence, frozenset(), frozenset(), True
            yield _Piece(sentence.text, number, sentence.start, stems, stems, False, order, quotable=False)
            continue
        text = sentence.text
        if first and not sentence.is_row and len(heading.text) <= _LONGEST_HEADING:
            text = _below(question, heading.text, text)
        around = stems | before | topic | frozenset(content_stems(heading.text))
        yield _Piece(text, number, sentence.start, stems, around, sentence.is_row, order, bool(stems))
        before, topic, first = stems, topic or stems, False


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


def _leaves_reckoning(question: str, found: Sequence[Candidate], best: Candidate) -> bool:
    """Whether the question counts or compares, and several rows fit it equally well."""
    if not best.is_row or not needs_reckoning(question):
        return False
    return sum(one.is_row and one.overlap >= best.overlap - 1e-9 for one in found) > 1


def _numbers(question: str) -> frozenset[str]:
    return frozenset(word for word in content_stems(question) if has_number(word))
