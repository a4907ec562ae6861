"""Organizations: make, find, change, switch into. A caller sees those that it belongs to or manages."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, func, select, true
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.errors import NotAMember, OrganizationNotFound, SlugTaken
from builtin_plugins.tenancy.models import Membership, Organization
from builtin_plugins.tenancy.permissions import ORG_VIEW, SETTINGS_MANAGE
from builtin_plugins.tenancy.schemas_organizations import MyOrganization, OrganizationOut, OrganizationUpdate
from builtin_plugins.tenancy.services.access import is_platform_admin
from builtin_plugins.tenancy.services.authority import read_caller
from builtin_plugins.tenancy.services.memberships import LOCK
from builtin_plugins.tenancy.services.standing import standing_of
from builtin_plugins.tenancy.services.tree import find_organization, lineage_of
from kernel.sdk import Forbidden, PageQuery, Platform, Principal, Unit, audit


async def list_page(platform: Platform, query: PageQuery) -> tuple[list[OrganizationOut], int]:
    """All organizations of the instance, oldest first, and how many there are."""
    async with platform.database.read() as session:
        return await _page(session, true(), query)


async def list_below(
    platform: Platform, principal: Principal, organization_id: int, query: PageQuery
) -> tuple[list[OrganizationOut], int]:
    """Those directly below one, as far as the caller may view them. Raises OrganizationNotFound."""
    below = Organization.parent_id == organization_id
    visible = await _visible_below(platform, principal, organization_id)
    async with platform.database.read() as session:
        await find_organization(session, organization_id)
        return await _page(session, below & visible, query)


async def _visible_below(
    platform: Platform, principal: Principal, organization_id: int
) -> ColumnElement[bool]:
    """All for those whose authority flows down from here, else those in which the caller stands itself."""
    if principal.id is None or principal.is_admin or await is_platform_admin(platform, principal):
        return true()
    standing = await standing_of(platform, principal.id)
    lineage = await lineage_of(platform, organization_id)
    if standing.commands(ORG_VIEW.key, lineage):
        return true()
    return Organization.id.in_(standing.places_of(ORG_VIEW.key))


async def _page(
    session: AsyncSession, wanted: ColumnElement[bool], query: PageQuery
) -> tuple[list[OrganizationOut], int]:
    total = await session.scalar(select(func.count()).select_from(Organization).where(wanted))
    counted = select(Organization, _member_count()).where(wanted).order_by(Organization.id)
    rows = await session.execute(counted.limit(query.limit).offset(query.offset))
    return [render(row[0], row[1]) for row in rows], int(total or 0)


async def list_own(platform: Platform, principal: Principal) -> list[MyOrganization]:
    """The caller's organizations, in the order in which it joined; suspended memberships are marked."""
    query = (
        select(Membership, Organization, _member_count())
        .join(Organization, Organization.id == Membership.organization_id)
        .where(Membership.user_id == principal.id)
        .order_by(Membership.joined_at, Organization.id)
    )
    async with platform.database.read() as session:
        return [_own(row[0], row[1], row[2]) for row in await session.execute(query)]


async def get(platform: Platform, organization_id: int) -> OrganizationOut:
    """One organization. Raises OrganizationNotFound."""
    async with platform.database.read() as session:
        return await _counted(session, organization_id)


async def update(
    platform: Platform,
    principal: Principal,
    organization_id: int,
    change: OrganizationUpdate,
    origin: dict[str, Any],
) -> OrganizationOut:
    """Change name or slug. Raises OrganizationNotFound, Forbidden, SlugTaken."""
    async with platform.database.unit() as unit:
        await unit.lock(LOCK)
        found = await find_organization(unit.session, organization_id)
        caller = await read_caller(unit.session, principal, organization_id, platform.permissions)
        if not (caller.is_admin or caller.holds(SETTINGS_MANAGE.key)):
            raise Forbidden(f"This needs: permission {SETTINGS_MANAGE.key}")
        before = state_of(found)
        found.name = change.name or found.name
        found.slug = change.slug or found.slug
        await flush(unit)
        if state_of(found) != before:
            audit(
                unit,
                "organization.updated",
                "organization",
                organization_id,
                before=before,
                after=state_of(found),
                origin=origin,
                scope_org_id=organization_id,
            )
        return await _counted(unit.session, organization_id)


async def switch(platform: Platform, principal: Principal, organization_id: int) -> str:
    """A token for the same session that works in this organization. Raises NotAMember."""
    if principal.id is None:
        raise NotAMember()
    if organization_id not in (await standing_of(platform, principal.id)).organizations:
        raise NotAMember()
    return await platform.accounts.reissue(principal, {"active_tenant_id": organization_id})


async def flush(unit: Unit) -> None:
    """Write the rows of the unit. Raises SlugTaken."""
    try:
        await unit.session.flush()
    except IntegrityError:
        raise SlugTaken() from None


def state_of(organization: Organization) -> dict[str, Any]:
    """What the audit log keeps of an organization."""
    return {"name": organization.name, "slug": organization.slug}


def render(organization: Organization, member_count: int) -> OrganizationOut:
    """The record as clients see it."""
    return OrganizationOut(
        id=organization.id,
        name=organization.name,
        slug=organization.slug,
        parent_id=organization.parent_id,
        created_at=organization.created_at,
        member_count=member_count,
    )


def _own(membership: Membership, organization: Organization, member_count: int) -> MyOrganization:
    suspended = membership.suspended_at is not None
    return MyOrganization(
        id=organization.id,
        name=organization.name,
        slug=organization.slug,
        parent_id=None if suspended else organization.parent_id,
        created_at=organization.created_at,
        member_count=None if suspended else member_count,
        org_role=membership.org_role,
        suspended=suspended,
        joined_at=membership.joined_at,
    )


async def _counted(session: AsyncSession, organization_id: int) -> OrganizationOut:
    query = select(Organization, _member_count()).where(Organization.id == organization_id)
    row = (await session.execute(query)).first()
    if row is None:
        raise OrganizationNotFound()
    return render(row[0], row[1])


def _member_count() -> ScalarSelect[int]:
    return (
        select(func.count())
        .select_from(Membership)
        .where(Membership.organization_id == Organization.id)
        .correlate(Organization)
        .scalar_subquery()
    )
