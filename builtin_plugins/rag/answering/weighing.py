"""Whether passages answer a question, and how certainly: one measure for answers, searches and methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from builtin_plugins.rag.answering.calibration import Calibration
from builtin_plugins.rag.answering.candidate import Candidate, Near, count_words
from builtin_plugins.rag.answering.codes import speaks_of_another
from builtin_plugins.rag.answering.coverage import Coverage
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.reckoning import leaves_reckoning
from builtin_plugins.rag.answering.signs import Signs

_LONG = 40


@dataclass(frozen=True, slots=True)
class Weighed:
    """Sentences of passages as answers to a question, each with its worth, and the overall result.

    `enough` decides on an answer; `sure` is the probability that it is right. Both are 0 if there is nothing
    to weigh. `supported`: there is an answer without a model. `hopeful`: a model, which reads whole passages,
    may find one.
    """

    question: str
    passages: Sequence[Passage]
    found: Sequence[Candidate]
    scores: Sequence[float]
    how: Calibration
    enough: float = 0.0
    sure: float = 0.0

    @property
    def supported(self) -> bool:
        if self.enough < self.how.least:
            return False
        best = self.found[self.order[0]]
        if speaks_of_another(self.question, best, self.passages):
            return False
        return not leaves_reckoning(self.question, best, self.found)

    @property
    def is_clear(self) -> bool:
        """Whether the passages alone decide clearly, without sentence vectors."""
        return not self.how.doubtful[0] <= self.enough < self.how.doubtful[1]

    @property
    def hopeful(self) -> bool:
        return self.enough >= self.how.hopeful

    @property
    def order(self) -> list[int]:
        """The indexes of the sentences, the best first."""
        return sorted(range(len(self.found)), key=lambda at: -self.scores[at])


def weigh(
    question: str,
    passages: Sequence[Passage],
    found: Sequence[Candidate],
    near: Near | None,
    how: Calibration,
    *,
    language: str | None = None,
) -> Weighed:
    """Weigh candidates by their similarity to the question; `language` is the question's.

    Without `near`, the passages' similarities replace those of sentences, and a separately fitted model
    decides, so that no vector needs to be computed.
    """
    measured = near or Near([passages[one.passage - 1].near or 0.0 for one in found])
    scores = worths(how, found, measured)
    covered = Coverage(question)
    if not found or not covered.wanted:
        return Weighed(question, passages, found, scores, how)
    signs = Signs.read(covered, passages, found, measured, scores, language)
    enough = how.enough if near is not None else how.glance
    return Weighed(
        *(question, passages, found, scores, how),
        enough=enough.probability(signs),
        sure=how.sure.probability(signs),
    )


def worths(how: Calibration, found: Sequence[Candidate], near: Near) -> list[float]:
    """The worth of each candidate as an answer."""
    rows = features(found, near)
    return [how.sentence(row) - _fragment_price(one) for row, one in zip(rows, found, strict=True)]


def features(found: Sequence[Candidate], near: Near) -> list[tuple[float, ...]]:
    """For each candidate: similarity, gain from the sentence before it, words, kind, rank, length, the
    similarity again if it opens its passage, and its similarity to the question's subject.
    """
    pairs = list(zip(found, near.question, strict=True))
    known = {(one.passage, one.order): similarity for one, similarity in pairs}
    made = list[tuple[float, ...]]()
    for at, (one, similarity) in enumerate(pairs):
        carried = max(0.0, known.get((one.passage, one.order - 1), 0.0) - similarity)
        size = min(count_words(one.text), _LONG) / _LONG
        opening = similarity if one.opens else 0.0
        shared = (one.overlap, one.joined, float(one.fits), one.nearness)
        made.append((similarity, carried, *shared, size, opening, near.to_subject(at)))
    return made


def _fragment_price(one: Candidate) -> float:
    """The penalty for half a sentence, left by a chunk that begins in the middle of one."""
    return 1.0 if one.start == 0 and one.text[0].islower() else 0.0
