"""Fits the weights of `builtin_plugins.rag.answering.calibration` on labelled answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from builtin_plugins.rag.answering import extractive
from builtin_plugins.rag.answering.calibration import Calibration, calibration_of
from builtin_plugins.rag.answering.signs import Signs
from builtin_plugins.rag.answering.support import Coverage
from tests.benchmarks.answers import Found

NAMES = tuple(field.name for field in fields(Signs))


def fit(everything: Sequence[Found], model: str) -> str:
    """The weights of a model as they stand in the module: of sentences first, then of their signs."""
    found = [one for one in everything if one.candidates]
    how = replace(calibration_of(model), least=-1.0)
    how = replace(how, worth=_worth(found))
    rows = [(signs_of(one, how), _right(one, how)) for one in found]
    bias, weights = _sure(rows)
    shown = "".join(f'    "{name}": {weight:.2f},\n' for name, weight in weights.items())
    return f"{model}: worth {how.worth}, bias {bias:.2f}, sure {{\n{shown}}}"


def signs_of(found: Found, how: Calibration) -> list[float]:
    """The signs of the best sentence, in the order of `NAMES`."""
    scores = extractive.worths(how, found.candidates, found.similarities)
    covered = Coverage(found.asked.asked.text)
    signs = Signs.read(covered, found.passages, found.candidates, found.similarities, scores, found.language)
    return [float(getattr(signs, name)) for name in NAMES]


def _right(found: Found, how: Calibration) -> bool:
    made = extractive.compose(
        found.asked.asked.text,
        found.passages,
        found.candidates,
        found.similarities,
        calibration=how,
        language=found.language,
    )
    return made.supported and found.is_right(made.text, made.cited)


def _worth(found: Sequence[Found]) -> tuple[float, ...]:
    """What tells the sentence that answers from the others, where it is among them."""
    from sklearn.linear_model import LogisticRegression

    rows, labels = list[tuple[float, ...]](), list[bool]()
    for one in found:
        right = [one.is_right(each.text, (each.passage,)) for each in one.candidates]
        if one.asked.asked.expected and any(right):
            rows += extractive.features(one.candidates, one.similarities)
            labels += right
    made = LogisticRegression(C=3.0, max_iter=2000).fit(rows, labels)
    return tuple(made.coef_[0].round(2).tolist())


def _sure(rows: Sequence[tuple[list[float], bool]]) -> tuple[float, Mapping[str, float]]:
    """Bias and weights by name, on signs brought to one scale so that none is held back more than another."""
    from sklearn.linear_model import LogisticRegression

    signs = np.array([row for row, _ in rows])
    right = np.array([one for _, one in rows])
    mean, spread = signs.mean(axis=0), np.maximum(signs.std(axis=0), 1e-6)
    made: Any = LogisticRegression(C=0.1, max_iter=2000).fit((signs - mean) / spread, right)
    scaled = made.coef_[0] / spread
    bias = float(made.intercept_[0] - scaled @ mean)
    return bias, {name: float(weight) for name, weight in zip(NAMES, scaled, strict=True)}
