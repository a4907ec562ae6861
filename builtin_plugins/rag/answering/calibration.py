"""What a sentence is worth as an answer, and how sure one may be of it: weights for each embedding model.

Both are logistic models, fitted by `python -m tests.benchmarks.answers --fit` on one half of the sets named
there; the half that was left out gives the figures in the README. What they weigh is on scales that do not
depend on the model, but how a model spreads its similarities does: a model without weights of its own gets
those of all-MiniLM.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from builtin_plugins.rag.answering.signs import Signs


@dataclass(frozen=True, slots=True)
class Logistic:
    """A logistic model over `Signs`, whose weights go by their names."""

    bias: float = 0.0
    weights: Mapping[str, float] = field(default_factory=dict)

    def probability(self, signs: Signs) -> float:
        """Between 0 and 1."""
        logit = self.bias
        logit += sum(weight * float(getattr(signs, name)) for name, weight in self.weights.items())
        return 1.0 / (1.0 + math.exp(-logit))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Weights of a sentence's features (`extractive.features`), in their order, and two models of an answer.

    `enough` decides: below `least` there is no answer. `sure` tells the probability that an answer is right;
    it was fitted with more weight on wrong sentences of the right passage, which are few. Sentences within
    `near` of the best one are quoted beside it.
    """

    worth: tuple[float, ...]
    enough: Logistic = field(default_factory=Logistic)
    sure: Logistic = field(default_factory=Logistic)
    near: float = 2.0
    least: float = 0.2

    def sentence(self, features: Sequence[float]) -> float:
        """The worth of a sentence, as log odds but for a constant."""
        return sum(weight * value for weight, value in zip(self.worth, features, strict=True))

    def confidence(self, signs: Signs) -> float | None:
        """The probability that the answer is right, 0..1; None where there is not enough for an answer."""
        return (
            round(self.sure.probability(signs), 4) if self.enough.probability(signs) >= self.least else None
        )


BY_WORDS = Calibration((0.0, 0.0, 4.0, 3.0, 1.0, 2.0, -1.0), near=1.5)
BY_MEANING = Calibration(  # worth: between the fit on all sets and that on the English ones
    (3.0, 0.0, 3.2, 1.6, 0.8, 4.5, 0.85),
    enough=Logistic(
        -5.04,
        {
            "similarity": 0.85,
            "ahead": 1.32,
            "margin": 0.20,
            "apart": 0.32,
            "near": 1.79,
            "near_lead": -1.46,
            "matched": 1.10,
            "matched_lead": 2.29,
            "agreed": -0.26,
            "rank": -0.20,
            "joined": 1.37,
            "overlap": -0.11,
            "coverage": 3.33,
            "unnamed": -0.44,
            "home_unnamed": -1.78,
            "fit": 0.49,
            "unfit": 0.21,
            "row": 0.20,
            "brief": 1.16,
            "foreign": 0.77,
        },
    ),
    sure=Logistic(
        -5.4,
        {
            "similarity": 1.84,
            "ahead": 2.17,
            "margin": -0.24,
            "apart": 0.54,
            "near": -0.30,
            "near_lead": -2.45,
            "matched": 0.03,
            "matched_lead": 2.35,
            "agreed": 0.18,
            "rank": -0.06,
            "joined": 2.24,
            "overlap": -1.47,
            "coverage": 4.74,
            "unnamed": -0.29,
            "home_unnamed": -1.76,
            "fit": 1.37,
            "unfit": 1.37,
            "row": 0.25,
            "brief": 0.21,
            "foreign": 0.23,
        },
    ),
    near=1.5,
    least=0.2,
)
CALIBRATIONS: dict[str, Calibration] = {
    "multilingual-e5-small": Calibration(
        (3.58, 0.84, 2.78, 1.05, 1.15, 5.74, 0.28),
        enough=Logistic(
            -6.03,
            {
                "similarity": 2.03,
                "ahead": 0.80,
                "margin": 0.34,
                "apart": 0.30,
                "near": 3.55,
                "near_lead": 4.13,
                "matched": 0.76,
                "matched_lead": 1.90,
                "agreed": 0.53,
                "rank": -0.43,
                "joined": 0.98,
                "overlap": -0.92,
                "coverage": 1.99,
                "unnamed": 0.16,
                "home_unnamed": -0.87,
                "fit": 0.23,
                "unfit": -0.71,
                "row": 0.10,
                "brief": 1.94,
                "foreign": 2.84,
            },
        ),
        sure=Logistic(
            -6.6,
            {
                "similarity": 3.56,
                "ahead": 1.19,
                "margin": 0.12,
                "apart": 0.56,
                "near": 3.17,
                "near_lead": -0.81,
                "matched": 0.14,
                "matched_lead": 2.90,
                "agreed": 0.65,
                "rank": -1.49,
                "joined": 1.78,
                "overlap": -3.05,
                "coverage": 2.97,
                "unnamed": 0.06,
                "home_unnamed": -0.91,
                "fit": 1.17,
                "unfit": 0.09,
                "row": 0.10,
                "brief": -0.18,
                "foreign": 3.22,
            },
        ),
        near=1.6,
        least=0.2,
    ),
}


def calibration_of(model: str) -> Calibration:
    """That of an embedding model by its name."""
    return CALIBRATIONS.get(model, BY_MEANING)
