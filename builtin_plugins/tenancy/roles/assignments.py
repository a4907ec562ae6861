"""Assign, list and take away roles of members. An expired assignment has no effect from that moment."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.authority import read_callers_authority
from builtin_plugins.tenancy.access.cache import changed
from builtin_plugins.tenancy.access.changes import Change
from builtin_plugins.tenancy.access.standing import keys_of_roles, shared_now
from builtin_plugins.tenancy.errors import AssignmentNotFound, MemberNotFound, MemberSuspended
from builtin_plugins.tenancy.models import Membership, Role, RoleAssignment
from builtin_plugins.tenancy.roles.definitions import change_roles, find_usable
from builtin_plugins.tenancy.roles.effective import require_member
from builtin_plugins.tenancy.roles.roles import ROLES
from builtin_plugins.tenancy.roles.schemas import (
    AssignmentOut,
    AssignRequest,
    BulkRoleAssignItem,
    BulkRoleAssignRequest,
    BulkRoleAssignResponse,
)
from kernel.sdk import Caller, PageQuery, PlatformError, Unit, Unprocessable, utc_now

ASSIGNED = "assigned"
ALREADY = "already_assigned"
FAILED = "failed"


def list_page(
    session: Session, caller: Caller, organization_id: int, user_id: int, query: PageQuery
) -> tuple[list[AssignmentOut], int]:
    """The roles assigned to a member here, and how many there are. Raises Forbidden, MemberNotFound."""
    authority = read_callers_authority(session, caller, organization_id)
    require_member(session, authority, user_id, authority.lineage[:1])
    mine = (RoleAssignment.organization_id == organization_id, RoleAssignment.user_id == user_id)
    total = session.scalar(select(func.count()).select_from(RoleAssignment).where(*mine))
    ordered = (
        select(RoleAssignment, Role.name)
        .join(Role, Role.id == RoleAssignment.role_id)
        .where(*mine)
        .order_by(RoleAssignment.role_id)
    )
    rows = session.execute(ordered.limit(query.limit).offset(query.offset))
    now = shared_now(session)
    return [_out(assignment, name, now) for assignment, name in rows], int(total or 0)


def assign(
    unit: Unit, caller: Caller, organization_id: int, user_id: int, body: AssignRequest
) -> tuple[AssignmentOut, bool]:
    """Give a member a role, or change its expiry; returns whether it is new. Raises as `_Assigning`."""
    change = change_roles(unit, caller, organization_id)
    assigning = _prepare(change, body.role_id, body.expires_at, [user_id])
    is_new = user_id not in assigning.existing
    assigning.check_member(user_id)
    if assigning.give(user_id):
        changed(change.unit, [user_id])
    change.session.flush()
    return _out(assigning.existing[user_id], assigning.role.name, unit.now()), is_new


def assign_many(
    unit: Unit, caller: Caller, organization_id: int, body: BulkRoleAssignRequest
) -> BulkRoleAssignResponse:
    """Give many members a role, in one transaction; the result names those who can't have it (spec 2.5)."""
    change = change_roles(unit, caller, organization_id)
    assigning = _prepare(change, body.role_id, body.expires_at, body.user_ids)
    results = [_assign_member(assigning, user_id) for user_id in body.user_ids]
    changed(change.unit, [one.user_id for one in results if one.status == ASSIGNED])
    return BulkRoleAssignResponse(
        results=results,
        assigned_count=sum(one.status == ASSIGNED for one in results),
        failed_count=sum(one.status == FAILED for one in results),
    )


def _assign_member(assigning: _Assigning, user_id: int) -> BulkRoleAssignItem:
    try:
        assigning.check_member(user_id)
    except PlatformError as error:
        return BulkRoleAssignItem(user_id=user_id, status=FAILED, error=error.detail)
    return BulkRoleAssignItem(user_id=user_id, status=ASSIGNED if assigning.give(user_id) else ALREADY)


