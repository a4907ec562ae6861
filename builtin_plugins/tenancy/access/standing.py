"""The current teams and organizations of an account, and the permissions that it holds there."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from sqlalchemy import ColumnElement, Integer, String, and_, bindparam, cast, null, or_, select, union_all
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.models import (
    GroupChild,
    GroupPermission,
    Membership,
    PermissionGroup,
    Role,
    RoleAssignment,
    RoleGroup,
    RolePermission,
    Team,
    TeamMember,
)
from kernel.sdk import Permission, shared_moment

_BELOW = 0  # stands for any organization below it
BUILTIN_ROLES = {"owner": 1, "admin": 2, "member": 3}
OWNER = "owner"
TEAM_ADMIN = "team_admin"


@dataclass(frozen=True, slots=True)
class Grant:
    """A permission key that an account holds in an organization and those below it, with the role it is from.

    Keys of the built-in role `member` only count in the organization itself: authority flows down, membership
    does not. `group_id` is the permission group that contains the key; None if the role itself does.
    `ends` is when it expires, by this process's monotonic clock.
    """

    key: str
    organization_id: int
    role_id: int
    role_name: str
    group_id: int | None = None
    group_name: str | None = None
    ends: float = math.inf

    @property
    def is_valid(self) -> bool:
        """Whether it has not expired."""
        return time.monotonic() < self.ends

    def reaches(self, organization_id: int) -> bool:
        """Whether it counts in the organization where it was given, or in one below."""
        return self.organization_id == organization_id or self.role_id != BUILTIN_ROLES["member"]


@dataclass(frozen=True)
class Standing:
    """The teams (id to team role), unsuspended organizations (id to organization role) and grants."""

    user_id: int
    teams: Mapping[int, str]
    organizations: Mapping[int, str]
    grants: tuple[Grant, ...]

    def holds(self, key: str, lineage: Sequence[int]) -> bool:
        """Whether a key is held in the first of these organizations, directly or from one above."""
        return any(self._has_grant(key, place, lineage[0]) for place in lineage)

    def holds_below(self, key: str, lineage: Iterable[int]) -> bool:
        """Whether a key is held in the first of these organizations and in all below it."""
        return any(self._has_grant(key, place, _BELOW) for place in lineage)

    def grants_in(self, lineage: Sequence[int]) -> list[Grant]:
        """The valid grants that count in the first of these organizations: direct, then inherited ones."""
        return [
            grant
            for place in lineage
            for grant in self._by_place.get(place, ())
            if grant.is_valid and grant.reaches(lineage[0])
        ]

    def places_of(self, key: str) -> list[int]:
        """The organizations in which a key is held directly."""
        return [place for place in self._by_place if self._has_grant(key, place, place)]

    def _has_grant(self, key: str, place: int, wanted_in: int) -> bool:
        grants = self._by_key.get((key, place))
        return any(grant.is_valid and grant.reaches(wanted_in) for grant in grants or ())

    @cached_property
    def _by_key(self) -> Mapping[tuple[str, int], Sequence[Grant]]:
        grants: dict[tuple[str, int], list[Grant]] = defaultdict(list)
        for grant in self.grants:
            grants[grant.key, grant.organization_id].append(grant)
        return dict(grants)

    @cached_property
    def _by_place(self) -> Mapping[int, Sequence[Grant]]:
        grants: dict[int, list[Grant]] = defaultdict(list)
        for grant in self.grants:
            grants[grant.organization_id].append(grant)
        return dict(grants)


NOBODY = Standing(0, {}, {}, ())


def keys_of_builtin(permissions: Mapping[str, Permission], org_role: str) -> list[str]:
    """The keys that a built-in role holds."""
    return [
        one.key for one in permissions.values() if one.scope == "organization" and org_role in one.org_roles
    ]


def read_standing(session: Session, user_id: int, permissions: Mapping[str, Permission]) -> Standing:
    """The standing as this session sees it, past every cache; empty for an unknown account."""
    organizations, teams = read_memberships(session, user_id)
    grants = [*_builtin(organizations, permissions), *_assigned(session, user_id)]
    return Standing(user_id, teams, organizations, tuple(grants))


def read_memberships(session: Session, user_id: int) -> tuple[dict[int, str], dict[int, str]]:
    """Unsuspended organizations (the earliest first) and teams of an account, by id with its role there."""
    of = {"user_id": user_id}
    organizations = session.execute(_ORGANIZATIONS, of).all()
    teams = session.execute(_TEAMS, of).all()
    return {row[0]: row[1] for row in organizations}, {row[0]: row[1] for row in teams}


def keys_of_roles(
    session: Session, role_ids: Collection[int]
) -> dict[int, list[tuple[str, int | None, str | None]]]:
    """The keys of each role as (key, group id, group name), including those of nested groups."""
    keys_by_role: dict[int, list[tuple[str, int | None, str | None]]] = defaultdict(list)
    for role_id, key, group_id, group_name in session.execute(_KEYS_OF_ROLES, {"role_ids": list(role_ids)}):
        keys_by_role[role_id].append((key, group_id, group_name))
    return {
        role_id: sorted(keys, key=lambda entry: (entry[0], entry[1] or 0))
        for role_id, keys in keys_by_role.items()
    }


def _builtin(organizations: Mapping[int, str], permissions: Mapping[str, Permission]) -> Iterable[Grant]:
    scoped = [one for one in permissions.values() if one.scope == "organization"]
    for organization_id, role in organizations.items():
        for permission in scoped:
            if role in permission.org_roles:
                yield Grant(permission.key, organization_id, BUILTIN_ROLES[role], role)


def _assigned(session: Session, user_id: int) -> list[Grant]:
    """The keys of role assignments, except in organizations where the account is suspended."""
    rows = session.execute(_ASSIGNED, {"user_id": user_id}).all()
    keys = keys_of_roles(session, {row.role_id for row in rows}) if rows else {}
    ends = _ends(session, {row.expires_at for row in rows})
    return [
        Grant(key, row.organization_id, row.role_id, row.name, group_id, group_name, ends[row.expires_at])
        for row in rows
        for key, group_id, group_name in keys.get(row.role_id, ())
    ]


def _ends(session: Session, moments: Collection[datetime | None]) -> dict[datetime | None, float]:
    """These moments by this process's monotonic clock; None never comes."""
    ends: dict[datetime | None, float] = {None: math.inf}
    if dated := [moment for moment in moments if moment is not None]:
        here, now = time.monotonic(), shared_now(session)
        ends |= {moment: here + (moment - now).total_seconds() for moment in dated}
    return ends


