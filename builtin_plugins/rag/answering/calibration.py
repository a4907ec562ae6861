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
    least: float = 0.22
    hopeful: float = 0.05
    doubtful: tuple[float, float] = (0.1, 0.6)

    def sentence(self, features: Sequence[float]) -> float:
        """The worth of a sentence, as log odds but for a constant."""
        return sum(weight * value for weight, value in zip(self.worth, features, strict=True))


BY_MEANING = Calibration(
    (6.53, 1.11, 5.79, 8.21, 1.86, 6.15, 1.3, -2.58),
    enough=Logistic(
        -5.28,
        {
            "similarity": 1.70,
            "ahead": 0.93,
            "margin": -0.00,
            "apart": 0.32,
            "near": 0.93,
            "near_lead": 0.13,
            "matched": 0.47,
            "matched_lead": 1.68,
            "agreed": -0.11,
            "rank": -2.23,
            "joined": 1.03,
            "overlap": -0.25,
            "coverage": 2.80,
            "unnamed": -0.91,
            "home_unnamed": -1.10,
            "fit": 0.31,
            "unfit": -0.80,
            "row": 0.43,
            "brief": -1.98,
            "foreign": 1.68,
            "share": 2.21,
        },
    ),
    glance=Logistic(
        -6.87,
        {
            "similarity": 2.50,
            "ahead": -2.45,
            "margin": 0.09,
            "apart": 0.72,
            "near": 2.50,
            "near_lead": 0.16,
            "matched": 2.83,
            "matched_lead": 3.14,
            "agreed": -0.30,
            "rank": -2.68,
            "joined": 1.54,
            "overlap": 3.15,
            "coverage": 3.27,
            "unnamed": -2.08,
            "home_unnamed": -1.72,
            "fit": 0.62,
            "unfit": -0.39,
            "row": 1.08,
            "brief": -4.50,
            "foreign": 1.59,
            "share": 2.93,
        },
    ),
    sure=Logistic(
        -5.72,
        {
            "similarity": 2.57,
            "ahead": -0.30,
            "margin": -0.04,
            "apart": 0.34,
            "near": 0.09,
            "near_lead": 0.95,
            "matched": -0.78,
            "matched_lead": 1.20,
            "agreed": -0.20,
            "rank": -2.33,
            "joined": 1.32,
            "overlap": -0.88,
            "coverage": 3.50,
            "unnamed": -0.93,
            "home_unnamed": -0.91,
            "fit": 0.61,
            "unfit": 0.04,
            "row": 0.71,
            "brief": -2.11,
            "foreign": 1.23,
            "share": 2.84,
        },
    ),
    near=2.5,
    least=0.22,
    hopeful=0.01,
)
CALIBRATIONS: dict[str, Calibration] = {
    "multilingual-e5-small": Calibration(
        (12.77, 3.82, 2.65, 5.91, 1.66, 3.32, 0.99, -5.05),
        enough=Logistic(
            -5.41,
            {
                "similarity": 2.40,
                "ahead": 0.26,
                "margin": 0.18,
                "apart": 0.19,
                "near": 2.34,
                "near_lead": 4.86,
                "matched": 0.91,
                "matched_lead": 1.40,
                "agreed": 0.21,
                "rank": 0.19,
                "joined": 0.75,
                "overlap": -1.06,
                "coverage": 1.15,
                "unnamed": -0.72,
                "home_unnamed": -0.77,
                "fit": -0.15,
                "unfit": -0.81,
                "row": 0.86,
                "brief": -0.11,
                "foreign": 3.91,
                "share": 2.32,
            },
        ),
        glance=Logistic(
            -4.86,
            {
                "similarity": 2.63,
                "ahead": -20.96,
                "margin": 0.22,
                "apart": 0.46,
                "near": 2.63,
                "near_lead": 9.31,
                "matched": 2.73,
                "matched_lead": 3.39,
                "agreed": 0.23,
                "rank": 0.11,
                "joined": 0.57,
                "overlap": 2.07,
                "coverage": 0.56,
                "unnamed": -1.31,
                "home_unnamed": -1.66,
                "fit": -0.05,
                "unfit": 0.33,
                "row": 0.98,
                "brief": -1.49,
                "foreign": 5.50,
                "share": 1.82,
            },
        ),
        sure=Logistic(
            -5.92,
            {
                "similarity": 3.96,
                "ahead": -1.16,
                "margin": 0.10,
                "apart": 0.31,
                "near": 1.24,
                "near_lead": 3.74,
                "matched": -0.53,
                "matched_lead": 2.06,
                "agreed": 0.09,
                "rank": -0.12,
                "joined": 1.17,
                "overlap": -2.34,
                "coverage": 1.86,
                "unnamed": -0.79,
                "home_unnamed": -0.48,
                "fit": 0.26,
                "unfit": 0.12,
                "row": 1.56,
                "brief": -0.34,
                "foreign": 4.81,
                "share": 2.93,
            },
        ),
        near=2.5,
        least=0.22,
        hopeful=0.03,
    ),
}


def calibration_of(model: str) -> Calibration:
    """That of an embedding model by its name."""
    return CALIBRATIONS.get(model, BY_MEANING)
