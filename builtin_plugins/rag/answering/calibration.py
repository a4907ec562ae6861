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
class Calibration:
    """Weights of a sentence's features (`extractive.features`), in their order, and of `Signs`, by name.

    Sentences within `near` of the best one are quoted beside it. Below `least` confidence there is no answer.
    """

    worth: tuple[float, ...]
    bias: float = 0.0
    sure: Mapping[str, float] = field(default_factory=dict)
    near: float = 2.0
    least: float = 0.2

    def sentence(self, features: Sequence[float]) -> float:
        """The worth of a sentence, as log odds but for a constant."""
        return sum(weight * value for weight, value in zip(self.worth, features, strict=True))

    def confidence(self, signs: Signs) -> float:
        """The probability that the answer is right, 0..1."""
        logit = self.bias + sum(weight * float(getattr(signs, name)) for name, weight in self.sure.items())
        return round(1.0 / (1.0 + math.exp(-logit)), 4)


BY_WORDS = Calibration((0.0, 0.0, 4.0, 3.0, 1.0, 2.0, -1.0), near=1.5)
BY_MEANING = Calibration(  # worth: between the fit on all sets and that on the English ones
    (3.0, 0.0, 3.2, 1.6, 0.8, 4.5, 0.85),
    -4.89,
    {
        "similarity": 0.87,
        "ahead": 1.33,
        "margin": 0.20,
        "apart": 0.30,
        "near": 1.73,
        "near_lead": -1.44,
        "matched": 1.00,
        "matched_lead": 2.36,
        "agreed": -0.24,
        "rank": -0.22,
        "joined": 1.42,
        "overlap": -0.11,
        "coverage": 3.31,
        "unnamed": -0.42,
        "home_unnamed": -1.77,
        "fit": 0.43,
        "unfit": 0.21,
        "row": 0.27,
        "brief": 0.91,
        "foreign": 0.59,
    },
    near=1.5,
    least=0.2,
)
CALIBRATIONS: dict[str, Calibration] = {
    "multilingual-e5-small": Calibration(
        (3.58, 0.84, 2.78, 1.05, 1.15, 5.74, 0.28),
        -5.95,
        {
            "similarity": 1.96,
            "ahead": 0.81,
            "margin": 0.31,
            "apart": 0.30,
            "near": 3.68,
            "near_lead": 4.04,
            "matched": 0.72,
            "matched_lead": 1.90,
            "agreed": 0.55,
            "rank": -0.43,
            "joined": 0.93,
            "overlap": -0.70,
            "coverage": 1.94,
            "unnamed": 0.17,
            "home_unnamed": -0.85,
            "fit": 0.13,
            "unfit": -0.58,
            "row": 0.08,
            "brief": 1.81,
            "foreign": 2.85,
        },
        near=1.6,
        least=0.25,
    ),
}


def calibration_of(model: str) -> Calibration:
    """That of an embedding model by its name."""
    return CALIBRATIONS.get(model, BY_MEANING)
