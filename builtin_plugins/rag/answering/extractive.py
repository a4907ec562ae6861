"""An answer without a model runtime: the passages' own best-fitting sentences, each with its source.

Three steps, so that a caller can embed between them without blocking: ``candidates`` picks sentences worth
weighing, `weighing` weighs them, and ``compose`` quotes.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence

from builtin_plugins.rag.answering.candidate import Candidate
from builtin_plugins.rag.answering.codes import about_asked
from builtin_plugins.rag.answering.ends import asks
from builtin_plugins.rag.answering.expectations import fits
from builtin_plugins.rag.answering.passages import Answer, Passage
from builtin_plugins.rag.answering.quoting import pick, quoted, said
from builtin_plugins.rag.answering.reading import ReadSentence, read
from builtin_plugins.rag.answering.refusing import refusal_in
from builtin_plugins.rag.answering.weighing import Weighed
from builtin_plugins.rag.answering.words import (
    Stems,
    content_forms,
    content_stems,
    content_words,
    forms,
    has_number,
    words,
)

DEPTH = 5
"""Passages that an answer is made from, however many are shown."""

MAX_CANDIDATES = 8
"""Half as many contain 78 instead of 82 % of answers to paraphrased questions. Most questions need four."""

_LAGGING = 0.8
"""How far behind the best a sentence must be to be not worth a vector; not tuned on the sets."""

_NEARNESS = 2.5
"""The weight of a passage's rank for its sentences: with less, twice as many would need vectors."""

_LONGEST_HEADING = 80


def candidates(
    question: str, passages: Sequence[Passage], limit: int = MAX_CANDIDATES, *, language: str | None = None
) -> list[Candidate]:
    """At most ``limit`` sentences worth scoring, each text once, as overlapping chunks repeat sentences.

    Those that share words with the question come first, then those of better-ranked passages.
    ``language`` is the question's.
    """
    pieces = [
        piece for number, passage in enumerate(passages, 1) for piece in _quotable(question, number, passage)
    ]
    pieces = about_asked(question, pieces)
    known = _Words(question, pieces, language, {one.language for one in passages if one.language})
    best = max((passage.score for passage in passages), default=0.0) or 1.0
    unique: dict[str, Candidate] = {}
    for piece in pieces:
        if piece.quotable:
            nearness = max(0.0, passages[piece.passage - 1].score / best)
            fit = fits(question, piece.text)
            unique.setdefault(
                piece.text.casefold(), known.measured(piece)._replace(fits=fit, nearness=nearness)
            )
    ranked = sorted(unique.values(), key=lambda one: (-_promise(one), one.passage, one.start))
    return _with_first(ranked, limit)


def _with_first(ranked: Sequence[Candidate], limit: int) -> list[Candidate]:
    """The first `limit` that are close to the best, including one of the best passage, so that it alone can
    be shown with an answer.
    """
    best = min((one.passage for one in ranked), default=0)
    kept = [one for one in ranked[:limit] if _promise(one) >= _promise(ranked[0]) - _LAGGING]
    if all(one.passage != best for one in kept):
        kept[limit - 1 :] = [next(one for one in ranked if one.passage == best)] if ranked else []
    return kept


def compose(
    weighed: Weighed, places: Sequence[int | None] | None = None, *, language: str | None = None
) -> Answer:
    """The answer from weighed candidates; a refusal if the passages don't support any.

    ``places`` maps each passage to the number of the source that it is cited as (by default, its own
    position); passages without one are not quoted. All passages decide whether there is an answer; if the
    best sentence can't be quoted, the answer only names its passage.
    """
    if not weighed.supported:
        return Answer(refusal_in(language), (), supported=False)
    found, order = weighed.found, weighed.order
    best, cited_as = found[order[0]], places or range(1, len(weighed.passages) + 1)
    if cited_as[best.passage - 1] is None:
        return Answer("", (), supported=False, unshown=best.passage)
    quotable = [at for at in order if cited_as[found[at].passage - 1] is not None]
    scores = [weighed.scores[at] for at in quotable]
    picked = pick(_numbers(weighed.question), [found[at] for at in quotable], scores, weighed.how.near)
    numbers = [cited_as[one.passage - 1] or 0 for one in picked]
    pairs = zip(said(picked), numbers, strict=True)
    text = " ".join(f"{quoted(one)} [{number}]" for one, number in pairs)
    pages = {
        cited_as[one.passage - 1] or 0: weighed.passages[one.passage - 1].page_at(one.start)
        for one in (found[at] for at in reversed(quotable))  # the best of a passage is last
        if one in picked
    }
    return Answer(text, tuple(sorted(set(numbers))), supported=True, confidence=weighed.sure, pages=pages)


