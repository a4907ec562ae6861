"""What a sentence is worth as an answer, and how sure one may be of it: weights for each kind of similarity.

Both are logistic models, fitted by `python -m tests.benchmarks.answers --fit` on every second question of the
sets named there. Their features are on scales that do not depend on the model, but how a model spreads its
similarities does: another embedding model may need weights of its own (`CALIBRATIONS`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.support import Evidence


class Chosen(Protocol):
    """A sentence that was chosen, see `extractive.Candidate`."""

    @property
    def joined(self) -> float: ...

    @property
    def fits(self) -> int: ...

    @property
    def overlap(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Signs:
    """What tells a right answer from a wrong one, for the answer's best sentence."""

    score: float
    margin: float
    similarity: float
    joined: float
    coverage: float
    gap: float
    missing_name: float
    fits: float
    overlap: float

    @classmethod
    def read(
        cls, evidence: Evidence, passages: Sequence[Passage], best: Chosen, scores: Sequence[float]
    ) -> Signs:
        """`scores` are those of the sentences, best first."""
        ranked = [passage.score for passage in passages]
        return cls(
            score=scores[0],
            margin=scores[0] - scores[1] if len(scores) > 1 else 2.0,
            similarity=evidence.similarity or 0.0,
            joined=best.joined,
            coverage=evidence.coverage,
            gap=ranked[0] - ranked[1] if len(ranked) > 1 else 0.3,
            missing_name=float(evidence.missing_name),
            fits=float(best.fits),
            overlap=best.overlap,
        )

    def values(self) -> tuple[float, ...]:
        """In the order of `Calibration.sure`."""
        return (
            self.score,
            min(self.margin, 4.0),
            self.similarity,
            self.joined,
            self.coverage,
            self.gap,
            self.missing_name,
            self.fits,
            self.overlap,
        )


@dataclass(frozen=True, slots=True)
class Calibration:
    """Weights of a sentence's features (`extractive.features`) and of `Signs`, both in their order.

    Sentences within `near` of the best one are quoted beside it. Below `least` confidence there is no answer.
    """

    worth: tuple[float, ...]
    bias: float
    sure: tuple[float, ...]
    near: float = 2.0
    least: float = 0.2

    def sentence(self, features: Sequence[float]) -> float:
        """The worth of a sentence, as log odds but for a constant."""
        return sum(weight * value for weight, value in zip(self.worth, features, strict=True))

    def confidence(self, signs: Signs) -> float:
        """The probability that the answer is right, 0..1."""
        pairs = zip(self.sure, signs.values(), strict=True)
        logit = self.bias + sum(weight * value for weight, value in pairs)
        return round(1.0 / (1.0 + math.exp(-logit)), 4)


_SURE = (0.3, 0.3, 2.0, 1.0, 1.0, 1.0, -1.5, 0.3, 0.0)
BY_MEANING = Calibration((8.8, 2.0, 2.7, 2.4, 1.0, 3.0, -1.8), -4.0, _SURE)
BY_WORDS = Calibration((0.0, 0.0, 4.0, 3.0, 1.0, 2.0, -1.0), -3.0, _SURE, near=1.5)
CALIBRATIONS: dict[str, Calibration] = {
    "multilingual-e5-small": Calibration(
        (6.5, 1.5, 1.0, 3.0, 1.2, 4.0, 0.0),
        -7.6,
        (0.43, 0.62, 1.24, 2.06, 2.76, 2.19, -0.22, 0.04, -2.62),
        near=1.7,
        least=0.06,
    ),
}


def calibration_of(model: str) -> Calibration:
    """That of an embedding model by its name."""
    return CALIBRATIONS.get(model, BY_MEANING)
