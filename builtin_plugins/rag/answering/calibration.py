"""The worth of a sentence as an answer, and the confidence in it: weights for each embedding model.

Both are logistic models, fitted by `python -m tests.benchmarks.answers --fit` on one half of the sets named
there; the other half gives the figures in the README. The scales don't depend on the embedding model, but the
spread of similarities does: a model without its own weights gets those of all-MiniLM.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from builtin_plugins.rag.answering.signs import Signs


@dataclass(frozen=True, slots=True)
class Logistic:
    """A logistic model over `Signs`, with weights by name."""

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

    `enough` decides: below `least` there is no answer, and below `hopeful` there is none for a model to find,
    either. `glance` does the same without sentence vectors, unless its probability is `doubtful`. `sure`
    gives the probability that an answer is right; it was fitted with more weight on the few wrong sentences
    of the right passage. Sentences within `near` of the best one are quoted with it.
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
        """The worth of a sentence, as log odds up to a constant."""
        return sum(weight * value for weight, value in zip(self.worth, features, strict=True))


BY_MEANING = Calibration(
    (8.31, 0.74, 6.03, 8.2, 1.86, 6.22, 1.08, -2.42, -2.52),
    enough=Logistic(
        -5.03,
        {
            "similarity": 1.20,
            "ahead": 3.36,
            "margin": 0.02,
            "apart": 0.32,
            "near": 0.88,
            "near_lead": -0.11,
            "matched": -0.14,
            "matched_lead": 1.96,
            "agreed": -0.08,
            "rank": -2.25,
            "joined": 1.12,
            "overlap": -0.13,
            "coverage": 2.43,
            "unnamed": -0.96,
            "home_unnamed": -0.98,
            "fit": 0.20,
            "unfit": -0.57,
            "row": 1.00,
            "brief": -1.73,
            "foreign": 1.30,
            "share": 2.21,
            "subject": 0.76,
            "subject_ahead": -3.46,
            "subjectless": -0.71,
        },
    ),
    glance=Logistic(
        -5.73,
        {
            "similarity": 1.24,
            "ahead": -3.68,
            "margin": -0.01,
            "apart": 0.73,
            "near": 1.24,
            "near_lead": -0.02,
            "matched": 2.09,
            "matched_lead": 2.87,
            "agreed": -0.49,
            "rank": -3.15,
            "joined": 1.83,
            "overlap": 1.97,
            "coverage": 3.55,
            "unnamed": -2.72,
            "home_unnamed": -1.19,
            "fit": 0.48,
            "unfit": 0.18,
            "row": 1.07,
            "brief": -4.19,
            "foreign": 1.94,
            "share": 2.50,
            "subject": 1.24,
            "subject_ahead": 0.00,
            "subjectless": 0.00,
        },
    ),
    sure=Logistic(
        -5.30,
        {
            "similarity": 2.03,
            "ahead": 3.30,
            "margin": 0.03,
            "apart": 0.35,
            "near": 0.24,
            "near_lead": 0.57,
            "matched": -1.61,
            "matched_lead": 1.90,
            "agreed": -0.22,
            "rank": -2.50,
            "joined": 1.53,
            "overlap": -0.86,
            "coverage": 3.08,
            "unnamed": -0.86,
            "home_unnamed": -0.92,
            "fit": 0.49,
            "unfit": 0.30,
            "row": 1.55,
            "brief": -1.94,
            "foreign": 0.56,
            "share": 2.51,
            "subject": 0.59,
            "subject_ahead": -4.64,
            "subjectless": -0.83,
        },
    ),
    near=2.5,
    least=0.22,
    hopeful=0.01,
)
CALIBRATIONS: dict[str, Calibration] = {
    "multilingual-e5-small": Calibration(
        (16.91, 3.2, 3.03, 5.9, 1.47, 2.66, 0.34, -4.46, -6.7),
        enough=Logistic(
            -5.59,
            {
                "similarity": 3.09,
                "ahead": 2.51,
                "margin": 0.21,
                "apart": 0.13,
                "near": 3.05,
                "near_lead": 4.71,
                "matched": 1.08,
                "matched_lead": 1.38,
                "agreed": 0.30,
                "rank": -1.21,
                "joined": 0.43,
                "overlap": -0.51,
                "coverage": 1.56,
                "unnamed": -0.56,
                "home_unnamed": -0.81,
                "fit": -0.12,
                "unfit": -0.70,
                "row": 1.21,
                "brief": -0.72,
                "foreign": 3.99,
                "share": 2.37,
                "subject": -1.61,
                "subject_ahead": -2.30,
                "subjectless": 0.61,
            },
        ),
        glance=Logistic(
            -4.93,
            {
                "similarity": 2.08,
                "ahead": -17.92,
                "margin": 0.25,
                "apart": 0.44,
                "near": 2.08,
                "near_lead": 9.71,
                "matched": 2.23,
                "matched_lead": 2.86,
                "agreed": 0.13,
                "rank": -0.75,
                "joined": 0.42,
                "overlap": 1.57,
                "coverage": -0.00,
                "unnamed": -1.00,
                "home_unnamed": -1.48,
                "fit": 0.11,
                "unfit": 0.92,
                "row": 1.05,
                "brief": -0.49,
                "foreign": 5.53,
                "share": 1.57,
                "subject": 2.08,
                "subject_ahead": 0.00,
                "subjectless": 0.00,
            },
        ),
        sure=Logistic(
            -6.03,
            {
                "similarity": 4.97,
                "ahead": 1.59,
                "margin": 0.17,
                "apart": 0.21,
                "near": 1.97,
                "near_lead": 3.68,
                "matched": -0.51,
                "matched_lead": 2.12,
                "agreed": 0.32,
                "rank": -1.87,
                "joined": 0.89,
                "overlap": -1.77,
                "coverage": 2.17,
                "unnamed": -0.51,
                "home_unnamed": -0.57,
                "fit": 0.25,
                "unfit": 0.31,
                "row": 1.90,
                "brief": -0.99,
                "foreign": 4.91,
                "share": 2.97,
                "subject": -2.08,
                "subject_ahead": -2.95,
                "subjectless": 0.51,
            },
        ),
        near=2.5,
        least=0.22,
        hopeful=0.03,
    ),
}


def calibration_of(model: str) -> Calibration:
    """The calibration of an embedding model, by name."""
    return CALIBRATIONS.get(model, BY_MEANING)
