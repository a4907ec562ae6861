"""The worth of a sentence as an answer, and the confidence in it: weights for each embedding model.

Both are logistic models, fitted by `python -m tests.benchmarks.answers --fit` on one half of the sets named
there; the other half gives the figures in the README. The scales don't depend on the embedding model, but the
spread of similarities does: a model without its own weights gets those of all-MiniLM.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from builtin_plugins.rag.answering.signs import Signs


@dataclass(frozen=True, slots=True)
class Logistic:
    """A logistic model over `Signs`, with weights by name."""

    bias: float
    weights: Mapping[str, float]

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
    enough: Logistic
    glance: Logistic
    sure: Logistic
    hopeful: float
    near: float = 2.5
    least: float = 0.22
    doubtful: tuple[float, float] = (0.1, 0.6)

    @classmethod
    def fitted(
        cls,
        worth: tuple[float, ...],
        bias: tuple[float, float, float],
        weights: Mapping[str, tuple[float, float, float]],
        hopeful: float,
    ) -> Calibration:
        """From the bias and each sign's weight in `enough`, `glance` and `sure`."""
        enough, glance, sure = (
            Logistic(bias[at], {name: each[at] for name, each in weights.items()}) for at in range(3)
        )
        return cls(worth, enough, glance, sure, hopeful)

    def sentence(self, features: Sequence[float]) -> float:
        """The worth of a sentence, as log odds up to a constant."""
        return sum(weight * value for weight, value in zip(self.worth, features, strict=True))


BY_MEANING = Calibration.fitted(
    worth=(8.31, 0.74, 6.03, 8.2, 1.86, 6.22, 1.08, -2.42, -2.52),
    bias=(-5.44, -6.61, -6.00),
    weights={
        "similarity": (1.03, 1.72, 1.99),
        "ahead": (2.89, -6.26, 1.59),
        "apart": (0.29, 0.72, 0.35),
        "near": (1.27, 1.72, 0.90),
        "near_lead": (-0.51, -1.00, 0.19),
        "matched_lead": (2.23, 3.72, 0.70),
        "agreed": (-0.06, -0.41, -0.11),
        "rank": (-2.64, -3.94, -2.95),
        "coverage": (2.69, 5.26, 2.72),
        "unnamed": (-1.79, -2.87, -1.62),
        "unfit": (-1.11, -0.38, -0.33),
        "foreign": (1.33, 1.51, 0.94),
        "share": (2.31, 2.67, 2.78),
        "subject": (1.45, 1.72, 1.58),
        "subject_ahead": (-3.39, 0.00, -4.63),
        "subjectless": (-0.77, 0.00, -1.00),
    },
    hopeful=0.01,
)
CALIBRATIONS: dict[str, Calibration] = {
    "multilingual-e5-small": Calibration.fitted(
        worth=(16.91, 3.2, 3.03, 5.9, 1.47, 2.66, 0.34, -4.46, -6.7),
        bias=(-6.13, -5.10, -6.73),
        weights={
            "similarity": (3.42, 2.00, 5.06),
            "ahead": (3.38, -14.42, 2.11),
            "apart": (0.19, 0.43, 0.26),
            "near": (3.31, 2.00, 3.13),
            "near_lead": (4.11, 8.42, 2.93),
            "matched_lead": (2.55, 4.14, 1.91),
            "agreed": (0.27, 0.18, 0.37),
            "rank": (-1.05, -0.22, -1.78),
            "coverage": (1.59, 1.81, 1.36),
            "unnamed": (-1.18, -2.19, -0.83),
            "unfit": (-1.82, 0.37, -0.98),
            "foreign": (4.04, 5.20, 5.41),
            "share": (3.04, 2.53, 3.70),
            "subject": (-1.47, 2.00, -2.05),
            "subject_ahead": (-2.85, 0.00, -4.31),
            "subjectless": (0.46, 0.00, 0.32),
        },
        hopeful=0.03,
    )
}


def calibration_of(model: str) -> Calibration:
    """The calibration of an embedding model, by name."""
    return CALIBRATIONS.get(model, BY_MEANING)
