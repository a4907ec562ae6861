"""What invites offer, who may offer it, and whether that still holds when somebody accepts.

An invite is worth what its sender may do at the moment of redemption: of somebody who was removed, demoted,
suspended or deactivated since, it admits nobody, himself included, and it does again if he comes back.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.errors import AboveYou
from builtin_plugins.tenancy.models import Invite, Membership, TeamMember
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, TEAM_MANAGE
from builtin_plugins.tenancy.services.access import decide, insist
from builtin_plugins.tenancy.services.team_members import find_team
from builtin_plugins.tenancy.services.tree import find_organization
from kernel.sdk import Account, Platform, Principal


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
    """Raise Forbidden, TeamNotFound or AboveYou unless the caller may offer this."""
    if offer.team_id is not None:
        await insist(platform, principal, TEAM_MANAGE, offer.team_id, or_admin=True)
        return
    home = offer.organization_id or 0
    await insist(platform, principal, MEMBERS_MANAGE, home, or_admin=True)
    if not await _holds_role(platform, principal, home, offer.role):
        raise AboveYou(f"You can't offer the role '{offer.role}', as it may do more here than you may")


async def is_backed(platform: Platform, invite: Invite) -> bool:
    """Whether the sender of an invite may still offer this."""
    state = await platform.account_states.get(invite.invited_by or 0)
    if state is None or not state.is_active:
        return False
    sender = Principal("user", str(state.id), state.id, state.username, state.role, state.platform_admin)
    if invite.team_id is not None:
        return await decide(platform, sender, TEAM_MANAGE, invite.team_id, or_admin=True)
    home = invite.organization_id or 0
    if not await decide(platform, sender, MEMBERS_MANAGE, home, or_admin=True):
        return False
    return await _holds_role(platform, sender, home, invite.role)


async def _holds_role(platform: Platform, principal: Principal, organization_id: int, role: str) -> bool:
    """Whether the caller holds all that a built-in role of an organization may do."""
    scoped = [one for one in platform.permissions.values() if one.scope == "organization"]
    for needed in (one for one in scoped if role in one.org_roles):
        if not await decide(platform, principal, needed, organization_id, or_admin=True):
            return False
    return True
