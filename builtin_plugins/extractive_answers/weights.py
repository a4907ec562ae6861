"""Weights of the measure of support, by `python -m tests.benchmarks.answers --fit`."""

from __future__ import annotations

from typing import Final

BIAS: Final = -2.92
WEIGHTS: Final = (3.29, 6.46, 2.33, -1.35, 1.52)
"""Those of `Signs`, in their order: near, lead, coverage, unnamed, foreign.

Without one of them, fewer of the questions that nothing answers are refused where 9 % of those with an answer
are, in points on and off topic: near 0, 4; lead 1, 3; coverage 4, 7; unnamed 5, 2; foreign 0, 1.
Left out, as it brought less than a point: the share of a full match by words.
"""
CONFIDENCE: Final = (-3.81, 1.0)
"""Bias and slope that turn the weighted signs into the probability that a quotation is right."""
ENOUGH: Final = 0.245
"""Below this support, there is no answer without a model."""
HOPEFUL: Final = 0.11
"""Below this, there is none for a model to find, either."""
