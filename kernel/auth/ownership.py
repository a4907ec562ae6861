"""Rows with an owner, and how to select those that a caller can see (house rule 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Integer,
    String,
    and_,
    bindparam,
    literal_column,
    or_,
)
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import TypeEngine

from kernel.db.base import Among, Ids

_NOTHING, _OWN, _EVERYTHING = 0, 1, 2


class Owned:
    """Columns for a row that has an owner. Mix it into a table.

    Only the owner sees `private` rows; members see `team` and `organization` rows too; every signed-in
    account sees `shared` ones. A row without an owner is changed by administrators and services only.
    """

    owner_id: Mapped[int | None] = mapped_column(Integer, index=True)
    visibility: Mapped[str] = mapped_column(String(16), default="private")
    team_id: Mapped[int | None] = mapped_column(Integer, index=True)
    organization_id: Mapped[int | None] = mapped_column(Integer, index=True)


@dataclass(frozen=True)
class Scope:
    """The teams and organizations that a caller currently belongs to."""

    account_id: int | None
    teams: tuple[int, ...] = ()
    organizations: tuple[int, ...] = ()
    everything: bool = False
    nothing: bool = False

    def sees(self, table: type[Any]) -> ColumnElement[bool]:
        """The condition for a query over an `Owned` table: rows that the caller may read."""
        return _visible(table, self.binds)

    @property
    def binds(self) -> dict[str, Any]:
        """The values for a statement that was built with `visible`."""
        return {
            "scope_reach": _EVERYTHING if self.everything else _NOTHING if self.nothing else _OWN,
            "scope_account": self.account_id,
            "scope_teams": self.teams,
            "scope_organizations": self.organizations,
        }

    def owns(self, row: Any) -> bool:
        """Whether the caller may change a row."""
        return self.everything or (row.owner_id is not None and row.owner_id == self.account_id)


def visible(table: Any) -> ColumnElement[bool]:
    """`Scope.sees` for a statement that is built once: pass `scope.binds` among the values when you execute
    it.

    The text of the statement is the same for every caller, so the database compiles and plans it only once.
    `table` is an `Owned` table or its columns (`__table__.c`), which are faster to read than the mapped ones.
    """
    return _visible(table, {})


def _visible(table: Any, values: Mapping[str, Any]) -> ColumnElement[bool]:
    def value(name: str, kind: TypeEngine[Any]) -> BindParameter[Any]:
        return bindparam(name, values[name], kind) if values else bindparam(name, type_=kind)

    reach = value("scope_reach", Integer())
    ways = or_(
        table.owner_id == value("scope_account", Integer()),
        table.visibility == literal_column("'shared'"),
        and_(table.visibility == literal_column("'team'"), Among(table.team_id, value("scope_teams", Ids()))),
        and_(
            table.visibility == literal_column("'organization'"),
            Among(table.organization_id, value("scope_organizations", Ids())),
        ),
    )
    return or_(reach == literal_column(str(_EVERYTHING)), and_(reach == literal_column(str(_OWN)), ways))
