"""What an account is, as of now: its teams, its organizations, and the permissions it holds there.

Remembered for each account until a notice says that it changed. Whoever changes a membership, a role, a
group or an assignment calls `changed` (or `changed_for_all`) in the same unit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from sqlalchemy import Integer, Select, String, and_, cast, null, or_, select, union_all
from sqlalchemy.ext.asyncio import AsyncSession

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
from kernel.sdk import LiveCache, Permission, Platform, ResourceKey, Unit, utc_now

TOPIC = "tenancy"
EVERYBODY = "*"
_BELOW = 0  # stands for any organization below
BUILTIN_ROLES = {"owner": 1, "admin": 2, "member": 3}


@dataclass(frozen=True, slots=True)
class Grant:
    """A permission key that an account holds in an organization and in those below it, and whence.

    What the built-in role `member` gives stays in the organization itself: authority flows down, membership
    does not. `group_id` is the permission group that holds the key itself; None when the role does.
    """

    key: str
    organization_id: int
    role_id: int
    role_name: str
    group_id: int | None = None
    group_name: str | None = None
    expires_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether it has not expired."""
        return self.expires_at is None or self.expires_at > now

    def reaches(self, organization_id: int) -> bool:
        """Whether it counts in an organization that is where it was given, or below."""
        return self.organization_id == organization_id or self.role_id != BUILTIN_ROLES["member"]


@dataclass(frozen=True)
class Standing:
    """The teams (id to team role), unsuspended organizations (id to organization role) and grants."""

    user_id: int
    teams: Mapping[int, str]
    organizations: Mapping[int, str]
    grants: tuple[Grant, ...]

    def holds(self, key: str, organization_id: int, ancestors: Iterable[int] = ()) -> bool:
        """Whether a key is held in an organization, there or from one of those above it."""
        return any(self._held(key, place, organization_id) for place in (organization_id, *ancestors))

    def commands(self, key: str, lineage: Iterable[int]) -> bool:
        """Whether a key is held in the first of these organizations and in all below it."""
        return any(self._held(key, place, _BELOW) for place in lineage)

    def grants_in(self, organization_id: int, ancestors: Iterable[int] = ()) -> list[Grant]:
        """The valid grants that count in an organization, its own first, then those from above."""
        now = utc_now()
        return [
            grant
            for place in (organization_id, *ancestors)
            for grant in self._by_place.get(place, ())
            if grant.is_valid(now) and grant.reaches(organization_id)
        ]

    def places_of(self, key: str) -> list[int]:
        """The organizations in which a key is held directly."""
        return [place for place in self._by_place if self._held(key, place, place)]

    def _held(self, key: str, place: int, wanted_in: int) -> bool:
        found = self._by_key.get((key, place))
        if found is None:
            return False
        now = utc_now()
        return any(grant.is_valid(now) and grant.reaches(wanted_in) for grant in found)

    @cached_property
    def _by_key(self) -> Mapping[tuple[str, int], Sequence[Grant]]:
        found: dict[tuple[str, int], list[Grant]] = defaultdict(list)
        for grant in self.grants:
            found[grant.key, grant.organization_id].append(grant)
        return dict(found)

    @cached_property
    def _by_place(self) -> Mapping[int, Sequence[Grant]]:
        found: dict[int, list[Grant]] = defaultdict(list)
        for grant in self.grants:
            found[grant.organization_id].append(grant)
        return dict(found)


class Standings:
    """The standings of all who ask, kept fresh by notices."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._cache: LiveCache[Standing] = LiveCache(self._read, platform.settings.account_cache_seconds)
        platform.notices.listen(TOPIC, self._heard)

    async def of(self, user_id: int) -> Standing:
        """The standing of an account, remembered."""
        return await self._cache.get(user_id)

    def _heard(self, key: str) -> None:
        if key == EVERYBODY:
            self._cache.clear()
        else:
            self._cache.invalidate(int(key))

    async def _read(self, user_id: int) -> Standing:
        async with self._platform.database.read() as session:
            return await read_standing(session, user_id, self._platform.permissions)


STANDINGS: ResourceKey[Standings] = ResourceKey("tenancy.standings")


@asynccontextmanager
async def open_standings(platform: Platform) -> AsyncIterator[Standings]:
    """The resource `STANDINGS`."""
    yield Standings(platform)


async def standing_of(platform: Platform, user_id: int) -> Standing:
    """The standing of an account, remembered; an unknown account has an empty one."""
    return await platform.resource(STANDINGS).of(user_id)


async def changed(unit: Unit, user_ids: Iterable[int]) -> None:
    """With this unit's commit, every process reads the standing of these accounts anew."""
    for user_id in sorted(set(user_ids)):
        await unit.notify(TOPIC, str(user_id))


