"""Fits the weights of `builtin_plugins.rag.answering.calibration` on labelled answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from builtin_plugins.rag.answering import extractive
from builtin_plugins.rag.answering.calibration import Calibration, calibration_of
from builtin_plugins.rag.answering.candidate import Near
from builtin_plugins.rag.answering.coverage import Coverage
from builtin_plugins.rag.answering.signs import Signs
from builtin_plugins.rag.answering.weighing import features, worths
from tests.benchmarks.answers import Found, weighed

Weights = npt.NDArray[Any]
NAMES = tuple(field.name for field in fields(Signs))

_HELD_BACK = 2.0
_LOST = 0.01
"""The share of questions with an answer that no model is asked about."""

_WRONG_SENTENCE = 6.0
"""How much more a wrong answer counts for `sure` where the right one is there: these are few."""


def fit(everything: Sequence[Found], model: str) -> str:
    """The weights of a model as they stand in the module: of sentences first, then of their signs."""
    found = [one for one in everything if one.candidates]
    how = replace(calibration_of(model), least=0.0)
    how = replace(how, worth=_worth(found))
    signs = np.array([signs_of(one, how) for one in found])
    right = np.array([_right(one, how) for one in found])
    there = np.array([one.there and one.asked.asked.paragraph >= 0 for one in found])
    enough, least = _logistic(signs, right, np.ones(len(found))), calibration_of(model).least
    decided = np.array([_probability(enough, one) for one in signs])
    glanced = np.array([signs_of(one, how, by_glance=True) for one in found])
    glance = _logistic(glanced, decided >= least, np.ones(len(found)))
    hopeful = np.quantile(decided[there], _LOST)
    sure = _levelled(_logistic(signs, right, np.where(there & ~right, _WRONG_SENTENCE, 1.0)), signs, right)
    return f"{model}: worth {how.worth}\n{_shown(enough, glance, sure)}\nhopeful {hopeful:.3f}"


def _probability(model: tuple[float, Weights], signs: Weights) -> float:
    return float(1.0 / (1.0 + np.exp(-(model[0] + signs @ model[1]))))


def _shown(*models: tuple[float, Weights]) -> str:
    """The bias, then each sign, with what it counts in each model."""
    rows = {"bias": [bias for bias, _ in models]}
    rows |= {name: [weights[at] for _, weights in models] for at, name in enumerate(NAMES)}
    return "\n".join(
        f'"{name}": ({", ".join(f"{weight:.2f}" for weight in row)}),' for name, row in rows.items()
    )


def signs_of(found: Found, how: Calibration, *, by_glance: bool = False) -> list[float]:
    """The signs of the best sentence, in the order of `NAMES`."""
    own = Near([found.passages[one.passage - 1].near or 0.0 for one in found.candidates])
    near = own if by_glance else found.near
    scores, covered = worths(how, found.candidates, near), Coverage(found.asked.asked.text)
    signs = Signs.read(covered, found.passages, found.candidates, near, scores, found.language)
    return [float(getattr(signs, name)) for name in NAMES]


def _right(found: Found, how: Calibration) -> bool:
    made = extractive.compose(weighed(found, how), language=found.language)
    return made.supported and found.is_right(made.text, made.cited)


def _worth(found: Sequence[Found]) -> tuple[float, ...]:
    """What tells the sentence that answers from the others beside it, where it is among them."""
    groups = list[tuple[Weights, Weights]]()
    for one in found:
        right = np.array([one.is_right(each.text, (each.passage,)) for each in one.candidates])
        if one.asked.asked.expected and any(right) and not all(right):
            groups.append((np.array(features(one.candidates, one.near)), right))
    return tuple(_choice(groups).round(2).tolist())


def _choice(groups: Sequence[tuple[Weights, Weights]]) -> Weights:
    """Weights by which the right rows of each group are likely to be chosen (McFadden 1974)."""
    from scipy.optimize import minimize

    spread = np.maximum(np.concatenate([rows for rows, _ in groups]).std(axis=0), 1e-6)

    def cost(weights: Weights) -> tuple[float, Weights]:
        total, slope = _HELD_BACK * float(weights @ weights), 2 * _HELD_BACK * weights
        for rows, right in groups:
            chances = _chances(rows / spread @ weights)
            among = np.where(right, chances, 0.0)
            total -= float(np.log(among.sum()))
            slope = slope - (rows / spread).T @ (among / among.sum() - chances)
        return total, slope

    found: Weights = minimize(cost, np.zeros(len(spread)), jac=True, method="L-BFGS-B").x
    return found / spread


def _chances(scores: Weights) -> Weights:
    raw: Weights = np.exp(scores - scores.max())
    return raw / raw.sum()


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
