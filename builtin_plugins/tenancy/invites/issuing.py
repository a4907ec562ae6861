"""Inviting: one address, or many at once with a result for each. Only the hash of a token is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import ConfigDict, TypeAdapter, ValidationError
from sqlalchemy import select

from builtin_plugins.tenancy.access.changes import lock
from builtin_plugins.tenancy.errors import AlreadyMember, IdempotencyKeyUsed
from builtin_plugins.tenancy.invites.mail import Issued, deliver
from builtin_plugins.tenancy.invites.offers import (
    Offer,
    OfferTarget,
    check_offer,
    find_target,
    invites_to,
    may_offer,
    member_emails,
    offer_of,
)
from builtin_plugins.tenancy.invites.records import has_status, record
from builtin_plugins.tenancy.invites.schemas import BulkReason, Email
from builtin_plugins.tenancy.invites.tokens import MakeToken, token_hash, tokens_for
from builtin_plugins.tenancy.invites.uses import is_closed_to_addressee
from builtin_plugins.tenancy.models import Invite
from builtin_plugins.tenancy.settings import TenancySettings
from kernel.sdk import Account, Caller, Forbidden, Permission, Unit

_ADDRESS: TypeAdapter[str] = TypeAdapter(Email, config=ConfigDict(defer_build=True))
_ERRORS: dict[BulkReason, str] = {
    "invalid_email": "This is not an e-mail address",
    "duplicate_in_request": "This address appears earlier in this request",
    "already_member": "An account with this address is already a member",
    "already_invited": "There is a pending invite to this address already; revoke it to send another",
}


@dataclass
class Outcome:
    """What happened to one address of a bulk request: an invite, or a reason."""

    email: str
    address: str = ""
    reason: BulkReason | None = None
    rule: str | None = None
    issued: Issued | None = None

    @property
    def key(self) -> str:
        """The key by which addresses are compared."""
        return self.address.casefold()

    @property
    def error(self) -> str | None:
        """The reason in words."""
        return None if self.reason is None else _ERRORS[self.reason]


async def issue(caller: Caller, offer: Offer, email: str, key: str | None) -> Issued:
    """One invite; with a `key`, the existing one that was made with it, if any.

    Unlike in bulk, an address may be invited again while an invite is pending, in case the inviter lost the
    token. The earlier invite stays valid until it is revoked.

    Raises Forbidden, TeamNotFound, OrganizationNotFound, AboveYou, AlreadyMember, IdempotencyKeyUsed.
    """
    await check_offer(caller, offer)  # refuse callers without the right before they wait for a lock
    make_token = tokens_for(caller, offer, key)
    issued, target = await caller.platform.database.write(_issue, caller, offer, email, make_token)
    await deliver(caller.platform, caller.principal.username, target, [issued])
    return issued


async def issue_many(caller: Caller, offer: Offer, emails: Sequence[str], key: str | None) -> list[Outcome]:
    """An invite for each address that can have one, all in one transaction; a reason for each other one."""
    outcomes = _judge(emails)
    await check_offer(caller, offer)
    make_token = tokens_for(caller, offer, key)
    target = await caller.platform.database.write(_issue_many, caller, offer, outcomes, make_token)
    issued = [outcome.issued for outcome in outcomes if outcome.issued is not None]
    await deliver(caller.platform, caller.principal.username, target, issued)
    return outcomes


def _issue(
    unit: Unit, caller: Caller, offer: Offer, email: str, make_token: MakeToken
) -> tuple[Issued, OfferTarget]:
    target = _begin(unit, caller, offer)
    token = make_token(email)
    existing = _made_with(unit, offer, [token])
    if existing:
        return existing[token], target
    members = member_emails(offer).where(Account.email_key == email.casefold())
    if unit.session.scalar(members) is not None:
        raise AlreadyMember("An account with this address is already a member")
    issued = _new(caller, offer, email, token, unit.now())
    _store(unit, caller, target, [issued])
    return issued, target


def _issue_many(
    unit: Unit, caller: Caller, offer: Offer, outcomes: Sequence[Outcome], make_token: MakeToken
) -> OfferTarget:
    target = _begin(unit, caller, offer)
    tokens = {one.key: make_token(one.address) for one in outcomes if one.reason is None}
    existing = _made_with(unit, offer, list(tokens.values()))
    pending = [one for one in outcomes if one.reason is None]
    for outcome in pending:
        outcome.issued = existing.get(tokens[outcome.key])
    pending = [one for one in pending if one.issued is None]
    _refuse_known(unit, caller.platform.permissions, offer, pending)
    now, issued = unit.now(), []
    for outcome in pending:
        if outcome.reason is None:
            outcome.issued = _new(caller, offer, outcome.address, tokens[outcome.key], now)
            issued.append(outcome.issued)
    _store(unit, caller, target, issued)
    return target


def _made_with(unit: Unit, offer: Offer, tokens: Sequence[str]) -> dict[str, Issued]:
    """The invites with these tokens, by token. Raises IdempotencyKeyUsed if one has another offer."""
    hashes = {token_hash(token): token for token in tokens}
    rows = unit.session.scalars(select(Invite).where(Invite.token_hash.in_(hashes))).all()
    if any(offer_of(row) != offer for row in rows):
        raise IdempotencyKeyUsed()
    return {hashes[row.token_hash]: Issued(row, hashes[row.token_hash], new=False) for row in rows}


def _begin(unit: Unit, caller: Caller, offer: Offer) -> OfferTarget:
    """Take the lock, and check again whether the caller may send such invites."""
    lock(unit)
    target = find_target(unit.session, offer)
    if not may_offer(unit.session, caller.platform.permissions, caller.id, offer):
        raise Forbidden()
    return target


def _judge(emails: Sequence[str]) -> list[Outcome]:
    """Which entries are addresses, and which appear twice."""
    outcomes, keys = [], set()
    for email in emails:
        outcome = _parse(email)
        if outcome.address and outcome.key in keys:
            outcome.reason = "duplicate_in_request"
        keys.add(outcome.key)
        outcomes.append(outcome)
    return outcomes


def _parse(email: str) -> Outcome:
    try:
        address = _ADDRESS.validate_python(email)
    except ValidationError as error:
        return Outcome(email, reason="invalid_email", rule=error.errors()[0]["msg"])
    return Outcome(email, address)


def _refuse_known(
    unit: Unit, permissions: Mapping[str, Permission], offer: Offer, outcomes: Sequence[Outcome]
) -> None:
    keys = [outcome.key for outcome in outcomes if outcome.reason is None]
    members = set(unit.session.scalars(member_emails(offer).where(Account.email_key.in_(keys))))
    invited = _invited(unit, permissions, offer, keys)
    for outcome in outcomes:
        if outcome.reason is None and outcome.key in members:
            outcome.reason = "already_member"
        elif outcome.reason is None and outcome.key in invited:
            outcome.reason = "already_invited"


def _invited(
    unit: Unit, permissions: Mapping[str, Permission], offer: Offer, keys: Sequence[str]
) -> set[str]:
    """Those of the addresses with a pending invite that can still be used (see `offers`)."""
    is_pending = has_status("pending", unit.now())
    pending = select(Invite).where(invites_to(offer), is_pending, ~is_closed_to_addressee())
    backed: dict[tuple[int | None, str], bool] = {}
    invited = set()
    for invite in unit.session.scalars(pending.where(Invite.email_key.in_(keys))).all():
        sender = (invite.invited_by, invite.role)
        if sender not in backed:
            backed[sender] = may_offer(unit.session, permissions, invite.invited_by, offer_of(invite))
        if backed[sender]:
            invited.add(invite.email_key)
    return invited


def _new(caller: Caller, offer: Offer, email: str, token: str, now: datetime) -> Issued:
    days = caller.platform.settings_of(TenancySettings).invite_days
    invite = Invite(
        team_id=offer.team_id,
        organization_id=offer.organization_id,
        email=email,
        email_key=email.casefold(),
        role=offer.role,
        token_hash=token_hash(token),
        max_uses=offer.max_uses,
        invited_by=caller.id,
        expires_at=now + timedelta(days=days),
    )
    return Issued(invite, token)


def _store(unit: Unit, caller: Caller, target: OfferTarget, issued: Sequence[Issued]) -> None:
    unit.session.add_all(item.invite for item in issued)
    unit.session.flush()
    for item in issued:
        record(unit, caller, "invite.created", item.invite, target)