async def changed_for_all(unit: Unit) -> None:
    """The same for everybody: a role or a permission group was changed."""
    await unit.notify(TOPIC, EVERYBODY)


async def read_standing(
    session: AsyncSession, user_id: int, permissions: Mapping[str, Permission]
) -> Standing:
    """The standing as this session sees it, past every cache: for guards inside a unit."""
    organizations, teams = await read_memberships(session, user_id)
    grants = [*_builtin(organizations, permissions), *await _assigned(session, user_id)]
    return Standing(user_id, teams, organizations, tuple(grants))


async def read_memberships(session: AsyncSession, user_id: int) -> tuple[dict[int, str], dict[int, str]]:
    """Unsuspended organizations (the earliest first) and teams of an account, by id with its role there."""
    organizations = await session.execute(_organizations(user_id))
    teams = await session.execute(_teams(user_id))
    return {row[0]: row[1] for row in organizations}, {row[0]: row[1] for row in teams}


def _organizations(user_id: int) -> Select[int, str]:
    return (
        select(Membership.organization_id, Membership.org_role)
        .where(Membership.user_id == user_id, Membership.suspended_at.is_(None))
        .order_by(Membership.joined_at, Membership.organization_id)
    )


def _teams(user_id: int) -> Select[int, str]:
    """Without the teams of an organization in which the account is suspended."""
    suspended = select(Membership.organization_id).where(
        Membership.user_id == user_id, Membership.suspended_at.is_not(None)
    )
    counts = or_(Team.organization_id.is_(None), Team.organization_id.not_in(suspended))
    return (
        select(TeamMember.team_id, TeamMember.team_role)
        .join(Team, Team.id == TeamMember.team_id)
        .where(TeamMember.user_id == user_id, counts)
        .order_by(TeamMember.team_id)
    )


def _builtin(organizations: Mapping[int, str], permissions: Mapping[str, Permission]) -> Iterable[Grant]:
    scoped = [one for one in permissions.values() if one.scope == "organization"]
    for organization_id, role in organizations.items():
        for permission in scoped:
            if role in permission.org_roles:
                yield Grant(permission.key, organization_id, BUILTIN_ROLES[role], role)


async def _assigned(session: AsyncSession, user_id: int) -> list[Grant]:
    """The keys of assigned roles that have not expired, where the membership is not suspended."""
    member = and_(
        Membership.organization_id == RoleAssignment.organization_id,
        Membership.user_id == RoleAssignment.user_id,
        Membership.suspended_at.is_(None),
    )
    query = (
        select(RoleAssignment.organization_id, RoleAssignment.role_id, Role.name, RoleAssignment.expires_at)
        .join(Role, Role.id == RoleAssignment.role_id)
        .join(Membership, member)
        .where(RoleAssignment.user_id == user_id)
        .where(or_(RoleAssignment.expires_at.is_(None), RoleAssignment.expires_at > utc_now()))
        .order_by(RoleAssignment.organization_id, RoleAssignment.role_id)
    )
    rows = (await session.execute(query)).all()
    keys = await keys_of_roles(session, {row.role_id for row in rows}) if rows else {}
    return [
        Grant(key, row.organization_id, row.role_id, row.name, group_id, group_name, row.expires_at)
        for row in rows
        for key, group_id, group_name in keys.get(row.role_id, ())
    ]


async def keys_of_roles(
    session: AsyncSession, role_ids: Collection[int]
) -> dict[int, list[tuple[str, int | None, str | None]]]:
    """By role its keys as (key, group id, group name): its own, and those of its groups, however nested."""
    own = select(
        RolePermission.role_id,
        RolePermission.permission_key,
        cast(null(), Integer).label("group_id"),
        cast(null(), String).label("group_name"),
    ).where(RolePermission.role_id.in_(role_ids))
    reached = (
        select(RoleGroup.role_id, RoleGroup.group_id)
        .where(RoleGroup.role_id.in_(role_ids))
        .cte("reached", recursive=True)
    )
    nested = select(reached.c.role_id, GroupChild.child_group_id).join(
        GroupChild, GroupChild.group_id == reached.c.group_id
    )
    reached = reached.union(nested)  # a union, not "union all": it ends even in a cycle
    grouped = (
        select(reached.c.role_id, GroupPermission.permission_key, PermissionGroup.id, PermissionGroup.name)
        .join(PermissionGroup, PermissionGroup.id == reached.c.group_id)
        .join(GroupPermission, GroupPermission.group_id == PermissionGroup.id)
    )
    found: dict[int, list[tuple[str, int | None, str | None]]] = defaultdict(list)
    for role_id, key, group_id, group_name in await session.execute(union_all(own, grouped)):
        found[role_id].append((key, group_id, group_name))
    return {role_id: sorted(keys, key=lambda one: (one[0], one[1] or 0)) for role_id, keys in found.items()}
