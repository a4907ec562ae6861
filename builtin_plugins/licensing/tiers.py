"""The tiers and their order (wire-facts section 7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

TIERS = ("free", "community", "pro", "enterprise")
PAID = ("pro", "enterprise")
DEFAULT = "community"

_OTHER_NAMES = {"professional": "pro"}


def canonical_tier(tier: str) -> str | None:
    """The tier under its own name; None for an unknown one."""
    name = _OTHER_NAMES.get(tier, tier)
    return name if name in TIERS else None


def covers(tier: str, required: str) -> bool:
    """Whether the held tier suffices; an unknown tier never suffices and is never reached."""
    mine, needed = canonical_tier(tier), canonical_tier(required)
    return mine is not None and needed is not None and TIERS.index(mine) >= TIERS.index(needed)


def highest(tiers: Iterable[str]) -> str:
    """The best of some known tiers; `community` where there is none, as that needs no license."""
    return max((DEFAULT, *tiers), key=TIERS.index)


def _named(value: Any) -> Any:
    return _OTHER_NAMES.get(value, value) if isinstance(value, str) else value


Tier = Annotated[Literal["free", "community", "pro", "enterprise"], BeforeValidator(_named)]
PaidTier = Annotated[Literal["pro", "enterprise"], BeforeValidator(_named)]
