"""Rows that belong to somebody, and the one way to select those that a caller may see (house rule 4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Integer, String, and_, false, or_, true
from sqlalchemy.orm import Mapped, mapped_column

from kernel.auth.principals import Principal

if TYPE_CHECKING:
    from kernel.platform import Platform

VISIBILITIES = ("private", "team", "organization", "shared")


class Owned:
    """Columns of a row that belongs to somebody; mix it into a table.

    `private` rows are the owner's, `team` and `organization` rows also their members', `shared` rows every
    signed-in account's. A row without an owner is open to every signed-in account.
    """

    owner_id: Mapped[int | None] = mapped_column(Integer, index=True)
    visibility: Mapped[str] = mapped_column(String(16), default="private")
    team_id: Mapped[int | None] = mapped_column(Integer, index=True)
    organization_id: Mapped[int | None] = mapped_column(Integer, index=True)


@dataclass(frozen=True)
class Scope:
    """What a caller belongs to, as of now."""

    account_id: int | None
    teams: tuple[int, ...] = ()
    organizations: tuple[int, ...] = ()
    everything: bool = False
    nothing: bool = False

    def sees(self, table: type[Any]) -> ColumnElement[bool]:
        """The predicate for a query over an `Owned` table: rows that the caller may read."""
        if self.everything:
            return true()
        if self.nothing:
            return false()
        ways = [table.owner_id == self.account_id, table.owner_id.is_(None), table.visibility == "shared"]
        if self.teams:
            ways.append(and_(table.visibility == "team", table.team_id.in_(self.teams)))
        if self.organizations:
            ways.append(
                and_(table.visibility == "organization", table.organization_id.in_(self.organizations))
            )
        return or_(*ways)

    def owns(self, row: Any) -> bool:
        """Whether the caller may change a row."""
        return self.everything or row.owner_id is None or row.owner_id == self.account_id


async def scope_of(platform: Platform, principal: Principal) -> Scope:
    """The caller's scope: from the hook `find_scope` where a plugin knows better, else from the token.

    Administrators and services see everything; their own teams still say what they may share with.
    """
    if principal.kind == "anonymous":
        return Scope(None, nothing=True)
    found = await platform.hooks.first("find_scope", principal=principal) if principal.is_user else None
    scope = found if isinstance(found, Scope) else _claimed(principal)
    return replace(scope, everything=True) if principal.is_service or principal.is_admin else scope


def _claimed(principal: Principal) -> Scope:
    return Scope(principal.id, teams=principal.teams, organizations=_organizations(principal))


def _organizations(principal: Principal) -> tuple[int, ...]:
    listed = principal.claims.get("orgs") or ()
    return tuple(item["id"] for item in listed if isinstance(item, dict) and isinstance(item.get("id"), int))
