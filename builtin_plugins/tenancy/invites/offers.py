"""What invites offer, who may offer it, and whether that still holds when somebody accepts.

An invite is only as good as the sender's rights at the moment of redemption. Once the sender is removed,
demoted, suspended or deactivated, nobody can use it, not even the sender; it works again if the sender
regains the right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.authority import (
    Authority,
    read_authority,
    read_callers_authority,
    read_team_authority,
)
from builtin_plugins.tenancy.access.decisions import require
from builtin_plugins.tenancy.access.tree import find_organization, find_team
from builtin_plugins.tenancy.members.rules import refusal_to_give, refuse
from builtin_plugins.tenancy.models import Invite, Membership, TeamMember
from builtin_plugins.tenancy.permissions import TEAM_MANAGE
from kernel.sdk import Account, Caller, Forbidden, Permission, PlatformError


@dataclass(frozen=True)
class Offer:
    """A role in a team or an organization (exactly one is set), for a number of accounts."""

    role: str
    team_id: int | None = None
    organization_id: int | None = None
    max_uses: int = 1


@dataclass(frozen=True)
class OfferTarget:
    """The team or the organization of an offer; audit entries belong to `scope_org_id`."""

    name: str
    scope_org_id: int | None


def offer_of(invite: Invite) -> Offer:
    """What an invite offers."""
    return Offer(invite.role, invite.team_id, invite.organization_id, invite.max_uses)


def find_target(session: Session, offer: Offer) -> OfferTarget:
    """The target of an offer. Raises TeamNotFound, OrganizationNotFound."""
    if offer.team_id is not None:
        team = find_team(session, offer.team_id)
        return OfferTarget(team.name, team.organization_id)
    organization = find_organization(session, offer.organization_id or 0)
    return OfferTarget(organization.name, organization.id)


def invites_to(offer: Offer) -> ColumnElement[bool]:
    """The predicate for invites to the same team or organization."""
    if offer.team_id is not None:
        return Invite.team_id == offer.team_id
    return Invite.organization_id == offer.organization_id


def member_emails(offer: Offer) -> Select[str]:
    """The case-folded addresses of existing members, including suspended ones."""
    if offer.team_id is not None:
        joined = select(Account.email_key).join(TeamMember, TeamMember.user_id == Account.id)
        return joined.where(TeamMember.team_id == offer.team_id)
    joined = select(Account.email_key).join(Membership, Membership.user_id == Account.id)
    return joined.where(Membership.organization_id == offer.organization_id)


def read_offer_authority(
    session: Session, permissions: Mapping[str, Permission], account_id: int | None, offer: Offer
) -> Authority:
    """What an account may do in the target of an offer, as this session sees it. Raises TeamNotFound."""
    if offer.team_id is not None:
        return read_team_authority(session, permissions, account_id, find_team(session, offer.team_id))
    return read_authority(session, permissions, account_id, offer.organization_id or 0)


def refusal_to_offer(authority: Authority, offer: Offer) -> PlatformError | None:
    """Why this must not be offered; None if it may be."""
    if offer.organization_id is not None:
        return refusal_to_give(authority, offer.role)
    allowed = authority.is_admin or authority.holds(TEAM_MANAGE.key)
    return None if allowed else Forbidden(f"This needs: permission {TEAM_MANAGE.key}")


def may_offer(
    session: Session, permissions: Mapping[str, Permission], sender_id: int | None, offer: Offer
) -> bool:
    """Whether an account may offer this, as this session sees it, past every cache."""
    return refusal_to_offer(read_offer_authority(session, permissions, sender_id, offer), offer) is None


async def check_offer(caller: Caller, offer: Offer) -> None:
    """Raise Forbidden, TeamNotFound, OrganizationNotFound unless the caller may offer this."""
    if offer.team_id is not None:
        await require(caller, TEAM_MANAGE, offer.team_id, or_admin=True)
    else:
        await caller.platform.database.read(_check_role, caller, offer)


def _check_role(session: Session, caller: Caller, offer: Offer) -> None:
    authority = read_callers_authority(session, caller, offer.organization_id or 0)
    refuse(refusal_to_offer(authority, offer))
