"""What invites offer, who may offer it, and whether that still holds when somebody accepts.

An invite is worth what its sender may do at the moment of redemption: of somebody who was removed, demoted,
suspended or deactivated since, it admits nobody, himself included, and it does again if he comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.models import Invite, Membership, TeamMember
from builtin_plugins.tenancy.permissions import TEAM_MANAGE
from builtin_plugins.tenancy.services.access import insist
from builtin_plugins.tenancy.services.authority import read_caller
from builtin_plugins.tenancy.services.team_authority import find_team, manages_team
from builtin_plugins.tenancy.services.tree import find_organization
from kernel.sdk import Account, Permission, Platform, Principal


@dataclass(frozen=True)
class Offer:
    """A role in a team or in an organization (exactly one is set), for a number of accounts."""

    role: str
    team_id: int | None = None
    organization_id: int | None = None
    max_uses: int = 1


@dataclass(frozen=True)
class Target:
    """The team or the organization of an offer; audit entries belong to `scope_org_id`."""

    name: str
    scope_org_id: int | None


def offer_of(invite: Invite) -> Offer:
    """What an invite offers."""
    return Offer(invite.role, invite.team_id, invite.organization_id, invite.max_uses)


async def find_target(session: AsyncSession, offer: Offer) -> Target:
    """Where an offer leads. Raises TeamNotFound, OrganizationNotFound."""
    if offer.team_id is not None:
        team = await find_team(session, offer.team_id)
        return Target(team.name, team.organization_id)
    organization = await find_organization(session, offer.organization_id or 0)
    return Target(organization.name, organization.id)


def invites_to(offer: Offer) -> ColumnElement[bool]:
    """The predicate for invites to the same team or organization."""
    if offer.team_id is not None:
        return Invite.team_id == offer.team_id
    return Invite.organization_id == offer.organization_id


def member_emails(offer: Offer) -> Select[str]:
    """The case-folded addresses of those who are there already, suspended ones included."""
    if offer.team_id is not None:
        joined = select(Account.email_key).join(TeamMember, TeamMember.user_id == Account.id)
        return joined.where(TeamMember.team_id == offer.team_id)
    joined = select(Account.email_key).join(Membership, Membership.user_id == Account.id)
    return joined.where(Membership.organization_id == offer.organization_id)


async def check_offer(platform: Platform, principal: Principal, offer: Offer) -> None:
    """Raise Forbidden, TeamNotFound, OrganizationNotFound unless the caller may offer this."""
    if offer.team_id is not None:
        await insist(platform, principal, TEAM_MANAGE, offer.team_id, or_admin=True)
        return
    async with platform.database.read() as session:
        caller = await read_caller(session, principal, offer.organization_id or 0, platform.permissions)
    refusal = caller.refusal_to_give(offer.role)
    if refusal is not None:
        raise refusal


async def may_offer(
    session: AsyncSession, permissions: Mapping[str, Permission], sender_id: int | None, offer: Offer
) -> bool:
    """Whether an account may offer this, as this session sees it, past every cache."""
    if offer.team_id is not None:
        return await manages_team(session, permissions, sender_id, await find_team(session, offer.team_id))
    account = await session.get(Account, sender_id or 0)
    if account is None or not account.is_active:
        return False
    sender = Principal(
        "user", str(account.id), account.id, account.username, account.role, account.platform_admin
    )
    caller = await read_caller(session, sender, offer.organization_id or 0, permissions)
    return caller.refusal_to_give(offer.role) is None
