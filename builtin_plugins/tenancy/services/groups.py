"""Permission groups of an organization: make, find, change, nest, delete."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.errors import (
    DefinedAbove,
    InUse,
    LimitReached,
    NameTaken,
    PermissionGroupNotFound,
)
from builtin_plugins.tenancy.models import GroupChild, GroupPermission, PermissionGroup, RoleGroup
from builtin_plugins.tenancy.schemas_roles import GroupCreate, GroupOut, GroupUpdate, name_key
from builtin_plugins.tenancy.services.nesting import MAX_CHILDREN, check_nesting, load_groups
from builtin_plugins.tenancy.services.role_changes import RoleChange, check_keys, read_lineage, role_change
from builtin_plugins.tenancy.services.role_views import render_groups
from builtin_plugins.tenancy.services.standing import changed_for_all
from kernel.sdk import PageQuery, Platform, Principal

MAX_GROUPS = 500


async def find_groups(
    session: AsyncSession, lineage: Collection[int], group_ids: Collection[int]
) -> list[PermissionGroup]:
    """Groups that are usable here. Raises PermissionGroupNotFound, naming the first that is not."""
    if not group_ids:
        return []
    query = select(PermissionGroup).where(
        PermissionGroup.id.in_(group_ids), PermissionGroup.organization_id.in_(lineage)
    )
    found = {group.id: group for group in await session.scalars(query)}
    for group_id in sorted(group_ids):
        if group_id not in found:
            raise PermissionGroupNotFound(
                f"Permission group {group_id} is not among those usable in this organization"
            )
    return list(found.values())


async def list_page(platform: Platform, organization_id: int, query: PageQuery) -> tuple[list[GroupOut], int]:
    """The groups usable here, and how many there are."""
    async with platform.database.read() as session:
        wanted = PermissionGroup.organization_id.in_(await read_lineage(session, organization_id))
        total = await session.scalar(select(func.count()).select_from(PermissionGroup).where(wanted))
        ordered = select(PermissionGroup).where(wanted).order_by(PermissionGroup.id)
        groups = (await session.scalars(ordered.limit(query.limit).offset(query.offset))).all()
        return await render_groups(session, organization_id, groups), int(total or 0)


async def get(platform: Platform, organization_id: int, group_id: int) -> GroupOut:
    """One group that is usable here."""
    async with platform.database.read() as session:
        found = await find_groups(session, await read_lineage(session, organization_id), [group_id])
        return (await render_groups(session, organization_id, found))[0]


async def list_children(
    platform: Platform, organization_id: int, group_id: int, query: PageQuery
) -> tuple[list[GroupOut], int]:
    """The groups nested directly in one, and how many there are."""
    async with platform.database.read() as session:
        await find_groups(session, await read_lineage(session, organization_id), [group_id])
        nested = select(GroupChild.child_group_id).where(GroupChild.group_id == group_id)
        wanted = PermissionGroup.id.in_(nested)
        total = await session.scalar(select(func.count()).select_from(PermissionGroup).where(wanted))
        ordered = select(PermissionGroup).where(wanted).order_by(PermissionGroup.id)
        groups = (await session.scalars(ordered.limit(query.limit).offset(query.offset))).all()
        return await render_groups(session, organization_id, groups), int(total or 0)


async def create(
    platform: Platform,
    principal: Principal,
    organization_id: int,
    wanted: GroupCreate,
    origin: dict[str, Any],
) -> GroupOut:
    """A new group. Raises Unprocessable, KeyNotHeld, NameTaken, LimitReached."""
    check_keys(platform.permissions, wanted.permissions)
    async with role_change(platform, principal, organization_id, origin) as change:
        change.insist_on(wanted.permissions)
        await _refuse_more(change)
        await _refuse_taken(change, wanted.name)
        group = PermissionGroup(
            organization_id=organization_id,
            name=wanted.name,
            name_key=name_key(wanted.name),
            description=wanted.description,
        )
        change.session.add(group)
        await change.session.flush()
        await _replace_keys(change, group, (), wanted.permissions)
        made = await _shown(change, group)
        change.audit("permission_group.created", "permission_group", group.id, after=_state(made))
    return made


async def update(
    platform: Platform,
    principal: Principal,
    organization_id: int,
    group_id: int,
    wanted: GroupUpdate,
    origin: dict[str, Any],
) -> GroupOut:
    """Change a group; it counts at once wherever it is used. Raises as `create`, and for an inherited one."""
    async with role_change(platform, principal, organization_id, origin) as change:
        group = await _find_own(change, group_id)
        old = await _shown(change, group)
        keys = old.permissions if wanted.permissions is None else wanted.permissions
        check_keys(platform.permissions, keys, known=old.permissions)
        change.insist_on(await _keys(change, group_id) | set(keys))
        if wanted.name is not None:
            await _refuse_taken(change, wanted.name, but=group_id)
            group.name, group.name_key = wanted.name, name_key(wanted.name)
        if wanted.description is not None:
            group.description = wanted.description
        await _replace_keys(change, group, old.permissions, keys)
        new = await _shown(change, group)
        if new != old:
            await _record(change, "permission_group.updated", old, new)
    return new


async def remove(
    platform: Platform,
    principal: Principal,
    organization_id: int,
    group_id: int,
    *,
    force: bool,
    origin: dict[str, Any],
) -> None:
    """Delete a group. Raises InUse while a role or a group uses it, unless `force` takes it out of all."""
    async with role_change(platform, principal, organization_id, origin) as change:
        group = await _find_own(change, group_id)
        change.insist_on(await _keys(change, group_id))
        uses = await _uses(change.session, group_id)
        if any(uses.values()) and not force:
            raise InUse(
                f"{len(uses['roles'])} role(s) and {len(uses['permission_groups'])} permission group(s) "
                "use it; take it out of them, or delete it with ?force=true"
            )
        old = await _shown(change, group)
        await change.session.delete(group)
        before = {**_state(old), "used_by": uses}
        change.audit("permission_group.deleted", "permission_group", group_id, before=before)
        await changed_for_all(change.unit)


async def add_child(
    platform: Platform,
    principal: Principal,
    organization_id: int,
    group_id: int,
    child_id: int,
    origin: dict[str, Any],
) -> tuple[GroupOut, bool]:
    """Nest a group in another; whether it was not there before. Raises GroupCycle, GroupsTooDeep, …"""
    async with role_change(platform, principal, organization_id, origin) as change:
        group = await _find_own(change, group_id)
        await find_groups(change.session, change.lineage, [child_id])
        change.insist_on(await _keys(change, group_id) | await _keys(change, child_id))
        old = await _shown(change, group)
        if any(child.id == child_id for child in old.children):
            return old, False
        if len(old.children) >= MAX_CHILDREN:
            raise LimitReached(f"A permission group holds at most {MAX_CHILDREN} others")
        await check_nesting(change.session, group_id, child_id)
        change.session.add(GroupChild(group_id=group_id, child_group_id=child_id))
        await change.session.flush()
        new = await _shown(change, group)
        await _record(change, "permission_group.child_added", old, new)
    return new, True


async def remove_child(
    platform: Platform,
    principal: Principal,
    organization_id: int,
    group_id: int,
    child_id: int,
    origin: dict[str, Any],
) -> None:
    """Take a nested group out of another. Raises PermissionGroupNotFound when it is not in it."""
    async with role_change(platform, principal, organization_id, origin) as change:
        group = await _find_own(change, group_id)
        change.insist_on(await _keys(change, group_id))
        old = await _shown(change, group)
        if all(child.id != child_id for child in old.children):
            raise PermissionGroupNotFound(f"Permission group {child_id} is not nested in this one")
        await change.session.execute(
            delete(GroupChild).where(GroupChild.group_id == group_id, GroupChild.child_group_id == child_id)
        )
        await _record(change, "permission_group.child_removed", old, await _shown(change, group))


async def _record(change: RoleChange, action: str, old: GroupOut, new: GroupOut) -> None:
    change.audit(action, "permission_group", new.id, _state(old), _state(new))
    await changed_for_all(change.unit)


async def _keys(change: RoleChange, group_id: int) -> set[str]:
    return (await load_groups(change.session, [group_id])).keys_within([group_id])


async def _replace_keys(
    change: RoleChange, group: PermissionGroup, before: Collection[str], after: Collection[str]
) -> None:
    gone = set(before) - set(after)
    await change.session.execute(
        delete(GroupPermission).where(
            GroupPermission.group_id == group.id, GroupPermission.permission_key.in_(gone)
        )
    )
    change.session.add_all(
        GroupPermission(group_id=group.id, permission_key=key) for key in set(after) - set(before)
    )
    await change.session.flush()


async def _find_own(change: RoleChange, group_id: int) -> PermissionGroup:
    """A group of this very organization. Raises PermissionGroupNotFound, DefinedAbove."""
    group = (await find_groups(change.session, change.lineage, [group_id]))[0]
    if group.organization_id != change.organization_id:
        raise DefinedAbove(
            f"This group is defined in the organization {group.organization_id} above; change it there"
        )
    return group


async def _refuse_taken(change: RoleChange, name: str, but: int | None = None) -> None:
    query = select(PermissionGroup.id).where(
        PermissionGroup.organization_id == change.organization_id, PermissionGroup.name_key == name_key(name)
    )
    taken = await change.session.scalar(query)
    if taken is not None and taken != but:
        raise NameTaken(
            "A permission group with this name already exists in this organization; choose another"
        )


async def _refuse_more(change: RoleChange) -> None:
    mine = PermissionGroup.organization_id == change.organization_id
    count = await change.session.scalar(select(func.count()).select_from(PermissionGroup).where(mine))
    if int(count or 0) >= MAX_GROUPS:
        raise LimitReached(f"An organization has at most {MAX_GROUPS} permission groups; delete one first")


async def _uses(session: AsyncSession, group_id: int) -> dict[str, list[int]]:
    """The ids of the roles and groups that hold a group directly, here and below."""
    roles = select(RoleGroup.role_id).where(RoleGroup.group_id == group_id).order_by(RoleGroup.role_id)
    groups = select(GroupChild.group_id).where(GroupChild.child_group_id == group_id)
    return {
        "roles": list(await session.scalars(roles)),
        "permission_groups": list(await session.scalars(groups.order_by(GroupChild.group_id))),
    }


async def _shown(change: RoleChange, group: PermissionGroup) -> GroupOut:
    return (await render_groups(change.session, change.organization_id, [group]))[0]


def _state(group: GroupOut) -> dict[str, Any]:
    """What the audit log keeps of a group."""
    return group.model_dump(include={"name", "description", "permissions", "children"})
