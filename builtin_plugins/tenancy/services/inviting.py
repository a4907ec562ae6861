"""Inviting: one address, or many at once with a result for each. Only the hash of a token is kept."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.errors import AlreadyMember
from builtin_plugins.tenancy.models import Invite
from builtin_plugins.tenancy.schemas_invites import BulkReason, Email
from builtin_plugins.tenancy.services.invite_mail import Issued, deliver
from builtin_plugins.tenancy.services.invite_offers import (
    Offer,
    Target,
    check_offer,
    find_target,
    invites_to,
    may_offer,
    member_emails,
    offer_of,
)
from builtin_plugins.tenancy.services.invite_uses import is_closed_to_addressee
from builtin_plugins.tenancy.services.invites import has_status, record, token_hash
from builtin_plugins.tenancy.services.memberships import LOCK
from builtin_plugins.tenancy.settings import TenancySettings
from kernel.sdk import Account, Forbidden, Permission, Platform, Principal, Unit, utc_now

_ADDRESS: TypeAdapter[str] = TypeAdapter(Email)
_ERRORS: dict[BulkReason, str] = {
    "invalid_email": "This is not an e-mail address",
    "duplicate_in_request": "The address stands further up in this request already",
    "already_member": "An account with this address is a member already",
    "already_invited": "An invite to this address is pending already; revoke it to send another",
}


@dataclass
class Outcome:
    """What became of one address of a bulk request: an invite, or a reason."""

    email: str
    address: str = ""
    reason: BulkReason | None = None
    rule: str | None = None
    issued: Issued | None = None

    @property
    def key(self) -> str:
        """What equal addresses have in common."""
        return self.address.casefold()

    @property
    def error(self) -> str | None:
        """The reason in words."""
        return None if self.reason is None else _ERRORS[self.reason]


async def issue(
    platform: Platform, principal: Principal, offer: Offer, email: str, origin: dict[str, Any]
) -> Issued:
    """One invite. Raises Forbidden, TeamNotFound, OrganizationNotFound, AboveYou, AlreadyMember.

    Unlike in bulk, an address may be invited again while an invite is pending: the way out for an inviter who
    lost the token. The earlier invite stays, until it is revoked.
    """
    async with _offering(platform, principal, offer) as (unit, target):
        members = member_emails(offer).where(Account.email_key == email.casefold())
        if await unit.session.scalar(members) is not None:
            raise AlreadyMember("An account with this address is a member already")
        issued = _new(platform, principal, offer, email)
        await _store(unit, target, [issued], origin)
    await deliver(platform, principal.username, target, [issued])
    return issued


async def issue_many(
    platform: Platform, principal: Principal, offer: Offer, emails: Sequence[str], origin: dict[str, Any]
) -> list[Outcome]:
    """An invite for each address that can have one, all in one transaction; the others say why not."""
    outcomes = _judge(emails)
    async with _offering(platform, principal, offer) as (unit, target):
        await _refuse_known(unit.session, platform.permissions, offer, outcomes)
        for outcome in outcomes:
            if outcome.reason is None:
                outcome.issued = _new(platform, principal, offer, outcome.address)
        issued = [outcome.issued for outcome in outcomes if outcome.issued is not None]
        await _store(unit, target, issued, origin)
    await deliver(platform, principal.username, target, issued)
    return outcomes


@asynccontextmanager
async def _offering(
    platform: Platform, principal: Principal, offer: Offer
) -> AsyncIterator[tuple[Unit, Target]]:
    """A unit for new invites of whoever may send them. Strangers are refused before they wait for a lock."""
    await check_offer(platform, principal, offer)
    async with platform.database.unit() as unit:
        await unit.lock(LOCK)
        target = await find_target(unit.session, offer)
        if not await may_offer(unit.session, platform.permissions, principal.id, offer):
            raise Forbidden()
        yield unit, target


def _judge(emails: Sequence[str]) -> list[Outcome]:
    """Which entries are addresses, and which stand there twice."""
    outcomes, seen = [], set()
    for email in emails:
        outcome = _parse(email)
        if outcome.address and outcome.key in seen:
            outcome.reason = "duplicate_in_request"
        seen.add(outcome.key)
        outcomes.append(outcome)
    return outcomes


def _parse(email: str) -> Outcome:
    try:
        address = _ADDRESS.validate_python(email)
    except ValidationError as error:
        return Outcome(email, reason="invalid_email", rule=error.errors()[0]["msg"])
    return Outcome(email, address)


async def _refuse_known(
    session: AsyncSession, permissions: Mapping[str, Permission], offer: Offer, outcomes: Sequence[Outcome]
) -> None:
    keys = [outcome.key for outcome in outcomes if outcome.reason is None]
    members = set(await session.scalars(member_emails(offer).where(Account.email_key.in_(keys))))
    invited = await _invited(session, permissions, offer, keys)
    for outcome in outcomes:
        if outcome.reason is None and outcome.key in members:
            outcome.reason = "already_member"
        elif outcome.reason is None and outcome.key in invited:
            outcome.reason = "already_invited"


async def _invited(
    session: AsyncSession, permissions: Mapping[str, Permission], offer: Offer, keys: Sequence[str]
) -> set[str]:
    """Those of the addresses with a pending invite that would admit somebody (see `invite_offers`)."""
    is_pending = has_status("pending", utc_now())
    pending = select(Invite).where(invites_to(offer), is_pending, ~is_closed_to_addressee())
    backed: dict[tuple[int | None, str], bool] = {}
    found = set()
    for invite in (await session.scalars(pending.where(Invite.email_key.in_(keys)))).all():
        sender = (invite.invited_by, invite.role)
        if sender not in backed:
            backed[sender] = await may_offer(session, permissions, invite.invited_by, offer_of(invite))
        if backed[sender]:
            found.add(invite.email_key)
    return found


def _new(platform: Platform, principal: Principal, offer: Offer, email: str) -> Issued:
    token = secrets.token_urlsafe(32)
    invite = Invite(
        team_id=offer.team_id,
        organization_id=offer.organization_id,
        email=email,
        email_key=email.casefold(),
        role=offer.role,
        token_hash=token_hash(token),
        max_uses=offer.max_uses,
        invited_by=principal.id,
        expires_at=utc_now() + timedelta(days=platform.settings_of(TenancySettings).invite_days),
    )
    return Issued(invite, token)


async def _store(unit: Unit, target: Target, issued: Sequence[Issued], origin: dict[str, Any]) -> None:
    unit.session.add_all(one.invite for one in issued)
    await unit.session.flush()
    for one in issued:
        record(unit, "invite.created", one.invite, target, origin)
