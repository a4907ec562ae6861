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
    """Weights of a sentence's features (`weighing.features`), in their order, and models of an answer.

    `enough` decides: below `least` there is no answer, and below `hopeful` none for a model to find. `glance`
    decides likewise where no sentence has a vector, unless its probability is `doubtful`. `sure` tells the
    probability that an answer is right; it was fitted with more weight on wrong sentences of the right
    passage, which are few. Sentences within `near` of the best one are quoted beside it.
    """

    worth: tuple[float, ...]
    enough: Logistic = field(default_factory=Logistic)
    glance: Logistic = field(default_factory=Logistic)
    sure: Logistic = field(default_factory=Logistic)
    near: float = 2.0
    least: float = 0.2
    hopeful: float = 0.05
    doubtful: tuple[float, float] = (0.1, 0.6)

    def sentence(self, features: Sequence[float]) -> float:
        """The worth of a sentence, as log odds but for a constant."""
        return sum(weight * value for weight, value in zip(self.worth, features, strict=True))


BY_MEANING = Calibration(
    (4.7, 0.35, 5.62, 7.91, 2.12, 5.28, 2.75, -1.79),
    enough=Logistic(
        -6.09,
        {
            "similarity": 1.72,
            "ahead": -0.46,
            "margin": 0.06,
            "apart": 0.31,
            "near": 1.34,
            "near_lead": 1.18,
            "matched": 0.45,
            "matched_lead": 1.26,
            "agreed": -0.49,
            "rank": -2.81,
            "joined": 1.36,
            "overlap": 0.20,
            "coverage": 2.76,
            "unnamed": -0.94,
            "home_unnamed": -1.45,
            "fit": 0.54,
            "unfit": -0.56,
            "row": 0.59,
            "brief": -0.35,
            "foreign": 1.59,
            "share": 2.31,
        },
    ),
    glance=Logistic(
        -7.97,
        {
            "similarity": 2.92,
            "ahead": -1.95,
            "margin": 0.23,
            "apart": 0.50,
            "near": 2.92,
            "near_lead": 0.38,
            "matched": 2.58,
            "matched_lead": 2.95,
            "agreed": -0.55,
            "rank": -3.39,
            "joined": 2.32,
            "overlap": 3.34,
            "coverage": 2.37,
            "unnamed": -2.75,
            "home_unnamed": -2.28,
            "fit": 0.81,
            "unfit": -0.50,
            "row": 1.20,
            "brief": -1.01,
            "foreign": 1.64,
            "share": 3.99,
        },
    ),
    sure=Logistic(
        -5.99,
        {
            "similarity": 3.32,
            "ahead": -0.66,
            "margin": -0.01,
            "apart": 0.42,
            "near": -0.18,
            "near_lead": 2.31,
            "matched": -2.59,
            "matched_lead": 1.25,
            "agreed": -0.56,
            "rank": -2.89,
            "joined": 1.96,
            "overlap": -0.89,
            "coverage": 3.86,
            "unnamed": -1.11,
            "home_unnamed": -1.22,
            "fit": 1.06,
            "unfit": 0.04,
            "row": 0.81,
            "brief": -3.26,
            "foreign": 0.67,
            "share": 2.91,
        },
    ),
    near=2.5,
    least=0.2,
    hopeful=0.01,
)
CALIBRATIONS: dict[str, Calibration] = {
    "multilingual-e5-small": Calibration(
        (9.14, 3.96, 4.09, 6.04, 1.9, 5.13, 2.21, -3.73),
        enough=Logistic(
            -5.94,
            {
                "similarity": 2.44,
                "ahead": -1.67,
                "margin": 0.19,
                "apart": 0.16,
                "near": 1.83,
                "near_lead": 5.97,
                "matched": 0.13,
                "matched_lead": 1.27,
                "agreed": 0.65,
                "rank": -0.06,
                "joined": 0.60,
                "overlap": 0.13,
                "coverage": 1.44,
                "unnamed": -0.84,
                "home_unnamed": -1.19,
                "fit": 0.24,
                "unfit": -0.97,
                "row": 0.50,
                "brief": 0.03,
                "foreign": 4.28,
                "share": 2.27,
            },
        ),
        glance=Logistic(
            -6.92,
            {
                "similarity": 2.25,
                "ahead": 5.11,
                "margin": 0.35,
                "apart": 0.46,
                "near": 2.25,
                "near_lead": 8.31,
                "matched": 1.32,
                "matched_lead": 2.62,
                "agreed": 1.06,
                "rank": 1.00,
                "joined": 1.06,
                "overlap": 1.95,
                "coverage": 1.50,
                "unnamed": -1.63,
                "home_unnamed": -1.85,
                "fit": 0.42,
                "unfit": -1.75,
                "row": 0.46,
                "brief": -1.09,
                "foreign": 7.37,
                "share": 2.47,
            },
        ),
        sure=Logistic(
            -6.54,
            {
                "similarity": 5.42,
                "ahead": -4.06,
                "margin": -0.01,
                "apart": 0.43,
                "near": -0.12,
                "near_lead": 2.73,
                "matched": -3.26,
                "matched_lead": 2.63,
                "agreed": 0.75,
                "rank": -1.93,
                "joined": 1.63,
                "overlap": -0.98,
                "coverage": 2.47,
                "unnamed": -0.75,
                "home_unnamed": -0.84,
                "fit": 0.92,
                "unfit": -0.62,
                "row": 0.66,
                "brief": -2.55,
                "foreign": 5.80,
                "share": 3.20,
            },
        ),
        near=2.5,
        least=0.2,
        hopeful=0.03,
    ),
}


def calibration_of(model: str) -> Calibration:
    """That of an embedding model by its name."""
    return CALIBRATIONS.get(model, BY_MEANING)