def remove(unit: Unit, caller: Caller, organization_id: int, user_id: int, role_id: int) -> None:
    """Take a role from a member. Raises AssignmentNotFound, KeyNotHeld."""
    change = change_roles(unit, caller, organization_id)
    assignment = change.session.get(RoleAssignment, (organization_id, user_id, role_id))
    if assignment is None:
        raise AssignmentNotFound()
    _require_to_grant(change, role_id)
    change.session.delete(assignment)
    change.audit("role.unassigned", "account", user_id, before=_state(assignment))
    changed(change.unit, [user_id])


@dataclass(frozen=True)
class _Assigning:
    """The assignment of one role to members of one organization."""

    change: Change
    role: Role
    expires_at: datetime | None
    members: Mapping[int, datetime | None]
    existing: dict[int, RoleAssignment]

    def check_member(self, user_id: int) -> None:
        """Raise MemberNotFound or MemberSuspended unless the account is an active member here."""
        if user_id not in self.members:
            raise MemberNotFound()
        if self.members[user_id] is not None:
            raise MemberSuspended()

    def give(self, user_id: int) -> bool:
        """Assign the role; returns whether anything changed."""
        assignment = self.existing.get(user_id)
        before = None if assignment is None else _state(assignment)
        if assignment is not None and assignment.expires_at == self.expires_at:
            return False
        if assignment is None:
            assignment = RoleAssignment(
                organization_id=self.change.organization_id, user_id=user_id, role_id=self.role.id
            )
            assignment.created_at = utc_now()
            self.change.session.add(assignment)
            self.existing[user_id] = assignment
        assignment.expires_at = self.expires_at
        assignment.assigned_by = self.change.caller.id
        self.change.audit("role.assigned", "account", user_id, before=before, after=_state(assignment))
        return True


def _prepare(
    change: Change, role_id: int, expires_at: datetime | None, user_ids: Collection[int]
) -> _Assigning:
    """Raises RoleNotFound, Unprocessable (a built-in role, an expiry in the past), KeyNotHeld."""
    if expires_at is not None and expires_at <= change.unit.now():
        raise Unprocessable.field(("body", "expires_at"), "must be in the future", expires_at.isoformat())
    [role] = find_usable(change.session, ROLES, change.authority.lineage, [role_id])
    if role.is_builtin:
        raise Unprocessable.field(
            ("body", "role_id"),
            f"'{role.name}' is built in and comes with the membership: POST "
            f'/v1/organizations/{change.organization_id}/members with "org_role": "{role.name}"',
            role_id,
        )
    _require_to_grant(change, role_id)
    members = select(Membership.user_id, Membership.suspended_at).where(
        Membership.organization_id == change.organization_id, Membership.user_id.in_(user_ids)
    )
    existing = select(RoleAssignment).where(
        RoleAssignment.organization_id == change.organization_id,
        RoleAssignment.role_id == role_id,
        RoleAssignment.user_id.in_(user_ids),
    )
    return _Assigning(
        change,
        role,
        expires_at,
        dict(change.session.execute(members).all()),
        {assignment.user_id: assignment for assignment in change.session.scalars(existing)},
    )


def _require_to_grant(change: Change, role_id: int) -> None:
    keys = keys_of_roles(change.session, [role_id])
    change.authority.require_to_grant(key for key, _, _ in keys.get(role_id, ()))


def _out(assignment: RoleAssignment, role_name: str, now: datetime) -> AssignmentOut:
    expires_at = assignment.expires_at
    return AssignmentOut(
        organization_id=assignment.organization_id,
        user_id=assignment.user_id,
        role_id=assignment.role_id,
        role_name=role_name,
        expires_at=expires_at,
        is_expired=expires_at is not None and expires_at <= now,
        assigned_by=assignment.assigned_by,
        created_at=assignment.created_at,
    )


def _state(assignment: RoleAssignment) -> dict[str, Any]:
    """What the audit log records of an assignment."""
    expires_at = assignment.expires_at
    return {
        "role_id": assignment.role_id,
        "expires_at": None if expires_at is None else expires_at.isoformat(),
    }
