"""Add, change, suspend and remove members of an organization, which keeps an active owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select

from builtin_plugins.tenancy.access.cache import changed
from builtin_plugins.tenancy.access.changes import Change, change_in
from builtin_plugins.tenancy.access.standing import OWNER
from builtin_plugins.tenancy.errors import MemberNotFound, NotAMember, UserNotFound
from builtin_plugins.tenancy.invites.offers import Offer
from builtin_plugins.tenancy.invites.uses import shut_out
from builtin_plugins.tenancy.members.listing import render_one
from builtin_plugins.tenancy.members.owners import keep_an_owner
from builtin_plugins.tenancy.members.rules import RANKS, refusal_to_act_on, refusal_to_give, refuse
from builtin_plugins.tenancy.members.schemas import MemberOut, MemberUpsert
from builtin_plugins.tenancy.models import Membership, RoleAssignment, Team, TeamMember
from kernel.sdk import Account, Caller, Unit, utc_now
from kernel.sdk.accounts import revoke_sessions


@dataclass(frozen=True)
class _Target:
    """The account that a change is about. `row` is None if it isn't a member."""

    change: Change
    organization_id: int
    user_id: int
    row: Membership | None

    @property
    def is_own(self) -> bool:
        """Whether it is the caller itself."""
        return self.change.caller.id == self.user_id

    @property
    def membership(self) -> Membership:
        """The membership. Raises MemberNotFound."""
        if self.row is None:
            raise MemberNotFound()
        return self.row

    def audit(self, action: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        """Record the change."""
        place = {"organization_id": self.organization_id}
        self.change.audit(
            f"organization.{action}",
            "account",
            self.user_id,
            before=None if before is None else {**place, **before},
            after=None if after is None else {**place, **after},
        )


def _target(unit: Unit, caller: Caller, organization_id: int, user_id: int) -> _Target:
    change = change_in(unit, caller, organization_id, sessions_end=True)
    row = change.session.get(Membership, (organization_id, user_id))
    return _Target(change, organization_id, user_id, row)


def upsert(unit: Unit, caller: Caller, organization_id: int, body: MemberUpsert) -> tuple[MemberOut, bool]:
    """Make an account a member with this role, or give a member this role; returns whether it is new.

    Raises UserNotFound (no active account), AboveYou, KeyNotHeld, LastOwner.
    """
    target = _target(unit, caller, organization_id, body.user_id)
    if target.row is None:
        _add(target, body.org_role)
    else:
        _give(target, body.org_role)
    return _member_out(target), target.row is None


def _add(target: _Target, org_role: str) -> None:
    refuse(refusal_to_give(target.change.authority, org_role))
    account = target.change.session.get(Account, target.user_id)
    if account is None or not account.is_active:
        raise UserNotFound()
    row = Membership(organization_id=target.organization_id, user_id=target.user_id, org_role=org_role)
    target.change.session.add(row)
    changed(target.change.unit, [target.user_id])
    target.audit("member_added", None, {"org_role": org_role})


def _give(target: _Target, org_role: str) -> None:
    row, unit, authority = target.membership, target.change.unit, target.change.authority
    old = row.org_role
    if old == org_role:
        return
    lowered = RANKS[org_role] < RANKS[old]
    if not (target.is_own and lowered):
        refuse(refusal_to_act_on(authority, old) or refusal_to_give(authority, org_role))
    if old == OWNER:
        keep_an_owner(unit, target.organization_id, target.user_id)
    row.org_role = org_role
    changed(unit, [target.user_id])
    if lowered:
        revoke_sessions(unit, target.user_id)
    target.audit("member_role_changed", {"org_role": old}, {"org_role": org_role})


def remove(unit: Unit, caller: Caller, organization_id: int, user_id: int) -> None:
    """End a membership, with those in the organization's teams and the roles assigned there.

    Members may leave. Those who are removed, or leave while suspended, need a new invite to come back. Raises
    MemberNotFound, NotAMember, AboveYou, LastOwner.
    """
    target = _target(unit, caller, organization_id, user_id)
    authority = target.change.authority
    if target.is_own and target.row is None and not authority.manages_members:
        raise NotAMember()
    row = target.membership
    if not target.is_own:
        refuse(refusal_to_act_on(authority, row.org_role))
    if row.org_role == OWNER:
        keep_an_owner(unit, organization_id, user_id)
    if not target.is_own or row.suspended_at is not None:
        shut_out(unit, Offer("", organization_id=organization_id), user_id)
    target.audit("member_removed", {**_state(row), **_leave(target)}, None)


def _leave(target: _Target) -> dict[str, Any]:
    """End the membership and what depends on it; returns what that was, for the audit log."""
    session, user_id = target.change.session, target.user_id
    teams = select(Team.id).where(Team.organization_id == target.organization_id)
    own_teams = delete(TeamMember).where(TeamMember.user_id == user_id, TeamMember.team_id.in_(teams))
    assigned = delete(RoleAssignment).where(
        RoleAssignment.user_id == user_id, RoleAssignment.organization_id == target.organization_id
    )
    apart = {"synchronize_session": False}
    team_ids = session.scalars(own_teams.returning(TeamMember.team_id), execution_options=apart)
    role_ids = session.scalars(assigned.returning(RoleAssignment.role_id), execution_options=apart)
    ended = {"team_ids": sorted(team_ids), "role_ids": sorted(role_ids)}
    session.delete(target.membership)
    changed(target.change.unit, [user_id])
    revoke_sessions(target.change.unit, user_id)
    return ended


def set_suspended(
    unit: Unit, caller: Caller, organization_id: int, user_id: int, suspended: bool
) -> MemberOut:
    """Suspend a membership, which ends the member's sessions, or lift the suspension.

    Raises MemberNotFound, AboveYou, LastOwner.
    """
    target = _target(unit, caller, organization_id, user_id)
    row = target.membership
    refuse(refusal_to_act_on(target.change.authority, row.org_role))
    if (row.suspended_at is not None) != suspended:
        before = _state(row)
        if suspended and row.org_role == OWNER:
            keep_an_owner(unit, organization_id, user_id)
        row.suspended_at = utc_now() if suspended else None
        changed(unit, [user_id])
        if suspended:
            revoke_sessions(unit, user_id)
        target.audit("member_suspended" if suspended else "member_unsuspended", before, _state(row))
    return _member_out(target)


def _state(row: Membership) -> dict[str, Any]:
    return {"org_role": row.org_role, "suspended": row.suspended_at is not None}


def _member_out(target: _Target) -> MemberOut:
    """The record as the caller sees it after the change."""
    target.change.session.flush()
    return render_one(target.change.session, target.change.authority, target.organization_id, target.user_id)
