"""Find, change and switch organizations. A caller sees those that it belongs to or manages."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Row, ScalarSelect, func, select, true
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from builtin_plugins.accounts.api import ACCOUNTS
from builtin_plugins.tenancy.access.authority import remembered_authority
from builtin_plugins.tenancy.access.cache import standing_of
from builtin_plugins.tenancy.access.changes import change_in
from builtin_plugins.tenancy.access.tree import find_organization, require_lineage
from builtin_plugins.tenancy.errors import NotAMember, OrganizationNotFound, SlugTaken
from builtin_plugins.tenancy.models import Membership, Organization
from builtin_plugins.tenancy.organizations.schemas import (
    MyOrganization,
    OrganizationOut,
    OrganizationUpdate,
)
from builtin_plugins.tenancy.permissions import ORG_VIEW, SETTINGS_MANAGE
from kernel.sdk import Caller, PageQuery, Unit


def list_page(session: Session, query: PageQuery) -> tuple[list[OrganizationOut], int]:
    """All organizations of the instance, oldest first, and how many there are."""
    return _page(session, true(), query)


async def list_below(
    caller: Caller, organization_id: int, query: PageQuery
) -> tuple[list[OrganizationOut], int]:
    """Those directly below one, as far as the caller may view them. Raises OrganizationNotFound."""
    condition = (Organization.parent_id == organization_id) & await _visible_below(caller, organization_id)
    return await caller.platform.database.read(_page_below, organization_id, condition, query)


async def _visible_below(caller: Caller, organization_id: int) -> ColumnElement[bool]:
    """All, if the caller's authority extends to those below; else those that the caller is a member of."""
    if caller.id is None or caller.principal.is_admin:
        return true()
    authority = await remembered_authority(caller, organization_id=organization_id)
    if authority.is_platform_admin or authority.standing.holds_below(ORG_VIEW.key, authority.lineage):
        return true()
    return Organization.id.in_(authority.standing.places_of(ORG_VIEW.key))


def _page_below(
    session: Session, organization_id: int, condition: ColumnElement[bool], query: PageQuery
) -> tuple[list[OrganizationOut], int]:
    require_lineage(session, organization_id)
    return _page(session, condition, query)


def _page(
    session: Session, condition: ColumnElement[bool], query: PageQuery
) -> tuple[list[OrganizationOut], int]:
    total = session.scalar(select(func.count()).select_from(Organization).where(condition))
    ordered = _RECORDS.where(condition).order_by(Organization.id)
    rows = session.execute(ordered.limit(query.limit).offset(query.offset))
    return [OrganizationOut(**row) for row in rows.mappings()], int(total or 0)


def list_own(session: Session, user_id: int | None) -> list[MyOrganization]:
    """The caller's organizations, in the order in which it joined; suspended memberships are marked."""
    query = (
        _RECORDS.add_columns(
            Membership.org_role, Membership.suspended_at, Membership.joined_at, Membership.managed_since
        )
        .join(Membership, Membership.organization_id == Organization.id)
        .where(Membership.user_id == user_id)
        .order_by(Membership.joined_at, Organization.id)
    )
    return [_own(row) for row in session.execute(query)]


def get(session: Session, organization_id: int) -> OrganizationOut:
    """One organization. Raises OrganizationNotFound."""
    row = session.execute(_RECORDS.where(Organization.id == organization_id)).mappings().first()
    if row is None:
        raise OrganizationNotFound()
    return OrganizationOut(**row)


def update(unit: Unit, caller: Caller, organization_id: int, body: OrganizationUpdate) -> OrganizationOut:
    """Change name or slug. Raises OrganizationNotFound, Forbidden, SlugTaken."""
    change = change_in(unit, caller, organization_id)
    change.authority.require(SETTINGS_MANAGE, or_admin=True)
    organization = find_organization(change.session, organization_id)
    before = state_of(organization)
    organization.name = body.name or organization.name
    organization.slug = body.slug or organization.slug
    flush(unit)
    after = state_of(organization)
    if after != before:
        change.audit("organization.updated", "organization", organization_id, before, after)
    return get(change.session, organization_id)


async def switch(caller: Caller, organization_id: int) -> str:
    """A token for the same session, with this organization active. Raises NotAMember."""
    platform, principal = caller.platform, caller.principal
    if principal.id is None:
        raise NotAMember()
    if organization_id not in (await standing_of(platform, principal.id)).organizations:
        raise NotAMember()
    return await platform.resource(ACCOUNTS).reissue(principal, {"active_tenant_id": organization_id})


def flush(unit: Unit) -> None:
    """Write the rows of the unit. Raises SlugTaken."""
    try:
        unit.session.flush()
    except IntegrityError:
        raise SlugTaken() from None


def state_of(organization: Organization) -> dict[str, Any]:
    """What the audit log records of an organization."""
    return {"name": organization.name, "slug": organization.slug}


def _own(row: Row[Any]) -> MyOrganization:
    suspended = row.suspended_at is not None
    return MyOrganization(
        id=row.id,
        name=row.name,
        slug=row.slug,
        parent_id=None if suspended else row.parent_id,
        created_at=row.created_at,
        member_count=None if suspended else row.member_count,
        org_role=row.org_role,
        suspended=suspended,
        joined_at=row.joined_at,
        managed=row.managed_since is not None,
    )


def _member_count() -> ScalarSelect[int]:
    return (
        select(func.count())
        .select_from(Membership)
        .where(Membership.organization_id == Organization.id)
        .correlate(Organization)
        .scalar_subquery()
    )


_RECORDS = select(
    Organization.id,
    Organization.name,
    Organization.slug,
    Organization.parent_id,
    Organization.created_at,
    _member_count().label("member_count"),
)
