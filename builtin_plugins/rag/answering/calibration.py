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
    (5.35, 0.46, 5.64, 7.16, 2.18, 6.29, 2.28, -1.86),
    enough=Logistic(
        -6.30,
        {
            "similarity": 1.29,
            "ahead": 0.31,
            "margin": 0.05,
            "apart": 0.28,
            "near": 2.10,
            "near_lead": 0.34,
            "matched": 0.13,
            "matched_lead": 1.67,
            "agreed": -0.43,
            "rank": -3.23,
            "joined": 0.97,
            "overlap": 0.08,
            "coverage": 3.03,
            "unnamed": -0.80,
            "home_unnamed": -1.12,
            "fit": 0.47,
            "unfit": -0.56,
            "row": 0.22,
            "brief": 0.51,
            "foreign": 1.31,
            "share": 2.45,
        },
    ),
    glance=Logistic(
        -8.25,
        {
            "similarity": 2.91,
            "ahead": -3.20,
            "margin": 0.29,
            "apart": 0.61,
            "near": 2.91,
            "near_lead": 1.10,
            "matched": 2.43,
            "matched_lead": 2.86,
            "agreed": -0.52,
            "rank": -2.46,
            "joined": 2.58,
            "overlap": 3.36,
            "coverage": 2.71,
            "unnamed": -1.51,
            "home_unnamed": -2.16,
            "fit": 0.64,
            "unfit": -0.46,
            "row": -0.20,
            "brief": -0.65,
            "foreign": 1.32,
            "share": 3.63,
        },
    ),
    sure=Logistic(
        -6.35,
        {
            "similarity": 2.41,
            "ahead": 0.70,
            "margin": -0.05,
            "apart": 0.35,
            "near": 1.11,
            "near_lead": 0.88,
            "matched": -3.11,
            "matched_lead": 1.53,
            "agreed": -0.49,
            "rank": -3.39,
            "joined": 1.25,
            "overlap": -0.51,
            "coverage": 3.83,
            "unnamed": -0.74,
            "home_unnamed": -0.97,
            "fit": 1.11,
            "unfit": 0.12,
            "row": 0.48,
            "brief": -1.82,
            "foreign": 0.23,
            "share": 3.44,
        },
    ),
    near=2.5,
    least=0.2,
    hopeful=0.03,
)
CALIBRATIONS: dict[str, Calibration] = {
    "multilingual-e5-small": Calibration(
        (9.83, 3.74, 4.02, 5.69, 1.98, 5.34, 1.85, -3.95),
        enough=Logistic(
            -6.25,
            {
                "similarity": 2.25,
                "ahead": -0.44,
                "margin": 0.16,
                "apart": 0.16,
                "near": 2.18,
                "near_lead": 5.51,
                "matched": 0.26,
                "matched_lead": 0.91,
                "agreed": 0.68,
                "rank": 0.18,
                "joined": 0.59,
                "overlap": -0.12,
                "coverage": 1.48,
                "unnamed": -0.31,
                "home_unnamed": -1.62,
                "fit": 0.29,
                "unfit": -0.86,
                "row": 0.29,
                "brief": 0.71,
                "foreign": 4.02,
                "share": 2.42,
            },
        ),
        glance=Logistic(
            -6.72,
            {
                "similarity": 2.76,
                "ahead": 6.66,
                "margin": 0.30,
                "apart": 0.53,
                "near": 2.76,
                "near_lead": 7.09,
                "matched": 2.16,
                "matched_lead": 2.68,
                "agreed": 0.85,
                "rank": 0.63,
                "joined": 0.40,
                "overlap": 1.76,
                "coverage": 1.27,
                "unnamed": -1.16,
                "home_unnamed": -1.50,
                "fit": 0.43,
                "unfit": -1.00,
                "row": -0.12,
                "brief": -0.64,
                "foreign": 7.26,
                "share": 1.88,
            },
        ),
        sure=Logistic(
            -7.34,
            {
                "similarity": 5.27,
                "ahead": -2.13,
                "margin": -0.19,
                "apart": 0.39,
                "near": 0.15,
                "near_lead": 1.49,
                "matched": -3.08,
                "matched_lead": 2.52,
                "agreed": 0.90,
                "rank": -0.62,
                "joined": 1.85,
                "overlap": -1.27,
                "coverage": 2.39,
                "unnamed": 0.30,
                "home_unnamed": -1.72,
                "fit": 1.01,
                "unfit": -0.45,
                "row": 0.38,
                "brief": -1.67,
                "foreign": 5.48,
                "share": 4.35,
            },
        ),
        near=2.5,
        least=0.2,
        hopeful=0.05,
    ),
}


def calibration_of(model: str) -> Calibration:
    """That of an embedding model by its name."""
    return CALIBRATIONS.get(model, BY_MEANING)
