"""A new organization: its row, its place in the tree, its owner and its default team, all or nothing."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.errors import SlugTaken, TooDeep
from builtin_plugins.tenancy.models import Membership, Organization, Team
from builtin_plugins.tenancy.permissions import SETTINGS_MANAGE
from builtin_plugins.tenancy.schemas_organizations import OrganizationCreate, OrganizationCreated
from builtin_plugins.tenancy.schemas_teams import name_key
from builtin_plugins.tenancy.services import teams
from builtin_plugins.tenancy.services.access import TEAM_ADMIN, decide, is_platform_admin
from builtin_plugins.tenancy.services.authority import read_caller
from builtin_plugins.tenancy.services.memberships import LOCK, OWNER
from builtin_plugins.tenancy.services.organizations import flush, render, state_of
from builtin_plugins.tenancy.services.standing import changed
from builtin_plugins.tenancy.services.team_members import admit
from builtin_plugins.tenancy.services.tree import ancestors, place
from builtin_plugins.tenancy.settings import TenancySettings
from kernel.sdk import Account, Forbidden, Platform, Principal, Unit, Unprocessable, audit

_TEAM_NAME_LIMIT = 255
_NEEDS = (
    "This needs: instance administrators, or for a sub-organization the permission "
    f"{SETTINGS_MANAGE.key} in the organization above"
)


async def create(
    platform: Platform, principal: Principal, wanted: OrganizationCreate, origin: dict[str, Any]
) -> OrganizationCreated:
    """A new organization. Raises Forbidden, SlugTaken, TooDeep, Unprocessable (owner or parent unknown)."""
    await _insist(platform, principal, wanted.parent_id)
    owner_id = wanted.owner_user_id or principal.id
    assert owner_id is not None  # only an account passes `_insist`
    depth = platform.settings_of(TenancySettings).max_tree_depth
    async with platform.database.unit() as unit:
        await unit.lock(LOCK)
        await _check_owner(unit.session, owner_id)
        await _check_parent(unit.session, wanted.parent_id, depth)
        await _insist_still(unit.session, platform, principal, wanted.parent_id)
        organization = await _insert(unit, wanted)
        organization_id = int(organization.id)
        unit.session.add(Membership(organization_id=organization_id, user_id=owner_id, org_role=OWNER))
        await unit.session.flush()
        team = await _default_team(unit, organization, owner_id)
        await changed(unit, [owner_id])
        scope: dict[str, Any] = {"origin": origin, "scope_org_id": organization_id}
        made = {**state_of(organization), "parent_id": wanted.parent_id}
        audit(unit, "organization.created", "organization", organization_id, after=made, **scope)
        added = {"organization_id": organization_id, "org_role": OWNER}
        audit(unit, "organization.member_added", "account", owner_id, after=added, **scope)
        audit(unit, "team.created", "team", team.id, after={"name": team.name}, **scope)
    record = render(organization, 1).model_dump()
    return OrganizationCreated(**record, owner_user_id=owner_id, default_team_id=team.id)


async def _insist(platform: Platform, principal: Principal, parent_id: int | None) -> None:
    """Instance administrators and Platform Admins may; below an organization also who manages that one."""
    if principal.is_admin or await is_platform_admin(platform, principal):
        return
    if parent_id is not None and await decide(platform, principal, SETTINGS_MANAGE, parent_id):
        return
    raise Forbidden(_NEEDS)


async def _insist_still(
    session: AsyncSession, platform: Platform, principal: Principal, parent_id: int | None
) -> None:
    """The same as this session sees it: whoever lost the right a moment ago must gain no foothold below."""
    if principal.is_admin or parent_id is None:
        return
    caller = await read_caller(session, principal, parent_id, platform.permissions)
    if not caller.holds(SETTINGS_MANAGE.key):
        raise Forbidden(_NEEDS)


async def _check_owner(session: AsyncSession, owner_id: int) -> None:
    query = select(Account.id).where(Account.id == owner_id, Account.is_active)
    if await session.scalar(query) is None:
        text = "there is no active account with this id"
        raise Unprocessable.field(("body", "owner_user_id"), text, owner_id)


async def _check_parent(session: AsyncSession, parent_id: int | None, depth: int) -> None:
    if parent_id is None:
        return
    if await session.get(Organization, parent_id) is None:
        raise Unprocessable.field(("body", "parent_id"), "there is no organization with this id", parent_id)
    if len(await ancestors(session, parent_id)) + 2 > depth:
        raise TooDeep(f"Organizations may stand at most {depth} deep (PLATFORM_TENANCY_MAX_TREE_DEPTH)")


async def _insert(unit: Unit, wanted: OrganizationCreate) -> Organization:
    if await unit.session.scalar(select(Organization.id).where(Organization.slug == wanted.slug)) is not None:
        raise SlugTaken()
    organization = Organization(name=wanted.name, slug=wanted.slug, parent_id=wanted.parent_id)
    unit.session.add(organization)
    await flush(unit)
    await place(unit, organization)
    return organization


async def _default_team(unit: Unit, organization: Organization, owner_id: int) -> Team:
    """Called like the organization, with its slug where another team is called so already."""
    name, number = _team_name(organization.name, ""), 1
    while await teams.is_taken(unit.session, name):
        suffix = f" ({organization.slug})" if number == 1 else f" ({organization.slug} {number})"
        name, number = _team_name(organization.name, suffix), number + 1
    team = await teams.insert(unit, name, "", organization.id)
    await admit(unit, team, owner_id, TEAM_ADMIN)
    return team


def _team_name(name: str, suffix: str) -> str:
    """As much of the name as a team's may hold, whose key can be longer than itself."""
    while len(name_key(name + suffix)) > _TEAM_NAME_LIMIT:
        name = name[:-1]
    return name + suffix
