"""Relations by nearness, for engines without grammar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..extraction.mentions import Mention
from .protocol import CO_OCCURS_WITH, EntityLink

FARTHEST = 200  # characters between two mentions
_NEXT = 4  # following mentions that each is related to
_HALF = 50.0  # characters after which the weight is halved


def near(mentions: Sequence[Mention]) -> Iterator[EntityLink]:
    """Relate each mention to those that follow closely; the weight falls with distance."""
    for at, first in enumerate(mentions):
        for second in mentions[at + 1 : at + 1 + _NEXT]:
            distance = max(0, second.start - first.end)
            if distance > FARTHEST:
                break
            if second.key != first.key:
                weight = round(_HALF / (_HALF + distance), 4)
                yield EntityLink(
                    first.key,
                    CO_OCCURS_WITH,
                    second.key,
                    "CO_OCCURRENCE",
                    weight,
                    first.start,
                    max(first.end, second.end),
                )
