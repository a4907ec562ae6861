"""Fits the weights of `builtin_plugins.extractive_answers.weights`, and tells what each sign brings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from builtin_plugins.extractive_answers.support import Signs
from tests.benchmarks.answer_sets import HELD_OUT
from tests.benchmarks.answers import Given

Numbers = npt.NDArray[Any]
NAMES = tuple(field.name for field in fields(Signs))
_WRONGLY = 0.09
"""The share of questions with an answer that are refused."""
_LOST = 0.01
"""The share of them that no model is asked about."""


def fit(everything: Sequence[Given]) -> str:
    """The weights fitted on one half, written as in the module, with the figures of the other half."""
    chosen = [one for one in everything if one.signs is not None and one.case.half != HELD_OUT]
    held = [one for one in everything if one.signs is not None and one.case.half == HELD_OUT]
    bias, weights = _fitted(chosen, NAMES)
    there = np.array([one.case.kind == "there" for one in chosen])
    support = _sigmoid(bias + _signs(chosen, NAMES) @ weights)
    sure = _logistic((_signs(chosen, NAMES) @ weights)[:, None], [one.right for one in chosen], None)
    lines = [
        f"BIAS = {bias:.2f}\nWEIGHTS = ({', '.join(f'{one:.2f}' for one in weights)})",
        f"CONFIDENCE = ({sure[0]:.2f}, {sure[1][0]:.2f})",
        f"ENOUGH = {np.quantile(support[there], _WRONGLY):.2f}",
        f"HOPEFUL = {np.quantile(support[there], _LOST):.2f}",
        f"{'all signs':20}{_figures(chosen, held, NAMES)}",
    ]
    for name in NAMES:
        lines.append(f"{'without ' + name:20}{_figures(chosen, held, [one for one in NAMES if one != name])}")
    return "\n".join(lines)


def _figures(chosen: Sequence[Given], held: Sequence[Given], names: Sequence[str]) -> str:
    """What is refused of the held-out half where 9 % of the questions with an answer are."""
    bias, weights = _fitted(chosen, names)
    support = _sigmoid(bias + _signs(held, names) @ weights)
    kinds = np.array([one.case.kind for one in held])
    refused = support < np.quantile(support[kinds == "there"], _WRONGLY)
    right = np.array([one.right for one in held]) & ~refused
    figures = right[kinds == "there"].mean(), refused[kinds == "on"].mean(), refused[kinds == "off"].mean()
    return "right {:.3f}, refused on topic {:.3f}, off topic {:.3f}".format(*figures)


def _fitted(chosen: Sequence[Given], names: Sequence[str]) -> tuple[float, Numbers]:
    """What tells passages with an answer from others; every set counts by the root of its size."""
    sizes = Counter(_kind(one) for one in chosen)
    counts = np.array([sizes[_kind(one)] ** -0.5 for one in chosen])
    return _logistic(_signs(chosen, names), [one.case.kind == "there" for one in chosen], counts)


def _kind(one: Given) -> tuple[str, bool]:
    return one.case.kind, bool(one.case.expected)


def _signs(given: Sequence[Given], names: Sequence[str]) -> Numbers:
    places = [NAMES.index(name) for name in names]
    return np.array([astuple(one.signs) for one in given if one.signs is not None])[:, places]


def _sigmoid(logits: Numbers) -> Numbers:
    made: Numbers = 1.0 / (1.0 + np.exp(-logits))
    return made


def _logistic(signs: Numbers, right: Sequence[bool], counts: Numbers | None) -> tuple[float, Numbers]:
    """Bias and weights, of signs brought to one scale so that none is held back more than another."""
    from sklearn.linear_model import LogisticRegression

    mean, spread = signs.mean(axis=0), np.maximum(signs.std(axis=0), 1e-6)
    made: Any = LogisticRegression(max_iter=2000).fit((signs - mean) / spread, right, counts)
    scaled = made.coef_[0] / spread
    return float(made.intercept_[0] - scaled @ mean), scaled
