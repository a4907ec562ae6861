"""Explains why a member has a permission or lacks it: what prevents it, and what would grant it.

Shows nothing that the caller could not look up: only roles and groups usable here, and organizations and
memberships that the caller may view.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.authority import Authority
from builtin_plugins.tenancy.access.standing import (
    BUILTIN_ROLES,
    Grant,
    keys_of_builtin,
    keys_of_roles,
    shared_now,
)
from builtin_plugins.tenancy.models import Membership, Role, RoleAssignment, RoleGroup
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, ROLES_MANAGE
from builtin_plugins.tenancy.roles.granting import Assigners, find_assigners, roles_holding
from builtin_plugins.tenancy.roles.nesting import load_groups
from builtin_plugins.tenancy.roles.schemas import Explanation, GroupRef, Obstacle, Remedy
from kernel.sdk import Account

MAX_REMEDIES = 50

RoleKeys = Sequence[tuple[str, int | None, str | None]]


def explain(
    session: Session, authority: Authority, user_id: int, key: str, grants: Sequence[Grant]
) -> Explanation:
    """The explanation of one key. `grants` are those of the key that count here."""
    administers = _is_known_administrator(session, authority, user_id)
    is_held = bool(grants) or administers
    obstacles = [] if is_held else _obstacles(session, authority, user_id, key)
    remedies = [] if is_held else _remedies(session, authority, user_id, key)
    return Explanation(
        key=key,
        description=authority.permissions[key].description,
        held=is_held,
        summary=_summary(key, grants, obstacles, remedies, administers=administers),
        obstacles=obstacles,
        would_grant=remedies,
    )


def _is_known_administrator(session: Session, authority: Authority, user_id: int) -> bool:
    """Whether the account is a Platform Admin; always false for callers who aren't, as they may not know."""
    if not authority.is_platform_admin:
        return False
    query = select(Account.platform_admin).where(Account.id == user_id, Account.is_active)
    return bool(session.scalar(query))


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
        return f"{key} is held because the account is a Platform Admin; no role grants it."
    words = [f"{key} is not granted here."]
    for obstacle in obstacles:
        why = (
            "the membership is suspended" if obstacle.reason == "suspended" else "the assignment has expired"
        )
        words.append(f"The role '{obstacle.role_name}' would grant it, but {why}.")
    if not remedies:
        words.append("No role available here includes it; someone who holds it can create one.")
    return " ".join(words)


def _obstacles(session: Session, authority: Authority, user_id: int, key: str) -> list[Obstacle]:
    """What would give the account the key if it counted, in the organizations that the caller sees."""
    memberships = {
        member.organization_id: member
        for member in session.scalars(
            select(Membership).where(
                Membership.user_id == user_id, Membership.organization_id.in_(authority.visible_places)
            )
        )
    }
    obstacles = [
        Obstacle(
            reason="suspended",
            organization_id=place,
            role_id=BUILTIN_ROLES[member.org_role],
            role_name=member.org_role,
            since=member.suspended_at,
        )
        for place, member in memberships.items()
        if member.suspended_at is not None
        and member.org_role in authority.permissions[key].org_roles
        and (place == authority.lineage[0] or member.org_role != "member")
    ]
    assignments = (
        select(RoleAssignment, Role.name)
        .join(Role, Role.id == RoleAssignment.role_id)
        .where(
            RoleAssignment.user_id == user_id,
            RoleAssignment.organization_id.in_(authority.visible_places),
            RoleAssignment.role_id.in_(roles_holding(key, authority.lineage)),
        )
    )
    now = shared_now(session)
    for assignment, name in session.execute(assignments):
        member = memberships.get(assignment.organization_id)
        obstacles += _dormant(assignment, name, member.suspended_at if member else None, now)
    return sorted(
        obstacles,
        key=lambda obstacle: (
            authority.lineage.index(obstacle.organization_id),
            obstacle.role_id,
            obstacle.reason,
        ),
    )


def _dormant(
    assignment: RoleAssignment, role_name: str, suspended_at: datetime | None, now: datetime
) -> list[Obstacle]:
    expired = assignment.expires_at is not None and assignment.expires_at <= now
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


def _remedies(session: Session, authority: Authority, user_id: int, key: str) -> list[Remedy]:
    """The roles usable here that contain the key: built-in ones, then others by id."""
    query = select(Role).where(Role.id.in_(roles_holding(key, authority.lineage))).order_by(Role.id)
    roles = session.scalars(query.limit(MAX_REMEDIES)).all()
    contents = keys_of_roles(session, [role.id for role in roles])
    ways = _ways(session, key, contents)
    assigners = find_assigners(session, authority)
    names = [name for name in BUILTIN_ROLES if name in authority.permissions[key].org_roles]
    remedies = [_builtin(authority, name, assigners) for name in names]
    for role in roles:
        keys = {one for one, _, _ in contents[role.id]}
        remedies.append(_custom(authority, user_id, role, keys, ways[role.id], assigners))
    return remedies


def _builtin(authority: Authority, name: str, assigners: Assigners) -> Remedy:
    needed = {MEMBERS_MANAGE.key}
    if name != "member":
        needed.update(keys_of_builtin(authority.permissions, name))
    return Remedy(
        role_id=BUILTIN_ROLES[name],
        role_name=name,
        is_builtin=True,
        permission_groups=[],
        how=(
            f"Give the membership the org_role '{name}': "
            f"POST /v1/organizations/{authority.lineage[0]}/members"
        ),
        assignable_by_caller=all(map(authority.may_grant, needed)),
        assignable_by=assigners.who_hold(needed),
    )


def _custom(
    authority: Authority, user_id: int, role: Role, keys: set[str], way: list[GroupRef], assigners: Assigners
) -> Remedy:
    needed = {ROLES_MANAGE.key, *(key for key in keys if key in authority.permissions)}
    return Remedy(
        role_id=role.id,
        role_name=role.name,
        is_builtin=False,
        permission_groups=way,
        how=(
            "Assign the role to the active member: "
            f"POST /v1/organizations/{authority.lineage[0]}/members/{user_id}/roles"
        ),
        assignable_by_caller=all(map(authority.may_grant, needed)),
        assignable_by=assigners.who_hold(needed),
    )


def _ways(session: Session, key: str, contents: Mapping[int, RoleKeys]) -> dict[int, list[GroupRef]]:
    """By role, the groups on the shortest path to the key; none if the role itself contains it."""
    nested = [role_id for role_id, keys in contents.items() if (key, None, None) not in keys]
    attached: dict[int, list[int]] = defaultdict(list)
    query = select(RoleGroup.role_id, RoleGroup.group_id).where(RoleGroup.role_id.in_(nested))
    for role_id, group_id in session.execute(query.order_by(RoleGroup.role_id, RoleGroup.group_id)):
        attached[role_id].append(group_id)
    graph = load_groups(session, {group_id for groups in attached.values() for group_id in groups})
    return {
        role_id: [
            GroupRef(id=group_id, name=graph.names[group_id])
            for group_id in graph.way_to(key, attached[role_id]) or ()
        ]
        for role_id in contents
    }
