"""Roles of an organization: make, find, change, delete."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, delete, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.errors import (
    BuiltinRole,
    DefinedAbove,
    InUse,
    LimitReached,
    NameTaken,
    RoleNotFound,
)
from builtin_plugins.tenancy.models import Role, RoleAssignment, RoleGroup, RolePermission
from builtin_plugins.tenancy.schemas_roles import RoleCreate, RoleOut, RoleUpdate, name_key
from builtin_plugins.tenancy.services.groups import find_groups
from builtin_plugins.tenancy.services.nesting import load_groups
from builtin_plugins.tenancy.services.role_changes import RoleChange, check_keys, read_lineage, role_change
from builtin_plugins.tenancy.services.role_views import render_roles
from builtin_plugins.tenancy.services.standing import BUILTIN_ROLES, changed_for_all
from kernel.sdk import PageQuery, Platform, Principal, utc_now

MAX_ROLES = 500


def usable(lineage: Collection[int]) -> ColumnElement[bool]:
    """The roles that may be used in an organization of this lineage."""
    return or_(Role.is_builtin, Role.organization_id.in_(lineage))


async def find_role(session: AsyncSession, lineage: Collection[int], role_id: int) -> Role:
    """A role that is usable here. Raises RoleNotFound."""
    found: Role | None = await session.scalar(select(Role).where(Role.id == role_id, usable(lineage)))
    if found is None:
        raise RoleNotFound(f"Role {role_id} is not among those usable in this organization")
    return found


async def list_page(platform: Platform, organization_id: int, query: PageQuery) -> tuple[list[RoleOut], int]:
    """The roles usable here, the built-in ones first, and how many there are."""
    async with platform.database.read() as session:
        lineage = await read_lineage(session, organization_id)
        wanted = usable(lineage)
        total = await session.scalar(select(func.count()).select_from(Role).where(wanted))
        ordered = select(Role).where(wanted).order_by(Role.is_builtin.desc(), Role.id)
        roles = (await session.scalars(ordered.limit(query.limit).offset(query.offset))).all()
        return await render_roles(session, platform.permissions, organization_id, roles), int(total or 0)


async def get(platform: Platform, organization_id: int, role_id: int) -> RoleOut:
    """One role that is usable here."""
    async with platform.database.read() as session:
        role = await find_role(session, await read_lineage(session, organization_id), role_id)
        return (await render_roles(session, platform.permissions, organization_id, [role]))[0]


async def create(
    platform: Platform, principal: Principal, organization_id: int, wanted: RoleCreate, origin: dict[str, Any]
) -> RoleOut:
    """A new role. Raises Unprocessable, KeyNotHeld, PermissionGroupNotFound, NameTaken, LimitReached."""
    check_keys(platform.permissions, wanted.permissions)
    async with role_change(platform, principal, organization_id, origin) as change:
        contents = _Contents.of(wanted.permissions, wanted.permission_group_ids)
        change.insist_on(await _keys(change, contents))
        await _refuse_more(change)
        await _refuse_taken(change, wanted.name)
        role = Role(
            organization_id=organization_id,
            name=wanted.name,
            name_key=name_key(wanted.name),
            description=wanted.description,
        )
        change.session.add(role)
        await change.session.flush()
        await _replace(change, role, _Contents(), contents)
        made = await _shown(change, role)
        change.audit("role.created", "role", role.id, after=_state(made))
    return made


async def update(
    platform: Platform,
    principal: Principal,
    organization_id: int,
    role_id: int,
    wanted: RoleUpdate,
    origin: dict[str, Any],
) -> RoleOut:
    """Change a role; it counts at once for all who have it. Raises as `create`, and for an inherited one."""
    async with role_change(platform, principal, organization_id, origin) as change:
        role = await _find_own(change, role_id)
        old = await _shown(change, role)
        before = _Contents.of(old.permissions, [group.id for group in old.permission_groups])
        after = before.replaced(wanted)
        check_keys(platform.permissions, wanted.permissions or (), known=before.permissions)
        change.insist_on(await _keys(change, before) | await _keys(change, after))
        if wanted.name is not None:
            await _refuse_taken(change, wanted.name, but=role_id)
            role.name, role.name_key = wanted.name, name_key(wanted.name)
        if wanted.description is not None:
            role.description = wanted.description
        await _replace(change, role, before, after)
        new = await _shown(change, role)
        if new != old:
            change.audit("role.updated", "role", role_id, _state(old), _state(new))
            await changed_for_all(change.unit)
    return new


async def remove(
    platform: Platform,
    principal: Principal,
    organization_id: int,
    role_id: int,
    *,
    force: bool,
    origin: dict[str, Any],
) -> None:
    """Delete a role. Raises InUse while a member has it, unless `force` takes it from all."""
    async with role_change(platform, principal, organization_id, origin) as change:
        role = await _find_own(change, role_id)
        old = await _shown(change, role)
        contents = _Contents.of(old.permissions, [group.id for group in old.permission_groups])
        change.insist_on(await _keys(change, contents))
        holders = await _holders(change.session, role_id)
        if holders and not force:
            raise InUse(
                f"{len(holders)} member(s) have this role; take it from them, or delete it with ?force=true"
            )
        await change.session.delete(role)
        change.audit("role.deleted", "role", role_id, before={**_state(old), "assigned_to": holders})
        await changed_for_all(change.unit)


@dataclass(frozen=True)
class _Contents:
    """What a role holds directly."""

    permissions: frozenset[str] = frozenset()
    groups: frozenset[int] = frozenset()

    @classmethod
    def of(cls, permissions: Collection[str], groups: Collection[int]) -> _Contents:
        return cls(frozenset(permissions), frozenset(groups))

    def replaced(self, wanted: RoleUpdate) -> _Contents:
        """With the lists that were sent in the place of these."""
        keys, groups = wanted.permissions, wanted.permission_group_ids
        return _Contents.of(
            self.permissions if keys is None else keys, self.groups if groups is None else groups
        )


async def _keys(change: RoleChange, contents: _Contents) -> set[str]:
    """All keys of a role of these contents. Raises PermissionGroupNotFound."""
    await find_groups(change.session, change.lineage, contents.groups)
    graph = await load_groups(change.session, contents.groups)
    return graph.keys_within(contents.groups) | contents.permissions


async def _replace(change: RoleChange, role: Role, before: _Contents, after: _Contents) -> None:
    session = change.session
    gone = RolePermission.permission_key.in_(before.permissions - after.permissions)
    await session.execute(delete(RolePermission).where(RolePermission.role_id == role.id, gone))
    out = RoleGroup.group_id.in_(before.groups - after.groups)
    await session.execute(delete(RoleGroup).where(RoleGroup.role_id == role.id, out))
    session.add_all(
        RolePermission(role_id=role.id, permission_key=key) for key in after.permissions - before.permissions
    )
    session.add_all(RoleGroup(role_id=role.id, group_id=one) for one in after.groups - before.groups)
    await session.flush()


async def _find_own(change: RoleChange, role_id: int) -> Role:
    """A role of this very organization. Raises RoleNotFound, BuiltinRole, DefinedAbove."""
    role = await find_role(change.session, change.lineage, role_id)
    if role.is_builtin:
        raise BuiltinRole()
    if role.organization_id != change.organization_id:
        raise DefinedAbove(
            f"This role is defined in the organization {role.organization_id} above; change it there"
        )
    return role


async def _refuse_taken(change: RoleChange, name: str, but: int | None = None) -> None:
    key = name_key(name)
    if key in BUILTIN_ROLES:
        raise NameTaken(f"'{name}' is the name of a built-in role; choose another")
    query = select(Role.id).where(Role.organization_id == change.organization_id, Role.name_key == key)
    taken = await change.session.scalar(query)
    if taken is not None and taken != but:
        raise NameTaken("A role with this name already exists in this organization; choose another")


async def _refuse_more(change: RoleChange) -> None:
    query = select(func.count()).select_from(Role).where(Role.organization_id == change.organization_id)
    if int(await change.session.scalar(query) or 0) >= MAX_ROLES:
        raise LimitReached(f"An organization has at most {MAX_ROLES} roles; delete one first")


async def _holders(session: AsyncSession, role_id: int) -> list[int]:
    """The accounts that have the role now, here and below."""
    valid = or_(RoleAssignment.expires_at.is_(None), RoleAssignment.expires_at > utc_now())
    query = select(RoleAssignment.user_id).where(RoleAssignment.role_id == role_id, valid).distinct()
    return list(await session.scalars(query.order_by(RoleAssignment.user_id)))


async def _shown(change: RoleChange, role: Role) -> RoleOut:
    shown = await render_roles(change.session, change.permissions, change.organization_id, [role])
    return shown[0]


def _state(role: RoleOut) -> dict[str, Any]:
    """What the audit log keeps of a role."""
    return role.model_dump(include={"name", "description", "permissions", "permission_groups"})
