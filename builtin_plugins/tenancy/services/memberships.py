"""Memberships as the kernel asks for them: claims of a token, the list of users, the last owner."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, exists, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from builtin_plugins.tenancy.errors import LastOwner
from builtin_plugins.tenancy.models import Membership, Organization
from builtin_plugins.tenancy.permissions import AUDIT_READ
from builtin_plugins.tenancy.services.access import decide
from builtin_plugins.tenancy.services.standing import read_memberships, standing_of
from builtin_plugins.tenancy.services.tree import descendants
from kernel.sdk import Account, Platform, Principal, Unit

LOCK = "tenancy"
OWNER = "owner"
# A token must fit into a header; what is left out of it counts nevertheless, as decisions don't rest on it.
_CLAIM_CHARS = 4000


async def claims_of(unit: Unit, account: Account, previous: Mapping[str, Any] | None) -> dict[str, Any]:
    """`teams`, `orgs`, `tenant_id` and a kept `active_tenant_id`, as of now (decisions.md, tokens)."""
    organizations, teams = await read_memberships(unit.session, account.id)
    claims: dict[str, Any] = {}
    active = (previous or {}).get("active_tenant_id")
    home = next(iter(organizations), None)
    if home is not None:
        claims["tenant_id"] = home
    if isinstance(active, int) and active in organizations:
        claims["active_tenant_id"] = active
    first = sorted(organizations, key=lambda one: one not in (active, home))
    orgs = [{"id": one, "role": organizations[one]} for one in first]
    return {**claims, "orgs": _fitting(orgs), "teams": _fitting(list(teams))}


def _fitting(items: list[Any]) -> list[Any]:
    left = _CLAIM_CHARS // 2
    for place, item in enumerate(items):
        left -= len(json.dumps(item, separators=(",", ":"))) + 1
        if left < 0:
            return items[:place]
    return items


async def memberships_of(
    session: AsyncSession, account_ids: Sequence[int]
) -> dict[int, list[dict[str, Any]]]:
    """By account its organizations as {id, name, slug, role}, the earliest first."""
    query = (
        select(Membership.user_id, Organization.id, Organization.name, Organization.slug, Membership.org_role)
        .join(Organization, Organization.id == Membership.organization_id)
        .where(Membership.user_id.in_(account_ids))
        .order_by(Membership.joined_at, Organization.id)
    )
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for user_id, *fields in await session.execute(query):
        found[user_id].append(dict(zip(("id", "name", "slug", "role"), fields, strict=True)))
    return dict(found)


def members_query(organization_id: int) -> Select[int]:
    """The ids of the accounts of an organization, suspended ones included."""
    return select(Membership.user_id).where(Membership.organization_id == organization_id)


async def audited_organizations(
    platform: Platform, principal: Principal, organization_id: int | None
) -> list[int]:
    """Where the caller may read the audit log: with an organization in it and below, else all such places."""
    if principal.id is None:
        return []
    if organization_id is not None:
        allowed = await decide(platform, principal, AUDIT_READ, organization_id)
        places = [organization_id] if allowed else []
    else:
        places = (await standing_of(platform, principal.id)).places_of(AUDIT_READ.key)
    found = set(places)
    async with platform.database.read() as session:
        for place in places:
            found.update(await descendants(session, place))
    return sorted(found)


async def keep_an_owner(unit: Unit, organization_id: int, leaving: int) -> None:
    """Raise LastOwner unless an active owner other than `leaving` remains. The caller holds the lock."""
    others = _active_owners(organization_id).where(Membership.user_id != leaving)
    if not await unit.session.scalar(others):
        raise LastOwner()


async def keep_owners_of_all(unit: Unit, account: Account) -> None:
    """Raise LastOwner if an account that was just deactivated leaves an organization without an owner."""
    await unit.lock(LOCK)
    other = aliased(Membership)
    somebody_else = exists().where(
        other.organization_id == Membership.organization_id,
        other.user_id != account.id,
        other.org_role == OWNER,
        other.suspended_at.is_(None),
        other.user_id == Account.id,
        Account.is_active,
    )
    query = (
        select(Organization.slug)
        .join(Membership, Membership.organization_id == Organization.id)
        .where(Membership.user_id == account.id, Membership.org_role == OWNER)
        .where(Membership.suspended_at.is_(None), ~somebody_else)
        .order_by(Organization.id)
        .limit(1)
    )
    slug = await unit.session.scalar(query)
    if slug is not None:
        raise LastOwner(f"This account is the last active owner of '{slug}'; make somebody else owner first")


def _active_owners(organization_id: int) -> Select[int]:
    return (
        select(func.count())
        .select_from(Membership)
        .join(Account, Account.id == Membership.user_id)
        .where(Membership.organization_id == organization_id, Membership.org_role == OWNER)
        .where(Membership.suspended_at.is_(None), Account.is_active)
    )
