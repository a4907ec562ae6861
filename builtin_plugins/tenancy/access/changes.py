"""A change of rights: its unit, under the lock, with the caller's authority as this unit sees it.

The lock keeps others from changing memberships, teams, invites or roles meanwhile. If sessions may end, the
kernel's lock on accounts is taken first, as everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.authority import (
    Authority,
    read_callers_authority,
    read_team_authority,
)
from builtin_plugins.tenancy.access.tree import find_team
from builtin_plugins.tenancy.models import Team
from builtin_plugins.tenancy.permissions import TEAM_MANAGE
from kernel.sdk import Caller, Unit, audit

LOCK = "tenancy"
_ACCOUNTS_LOCK = "accounts"


@dataclass(frozen=True)
class Change:
    """A unit that changes something in an organization or in a team, and the authority of its caller.

    `organization_id` is the organization of its audit entries; None for a team without one.
    """

    unit: Unit
    caller: Caller
    authority: Authority
    organization_id: int | None

    @property
    def session(self) -> Session:
        """The unit's session."""
        return self.unit.session

    def audit(
        self,
        action: str,
        target_type: str,
        target_id: int | str,
        before: dict[str, Any] | None = None,
        after: dict[str, Any] | None = None,
    ) -> None:
        """Record the change in the audit log."""
        audit(
            self.unit,
            action,
            target_type,
            target_id,
            before=before,
            after=after,
            origin=self.caller.origin,
            scope_org_id=self.organization_id,
        )


def lock(unit: Unit, *, sessions_end: bool = False) -> None:
    """Take the lock of tenancy, after that of accounts if sessions may end."""
    if sessions_end:
        unit.lock(_ACCOUNTS_LOCK)
    unit.lock(LOCK)


def change_in(unit: Unit, caller: Caller, organization_id: int, *, sessions_end: bool = False) -> Change:
    """A change in an organization, checking no right. Raises OrganizationNotFound, NotAMember."""
    lock(unit, sessions_end=sessions_end)
    authority = read_callers_authority(unit.session, caller, organization_id)
    return Change(unit, caller, authority, organization_id)


def change_team(unit: Unit, caller: Caller, team_id: int, *, is_own: bool = False) -> tuple[Change, Team]:
    """A change in a team by its managers or, with `is_own`, anybody. Raises TeamNotFound, Forbidden."""
    lock(unit)
    team = find_team(unit.session, team_id)
    authority = read_team_authority(unit.session, caller.platform.permissions, caller.id, team)
    if not is_own:
        authority.require(TEAM_MANAGE, or_admin=True)
    return Change(unit, caller, authority, team.organization_id), team
