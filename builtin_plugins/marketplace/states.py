"""The states of a listing and all transitions between them (spec 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["draft", "submitted", "in_review", "approved", "rejected", "archived"]
Trigger = Literal["submit", "claim", "approve", "reject", "archive"]
Role = Literal["owner", "admin", "service"]

STATUSES: tuple[Status, ...] = ("draft", "submitted", "in_review", "approved", "rejected", "archived")
PUBLIC: Status = "approved"
EDITABLE = frozenset[Status]({"draft", "rejected"})


@dataclass(frozen=True)
class Move:
    """A transition: from and to which state, and who may make it."""

    source: Status
    target: Status
    roles: frozenset[Role]


_ANYONE = frozenset[Role]({"owner", "admin", "service"})
_ADMIN = frozenset[Role]({"admin"})

MOVES: dict[Trigger, tuple[Move, ...]] = {
    "submit": (
        Move("draft", "submitted", _ANYONE),
        Move("rejected", "submitted", frozenset({"owner"})),
    ),
    "claim": (Move("submitted", "in_review", _ADMIN),),
    "approve": (Move("in_review", "approved", _ADMIN),),
    "reject": (Move("submitted", "rejected", _ADMIN), Move("in_review", "rejected", _ADMIN)),
    "archive": (Move("approved", "archived", frozenset({"admin", "service"})),),
}


def find_move(trigger: Trigger, source: str, roles: frozenset[Role]) -> Move | None:
    """The transition that somebody with these roles may make; None for an illegal one."""
    return next((m for m in MOVES[trigger] if m.source == source and m.roles & roles), None)