def _quotable(question: str, number: int, passage: Passage) -> Iterator[Candidate]:
    """The sentences of a passage that don't just repeat the question; one of headings alone, such as a line
    without a period, is text, too.
    """
    found = _sentences(question, number, passage)
    pieces = [one for one in found if not _repeats(one.text, question, passage.language)]
    opening = next((piece for piece in pieces if piece.quotable), None)
    several = sum(piece.quotable for piece in pieces) > 1
    for piece in pieces:
        if opening is None:
            yield piece._replace(quotable=bool(piece.stems))
        else:
            yield piece._replace(opens=True) if several and piece is opening else piece


def _repeats(text: str, question: str, language: str | None) -> bool:
    """Whether a sentence is a question without any new word."""
    if not asks(text):
        return False
    return content_forms(text.rpartition(": ")[2], language) <= content_forms(question, language)


def _sentences(question: str, number: int, passage: Passage) -> Iterator[Candidate]:
    """The sentences of one passage, with the headings that they need."""
    above = _Above(question, passage.language)
    for order, one in enumerate(read(passage)):
        shown = above.shown(one)
        yield Candidate(
            text=shown,
            passage=number,
            start=one.start,
            order=order,
            stems=one.stems,
            around=one.around,
            is_row=one.is_row,
            quotable=bool(one.stems) and not one.is_heading,
            under=one.under,
            whole=above.whole(one, shown),
            headed=len(shown) - len(one.marked),
        )


class _Above:
    """Headings of sentences, as far as a question needs them."""

    def __init__(self, question: str, language: str | None) -> None:
        self._question, self._language = question, language
        self._asked = content_forms(question, language)
        self._told: dict[str, frozenset[str]] = {}

    def shown(self, one: ReadSentence) -> str:
        """The sentence as it is quoted: with its heading if it is the first there, or if that says what it is
        about, and if it adds something to what was asked. An entry stands alone.
        """
        needed = _is_short(one.under) and not one.is_row and (one.is_first or self._is_told(one))
        return _below(one) if needed and self._adds(one) else one.marked

    def whole(self, one: ReadSentence, shown: str) -> str:
        """The sentence in its context: "The default is 8" is about its heading."""
        return _below(one) if shown == one.marked and _is_short(one.under) and self._is_told(one) else shown

    def _is_told(self, one: ReadSentence) -> bool:
        """Whether part of the question is only in the heading."""
        if one.under not in self._told:
            self._told[one.under] = content_forms(one.under, self._language) & self._asked
        return not one.is_heading and not self._told[one.under] <= one.stems

    def _adds(self, one: ReadSentence) -> bool:
        heading = one.under
        known = {word.casefold() for word in (*words(self._question), *words(one.marked))}
        missing = any(word.casefold() not in known for word in words(heading))
        marked = any(not char.isalnum() and not char.isspace() for char in heading)
        is_code = marked and not asks(heading) and heading not in self._question
        return (one.is_first and one.is_bare) or missing or is_code


def _is_short(heading: str) -> bool:
    return 0 < len(heading) <= _LONGEST_HEADING


def _below(one: ReadSentence) -> str:
    above = one.under if asks(one.under) else f"{one.under.rstrip(' :')}:"
    return f"{above} {one.marked}"


class _Words:
    """The question's words, weighted by how few of the sentences have them."""

    def __init__(
        self, question: str, pieces: Sequence[Candidate], language: str | None, languages: Collection[str]
    ) -> None:
        known = Stems(frozenset().union(*(piece.around for piece in pieces)))
        wanted = content_words(question, language) or content_words(question)
        self._meaning = defaultdict[str, list[int]](list)
        for which, word in enumerate(wanted):
            for one in frozenset().union(*map(known.meant_by, forms(word, languages))):
                self._meaning[one].append(which)
        self._meant = frozenset(self._meaning)
        self._shares: dict[frozenset[str], float] = {}
        held = Counter[int]()
        for meant, times in Counter(self._meant & piece.stems for piece in pieces).items():
            held.update(dict.fromkeys(self._words_of(meant), times))
        raw = [math.log1p((len(pieces) - held[at] + 0.5) / (held[at] + 0.5)) for at in range(len(wanted))]
        total = sum(raw) or 1.0
        self._weights = [one / total for one in raw]

    def measured(self, piece: Candidate) -> Candidate:
        """The sentence, with its shares of the question's words."""
        return piece._replace(overlap=self._share(piece.stems), joined=self._share(piece.around))

    def _share(self, stems: frozenset[str]) -> float:
        """How much of the question the stems cover. Cached, as many sentences share the same few words."""
        meant = self._meant & stems
        share = self._shares.get(meant)
        if share is None:
            share = sum(self._weights[which] for which in sorted(self._words_of(meant)))
            self._shares[meant] = share
        return share

    def _words_of(self, meant: Collection[str]) -> set[int]:
        """Which of the question's words these stems mean."""
        return {which for one in meant for which in self._meaning[one]}


def _promise(one: Candidate) -> float:
    """How much a sentence is worth scoring, before its meaning is known."""
    return one.overlap + one.joined + 0.3 * one.fits + _NEARNESS * one.nearness


def _numbers(question: str) -> frozenset[str]:
    return frozenset(word for word in content_stems(question) if has_number(word))
