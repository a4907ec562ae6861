"""Fits the weights of `builtin_plugins.rag.answering.calibration` on labelled answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from builtin_plugins.rag.answering import extractive
from builtin_plugins.rag.answering.calibration import Calibration, calibration_of
from builtin_plugins.rag.answering.signs import Signs
from builtin_plugins.rag.answering.support import Coverage
from tests.benchmarks.answers import Found

Weights = npt.NDArray[Any]
NAMES = tuple(field.name for field in fields(Signs))

_WRONG_SENTENCE = 12.0
"""How much more a wrong answer counts for `sure` where the right one is there: these are few."""


def fit(everything: Sequence[Found], model: str) -> str:
    """The weights of a model as they stand in the module: of sentences first, then of their signs."""
    found = [one for one in everything if one.candidates]
    how = replace(calibration_of(model), least=-1.0)
    how = replace(how, worth=_worth(found))
    signs = np.array([signs_of(one, how) for one in found])
    right = np.array([_right(one, how) for one in found])
    there = np.array([one.there and one.asked.asked.paragraph >= 0 for one in found])
    enough = _logistic(signs, right, np.ones(len(found)))
    sure = _levelled(_logistic(signs, right, np.where(there & ~right, _WRONG_SENTENCE, 1.0)), signs, right)
    return f"{model}: worth {how.worth}\nenough {_shown(enough)}\nsure {_shown(sure)}"


def _shown(model: tuple[float, Weights]) -> str:
    weights = "".join(f'    "{name}": {weight:.2f},\n' for name, weight in zip(NAMES, model[1], strict=True))
    return f"{model[0]:.2f} {{\n{weights}}}"


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


def _logistic(signs: Weights, right: Weights, counts: Weights) -> tuple[float, Weights]:
    """Bias and weights, of signs brought to one scale so that none is held back more than another."""
    from sklearn.linear_model import LogisticRegression

    mean, spread = signs.mean(axis=0), np.maximum(signs.std(axis=0), 1e-6)
    made: Any = LogisticRegression(C=0.1, max_iter=2000).fit((signs - mean) / spread, right, counts)
    scaled = made.coef_[0] / spread
    return float(made.intercept_[0] - scaled @ mean), scaled


def _levelled(model: tuple[float, Weights], signs: Weights, right: Weights) -> tuple[float, Weights]:
    """The same order, its figures brought to the share that is right (Platt 1999)."""
    from sklearn.linear_model import LogisticRegression

    logits = model[0] + signs @ model[1]
    made: Any = LogisticRegression(C=1e6).fit(logits[:, None], right)
    factor = float(made.coef_[0, 0])
    return model[0] * factor + float(made.intercept_[0]), model[1] * factor
