"""Where passages found by a walk are placed in the ranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

KEPT: Final = 2
"""First places that a walk never changes: they answer the questions that one passage answers."""

MOVED: Final = 3
"""How many passages a walk moves or adds at most. More do no good, and push others down."""

STEP_WEIGHT: Final = 0.6
"""What a step of the greatest worth counts at least, relative to the best score of the ranking."""

LEAD_WEIGHT: Final = 4.0
"""What it counts by how far the best passage is ahead of the first that may move: the surer the ranking is of
where the walk begins, the less the rest count.
"""

_APART = 2e-6


class Raised(NamedTuple):
    """New scores on the ranking's scale: for what was reached (None for what stays), and for the first places
    that had to be lifted to stay before it.
    """

    reached: list[float | None]
    kept: dict[int, float]


def raised(scores: Sequence[float], reached: Sequence[tuple[int | None, float]]) -> Raised:
    """Where the passages reached go in a ranking with these `scores`, best first.

    `reached` are places in the ranking, None for a passage that it lacks, with the worth of the best step to
    each, best first. A passage that the ranking lacks counts there as its last does. None comes before the
    first `KEPT` of the ranking, nor above the best score.
    """
    made: list[float | None] = [None] * len(reached)
    if not scores or scores[0] <= 0:
        return Raised(made, {})
    lead = 1 - scores[min(KEPT, len(scores) - 1)] / scores[0]
    weight = max(STEP_WEIGHT, LEAD_WEIGHT * lead) * scores[0]
    wanted: dict[int, float] = {}
    for number, (place, worth) in enumerate(reached[:MOVED]):
        if place is None or place >= KEPT:
            own = scores[-1] if place is None else scores[place]
            wanted[number] = own + weight * worth
    ceiling = scores[0] - KEPT * _APART
    for number in sorted(wanted, key=lambda number: -wanted[number]):
        ceiling = made[number] = max(0.0, min(wanted[number], ceiling - _APART))
    highest = max((score for score in made if score is not None), default=0.0)
    kept = {
        place: highest + (KEPT - place) * _APART
        for place in range(1, min(KEPT, len(scores)))
        if scores[place] <= highest
    }
    return Raised(made, kept)
