"""Members of an organization: add, change, suspend, remove. An organization keeps an active owner."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select

from builtin_plugins.tenancy.errors import MemberNotFound, NotAMember, UserNotFound
from builtin_plugins.tenancy.models import Membership, RoleAssignment, Team, TeamMember
from builtin_plugins.tenancy.schemas_members import MemberOut
from builtin_plugins.tenancy.services.authority import (
    RANKS,
    Caller,
    read_caller,
)
from builtin_plugins.tenancy.services.invite_offers import Offer
from builtin_plugins.tenancy.services.invite_uses import shut_out
from builtin_plugins.tenancy.services.member_views import render
from builtin_plugins.tenancy.services.memberships import LOCK, OWNER, keep_an_owner
from builtin_plugins.tenancy.services.standing import changed
from kernel.sdk import Account, Platform, PlatformError, Principal, Unit, audit, revoke_sessions, utc_now

ACCOUNTS_LOCK = "accounts"


@dataclass(frozen=True)
class Change:
    """One change of a membership, in its unit and under the locks. `row` None: not a member yet."""

    unit: Unit
    caller: Caller
    row: Membership | None
    organization_id: int
    user_id: int
    origin: dict[str, Any]

    @property
    def is_own(self) -> bool:
        """Whether it is the caller's own membership."""
        return self.caller.id == self.user_id

    @property
    def membership(self) -> Membership:
        """The membership. Raises MemberNotFound."""
        if self.row is None:
            raise MemberNotFound()
        return self.row

    def audit(self, action: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        """Record the change."""
        place = {"organization_id": self.organization_id}
        audit(
            self.unit,
            f"organization.{action}",
            "account",
            self.user_id,
            before=None if before is None else {**place, **before},
            after=None if after is None else {**place, **after},
            origin=self.origin,
            scope_org_id=self.organization_id,
        )


@asynccontextmanager
async def _change(
    platform: Platform, principal: Principal, organization_id: int, user_id: int, origin: dict[str, Any]
) -> AsyncIterator[Change]:
    """A unit in which nobody else changes memberships, or accounts, whose sessions may have to end."""
    async with platform.database.unit() as unit:
        await unit.lock(ACCOUNTS_LOCK)
        await unit.lock(LOCK)
        row = await unit.session.get(Membership, (organization_id, user_id))
        caller = await read_caller(unit.session, principal, organization_id, platform.permissions)
        yield Change(unit, caller, row, organization_id, user_id, origin)


async def upsert(
    platform: Platform,
    principal: Principal,
    organization_id: int,
    user_id: int,
    org_role: str,
    origin: dict[str, Any],
) -> tuple[MemberOut, bool]:
    """Make an account a member with this role, or give a member this role; and whether it is new.

    Raises UserNotFound (no active account), AboveYou, KeyNotHeld, LastOwner.
    """
    async with _change(platform, principal, organization_id, user_id, origin) as change:
        is_new = change.row is None
        if is_new:
            await _add(change, org_role)
        else:
            await _give(change, org_role)
        return await _one(change), is_new


async def _add(change: Change, org_role: str) -> None:
    _refuse(change.caller.refusal_to_give(org_role))
    account = await change.unit.session.get(Account, change.user_id)
    if account is None or not account.is_active:
        raise UserNotFound()
    row = Membership(organization_id=change.organization_id, user_id=change.user_id, org_role=org_role)
    change.unit.session.add(row)
    await changed(change.unit, [change.user_id])
    change.audit("member_added", None, {"org_role": org_role})


async def _give(change: Change, org_role: str) -> None:
    row = change.membership
    old = row.org_role
    if old == org_role:
        return
    lowered = RANKS[org_role] < RANKS[old]
    if not (change.is_own and lowered):
        _refuse(change.caller.refusal_to_act_on(old) or change.caller.refusal_to_give(org_role))
    if old == OWNER:
        await keep_an_owner(change.unit, change.organization_id, change.user_id)
    row.org_role = org_role
    await changed(change.unit, [change.user_id])
    if lowered:
        await revoke_sessions(change.unit, change.user_id)
    change.audit("member_role_changed", {"org_role": old}, {"org_role": org_role})


async def remove(
    platform: Platform, principal: Principal, organization_id: int, user_id: int, origin: dict[str, Any]
) -> None:
    """End a membership, with those in the organization's teams and the roles assigned there.

    Members may leave by themselves. Whoever is removed, or leaves while suspended, needs a new invite to come
    back. Raises MemberNotFound, NotAMember, AboveYou, LastOwner.
    """
    async with _change(platform, principal, organization_id, user_id, origin) as change:
        if change.is_own and change.row is None and not change.caller.manages:
            raise NotAMember()
        row = change.membership
        if not change.is_own:
            _refuse(change.caller.refusal_to_act_on(row.org_role))
        if row.org_role == OWNER:
            await keep_an_owner(change.unit, organization_id, user_id)
        if not change.is_own or row.suspended_at is not None:
            await shut_out(change.unit, Offer("", organization_id=organization_id), user_id)
        change.audit("member_removed", {**_state(row), **await _leave(change)}, None)


async def _leave(change: Change) -> dict[str, Any]:
    """End the membership and what hangs on it; answers for the audit log what that was."""
    session, user_id = change.unit.session, change.user_id
    teams = select(Team.id).where(Team.organization_id == change.organization_id)
    own_teams = delete(TeamMember).where(TeamMember.user_id == user_id, TeamMember.team_id.in_(teams))
    assigned = delete(RoleAssignment).where(
        RoleAssignment.user_id == user_id, RoleAssignment.organization_id == change.organization_id
    )
    apart = {"synchronize_session": False}
    team_ids = await session.scalars(own_teams.returning(TeamMember.team_id), execution_options=apart)
    role_ids = await session.scalars(assigned.returning(RoleAssignment.role_id), execution_options=apart)
    ended = {"team_ids": sorted(team_ids), "role_ids": sorted(role_ids)}
    await session.delete(change.membership)
    await changed(change.unit, [user_id])
    await revoke_sessions(change.unit, user_id)
    return ended


async def set_suspended(
    platform: Platform,
    principal: Principal,
    organization_id: int,
    user_id: int,
    suspended: bool,
    origin: dict[str, Any],
) -> MemberOut:
    """Suspend a membership, which ends the sessions, or lift that.

    Raises MemberNotFound, AboveYou, LastOwner.
    """
    async with _change(platform, principal, organization_id, user_id, origin) as change:
        row = change.membership
        _refuse(change.caller.refusal_to_act_on(row.org_role))
        if (row.suspended_at is not None) != suspended:
            before = _state(row)
            if suspended and row.org_role == OWNER:
                await keep_an_owner(change.unit, organization_id, user_id)
            row.suspended_at = utc_now() if suspended else None
            await changed(change.unit, [user_id])
            if suspended:
                await revoke_sessions(change.unit, user_id)
            change.audit("member_suspended" if suspended else "member_unsuspended", before, _state(row))
        return await _one(change)


def _refuse(why: PlatformError | None) -> None:
    if why is not None:
        raise why


def _state(row: Membership) -> dict[str, Any]:
    return {"org_role": row.org_role, "suspended": row.suspended_at is not None}


async def _one(change: Change) -> MemberOut:
    """The record as the caller sees it after the change."""
    session = change.unit.session
    await session.flush()
    row = await session.get_one(Membership, (change.organization_id, change.user_id))
    account = await session.get_one(Account, change.user_id)
    return (await render(session, change.caller, [(row, account)]))[0]