def shared_now(session: Session) -> datetime:
    """The time now by the clock that all machines share; their own may be wrong."""
    return session.scalars(select(shared_moment(session))).one()


def unexpired(session: Session) -> ColumnElement[bool]:
    """The condition for role assignments that have not expired."""
    return or_(RoleAssignment.expires_at.is_(None), RoleAssignment.expires_at > shared_moment(session))


_USER_ID = bindparam("user_id", type_=Integer)
_ROLE_IDS = bindparam("role_ids", expanding=True, type_=Integer)

_ORGANIZATIONS = (
    select(Membership.organization_id, Membership.org_role)
    .where(Membership.user_id == _USER_ID, Membership.suspended_at.is_(None))
    .order_by(Membership.joined_at, Membership.organization_id)
)

_SUSPENDED_IN = select(Membership.organization_id).where(
    Membership.user_id == _USER_ID, Membership.suspended_at.is_not(None)
)
_TEAMS = (  # without those in an organization where the account is suspended
    select(TeamMember.team_id, TeamMember.team_role)
    .join(Team, Team.id == TeamMember.team_id)
    .where(TeamMember.user_id == _USER_ID)
    .where(or_(Team.organization_id.is_(None), Team.organization_id.not_in(_SUSPENDED_IN)))
    .order_by(TeamMember.team_id)
)

_ASSIGNED = (
    select(RoleAssignment.organization_id, RoleAssignment.role_id, Role.name, RoleAssignment.expires_at)
    .join(Role, Role.id == RoleAssignment.role_id)
    .join(
        Membership,
        and_(
            Membership.organization_id == RoleAssignment.organization_id,
            Membership.user_id == RoleAssignment.user_id,
            Membership.suspended_at.is_(None),
        ),
    )
    .where(RoleAssignment.user_id == _USER_ID)
    .order_by(RoleAssignment.organization_id, RoleAssignment.role_id)
)

_OWN_KEYS = select(
    RolePermission.role_id,
    RolePermission.permission_key,
    cast(null(), Integer).label("group_id"),
    cast(null(), String).label("group_name"),
).where(RolePermission.role_id.in_(_ROLE_IDS))
_ATTACHED = (
    select(RoleGroup.role_id, RoleGroup.group_id)
    .where(RoleGroup.role_id.in_(_ROLE_IDS))
    .cte("reached", recursive=True)
)
_REACHED = _ATTACHED.union(  # "union", not "union all", so that it ends even in a cycle
    select(_ATTACHED.c.role_id, GroupChild.child_group_id).join(
        GroupChild, GroupChild.group_id == _ATTACHED.c.group_id
    )
)
_GROUP_KEYS = (
    select(_REACHED.c.role_id, GroupPermission.permission_key, PermissionGroup.id, PermissionGroup.name)
    .join(PermissionGroup, PermissionGroup.id == _REACHED.c.group_id)
    .join(GroupPermission, GroupPermission.group_id == PermissionGroup.id)
)
_KEYS_OF_ROLES = union_all(_OWN_KEYS, _GROUP_KEYS)
