"""What an account owns and others use, and who gets it when the account is deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from kernel.sdk import Scope, Unit


@dataclass(frozen=True, slots=True)
class SharedThing:
    """Something that an account owns and others use. `kind` is in snake_case; `shared_with` is
    `team`, `organization` or `shared` (everybody).
    """

    kind: str
    id: str
    name: str
    shared_with: str


def hand_over_owned(
    unit: Unit, table: type[Any], kind: str, account_id: int, heir: Scope | None
) -> list[SharedThing]:
    """For `hand_over_shared`: make the heir the owner of what others can see in an `Owned` table that has
    `id` and `name`. Return the rows that it can't own because it isn't in their team or organization, or all
    of them if there is no heir.
    """
    shared = (table.owner_id == account_id) & (table.visibility != "private")
    left = []
    for row in unit.session.scalars(select(table).where(shared).order_by(table.id).with_for_update()):
        if heir is not None and _may_own(heir, row):
            row.owner_id = heir.account_id
        else:
            left.append(SharedThing(kind, str(row.id), row.name, row.visibility))
    unit.session.flush()
    return left


def _may_own(heir: Scope, row: Any) -> bool:
    if row.visibility == "team":
        return row.team_id in heir.teams
    return row.visibility == "shared" or row.organization_id in heir.organizations
