"""Why a member holds a key or does not: what stands in the way, and what would grant it.

Nothing is told that the caller could not look up: roles and groups are those usable here, organizations and
memberships those into which the caller may look.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.models import Membership, Role, RoleAssignment, RoleGroup
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, ROLES_MANAGE
from builtin_plugins.tenancy.schemas_roles import Explanation, GroupRef, Obstacle, Remedy
from builtin_plugins.tenancy.services.authority import keys_of_builtin
from builtin_plugins.tenancy.services.granting import Assigners, find_assigners, roles_holding
from builtin_plugins.tenancy.services.nesting import load_groups
from builtin_plugins.tenancy.services.standing import BUILTIN_ROLES, Grant, keys_of_roles
from builtin_plugins.tenancy.services.viewing import Viewer
from kernel.sdk import Account, utc_now

MAX_REMEDIES = 50

RoleKeys = Sequence[tuple[str, int | None, str | None]]


async def explain(viewer: Viewer, user_id: int, key: str, grants: Sequence[Grant]) -> Explanation:
    """The explanation of one key. `grants` are those of the key that count here."""
    administers = await _is_known_administrator(viewer, user_id)
    held = bool(grants) or administers
    obstacles = [] if held else await _obstacles(viewer, user_id, key)
    remedies = [] if held else await _remedies(viewer, user_id, key)
    return Explanation(
        key=key,
        description=viewer.permissions[key].description,
        held=held,
        summary=_summary(key, grants, obstacles, remedies, administers=administers),
        obstacles=obstacles,
        would_grant=remedies,
    )


async def _is_known_administrator(viewer: Viewer, user_id: int) -> bool:
    """Whether the account is a Platform Admin, as far as the viewer may know: Platform Admins may."""
    if viewer.standing is not None:
        return False
    query = select(Account.platform_admin).where(Account.id == user_id, Account.is_active)
    return bool(await viewer.session.scalar(query))


def _summary(
    key: str,
    grants: Sequence[Grant],
    obstacles: Sequence[Obstacle],
    remedies: Sequence[Remedy],
    *,
    administers: bool,
) -> str:
    if grants:
        roles = ", ".join(sorted({f"'{grant.role_name}'" for grant in grants}))
        return f"{key} is held by the role {roles}."
    if administers:
        return f"{key} is held, as the account is a Platform Admin; no role gives it."
    words = [f"{key} is not held here."]
    for one in obstacles:
        why = "the membership is suspended" if one.reason == "suspended" else "the assignment has expired"
        words.append(f"The role '{one.role_name}' would give it, but {why}.")
    if not remedies:
        words.append("No role that is usable here holds it; somebody who holds it may define one.")
    return " ".join(words)


async def _obstacles(viewer: Viewer, user_id: int, key: str) -> list[Obstacle]:
    """What the account has in the places that the viewer sees, and would hold the key if it counted."""
    memberships = {
        member.organization_id: member
        for member in await viewer.session.scalars(
            select(Membership).where(
                Membership.user_id == user_id, Membership.organization_id.in_(viewer.places)
            )
        )
    }
    found = [
        Obstacle(
            reason="suspended",
            organization_id=place,
            role_id=BUILTIN_ROLES[member.org_role],
            role_name=member.org_role,
            since=member.suspended_at,
        )
        for place, member in memberships.items()
        if member.suspended_at is not None
        and member.org_role in viewer.permissions[key].org_roles
        and (place == viewer.organization_id or member.org_role != "member")
    ]
    assignments = (
        select(RoleAssignment, Role.name)
        .join(Role, Role.id == RoleAssignment.role_id)
        .where(
            RoleAssignment.user_id == user_id,
            RoleAssignment.organization_id.in_(viewer.places),
            RoleAssignment.role_id.in_(roles_holding(key, viewer.lineage)),
        )
    )
    for assignment, name in await viewer.session.execute(assignments):
        member = memberships.get(assignment.organization_id)
        found += _dormant(assignment, name, member.suspended_at if member else None)
    return sorted(found, key=lambda one: (viewer.lineage.index(one.organization_id), one.role_id, one.reason))


def _dormant(assignment: RoleAssignment, role_name: str, suspended_at: datetime | None) -> list[Obstacle]:
    expired = assignment.expires_at is not None and assignment.expires_at <= utc_now()
    reasons = {"suspended": suspended_at, "expired": assignment.expires_at if expired else None}
    return [
        Obstacle.model_validate(
            {
                "reason": reason,
                "organization_id": assignment.organization_id,
                "role_id": assignment.role_id,
                "role_name": role_name,
                "since": since,
            }
        )
        for reason, since in reasons.items()
        if since is not None
    ]


async def _remedies(viewer: Viewer, user_id: int, key: str) -> list[Remedy]:
    """The roles usable here that hold the key: built-in ones, then others by id."""
    query = select(Role).where(Role.id.in_(roles_holding(key, viewer.lineage))).order_by(Role.id)
    roles = (await viewer.session.scalars(query.limit(MAX_REMEDIES))).all()
    contents = await keys_of_roles(viewer.session, [role.id for role in roles])
    ways = await _ways(viewer.session, key, contents)
    assigners = await find_assigners(viewer)
    names = [name for name in BUILTIN_ROLES if name in viewer.permissions[key].org_roles]
    found = [await _builtin(viewer, name, assigners) for name in names]
    for role in roles:
        keys = {one for one, _, _ in contents[role.id]}
        found.append(await _custom(viewer, user_id, role, keys, ways[role.id], assigners))
    return found


async def _builtin(viewer: Viewer, name: str, assigners: Assigners) -> Remedy:
    needed = {MEMBERS_MANAGE.key}
    if name != "member":
        needed.update(keys_of_builtin(viewer.permissions, name))
    return Remedy(
        role_id=BUILTIN_ROLES[name],
        role_name=name,
        is_builtin=True,
        permission_groups=[],
        how=(
            f"Give the membership the org_role '{name}': "
            f"POST /v1/organizations/{viewer.organization_id}/members"
        ),
        assignable_by_caller=all(map(viewer.hands_on, needed)),
        assignable_by=await assigners.who_hold(needed),
    )


async def _custom(
    viewer: Viewer, user_id: int, role: Role, keys: set[str], way: list[GroupRef], assigners: Assigners
) -> Remedy:
    needed = {ROLES_MANAGE.key, *(key for key in keys if key in viewer.permissions)}
    return Remedy(
        role_id=role.id,
        role_name=role.name,
        is_builtin=False,
        permission_groups=way,
        how=(
            "Assign the role to the active member: "
            f"POST /v1/organizations/{viewer.organization_id}/members/{user_id}/roles"
        ),
        assignable_by_caller=all(map(viewer.hands_on, needed)),
        assignable_by=await assigners.who_hold(needed),
    )


async def _ways(
    session: AsyncSession, key: str, contents: Mapping[int, RoleKeys]
) -> dict[int, list[GroupRef]]:
    """By role the groups on the shortest way to the key; none where the role itself holds it."""
    nested = [role_id for role_id, held in contents.items() if (key, None, None) not in held]
    attached: dict[int, list[int]] = defaultdict(list)
    query = select(RoleGroup.role_id, RoleGroup.group_id).where(RoleGroup.role_id.in_(nested))
    for role_id, group_id in await session.execute(query.order_by(RoleGroup.role_id, RoleGroup.group_id)):
        attached[role_id].append(group_id)
    graph = await load_groups(session, {one for groups in attached.values() for one in groups})
    return {
        role_id: [
            GroupRef(id=one, name=graph.names[one]) for one in graph.way_to(key, attached[role_id]) or ()
        ]
        for role_id in contents
    }
