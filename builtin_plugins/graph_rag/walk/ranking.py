"""Places passages found by a walk in the ranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

KEPT: Final = 2
"""First places that a walk never changes: they serve questions that a single passage answers."""

MOVED: Final = 3
"""The most passages that a walk moves or adds. More don't help, and push others down."""

STEP_WEIGHT: Final = 0.6
"""The minimum weight of a step with the highest worth, relative to the best score of the ranking."""

LEAD_WEIGHT: Final = 4.0
"""Its weight per lead of the best passage over the first that may move: the more certain the ranking is of
the walk's start, the less the rest counts.
"""

_APART = 2e-6


class Raised(NamedTuple):
    """New scores on the ranking's scale: for the reached passages (None if unchanged), and for the first
    places that had to be lifted to stay above them.
    """

    reached: list[float | None]
    lifted: dict[int, float]


def raised(scores: Sequence[float], reached: Sequence[tuple[int | None, float]]) -> Raised:
    """New scores for the reached passages in a ranking with these `scores`, best first.

    `reached` are places in the ranking, None for a passage that is not in it, with the worth of the best step
    to each, best first. A new passage starts from the last score of the ranking. No passage is placed before
    the first `KEPT` or above the best score.
    """
    new_scores: list[float | None] = [None] * len(reached)
    if not scores or scores[0] <= 0:
        return Raised(new_scores, {})
    lead = 1 - scores[min(KEPT, len(scores) - 1)] / scores[0]
    weight = max(STEP_WEIGHT, LEAD_WEIGHT * lead) * scores[0]
    targets: dict[int, float] = {}
    for number, (place, worth) in enumerate(reached[:MOVED]):
        if place is None or place >= KEPT:
            own = scores[-1] if place is None else scores[place]
            targets[number] = own + weight * worth
    ceiling = scores[0] - KEPT * _APART
    for number in sorted(targets, key=lambda number: -targets[number]):
        ceiling = new_scores[number] = max(0.0, min(targets[number], ceiling - _APART))
    highest = max((score for score in new_scores if score is not None), default=0.0)
    lifted = {
        place: highest + (KEPT - place) * _APART
        for place in range(1, min(KEPT, len(scores)))
        if scores[place] <= highest
    }
    return Raised(new_scores, lifted)
