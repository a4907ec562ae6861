"""Invites as records: list them, revoke them. They are issued in `inviting`, redeemed in `redeeming`."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, func, select

from builtin_plugins.tenancy.errors import InviteNotFound, InviteNotPending
from builtin_plugins.tenancy.models import Invite
from builtin_plugins.tenancy.permissions import TEAM_MANAGE
from builtin_plugins.tenancy.schemas_invites import InviteStatus, OrgInviteQuery
from builtin_plugins.tenancy.services.access import decide
from builtin_plugins.tenancy.services.invite_offers import (
    Offer,
    Target,
    find_target,
    invites_to,
    offer_of,
)
from builtin_plugins.tenancy.services.memberships import LOCK
from builtin_plugins.tenancy.services.standing import standing_of
from kernel.sdk import Account, Forbidden, Platform, Principal, Unit, audit, utc_now

PENDING, ACCEPTED, REVOKED, EXPIRED = "pending", "accepted", "revoked", "expired"

_NOT_AUDITED = frozenset({"id", "expires_at", "created_at"})


def token_hash(token: str) -> str:
    """What is kept of a token. It holds 256 random bits: a plain hash can't be reversed by guessing."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def status_of(invite: Invite, now: datetime) -> str:
    """The effective state: a pending invite whose time is over is expired (spec 3.2)."""
    return EXPIRED if invite.status == PENDING and invite.expires_at <= now else str(invite.status)


async def list_page(
    platform: Platform, offer: Offer, query: OrgInviteQuery
) -> tuple[list[dict[str, Any]], int]:
    """Invites to a team or an organization, the newest first, and how many there are."""
    now = utc_now()
    wanted = invites_to(offer)
    if query.status is not None:
        wanted &= has_status(query.status, now)
    ordered = select(Invite).where(wanted).order_by(Invite.created_at.desc(), Invite.id.desc())
    async with platform.database.read() as session:
        await find_target(session, offer)
        total = await session.scalar(select(func.count()).select_from(Invite).where(wanted))
        rows = (await session.scalars(ordered.limit(query.limit).offset(query.offset))).all()
    return [fields_of(row, now) for row in rows], int(total or 0)


async def revoke(
    platform: Platform, principal: Principal, invite_id: int, origin: dict[str, Any]
) -> dict[str, Any]:
    """Revoke an invite to a team. Raises InviteNotFound, Forbidden, InviteNotPending.

    Those who know of the invite but may not revoke it, the invited person and the team's members, are
    forbidden to; for all others it does not exist.
    """
    async with platform.database.read() as session:
        invite = await session.scalar(
            select(Invite).where(Invite.id == invite_id, Invite.team_id.is_not(None))
        )
        own = await session.scalar(select(Account.email_key).where(Account.id == principal.id))
    # An unknown invite is looked after as far as a foreign one: nobody can tell them apart by the time.
    offer = Offer("", team_id=0) if invite is None else offer_of(invite)
    allowed = await decide(platform, principal, TEAM_MANAGE, offer.team_id or 0, or_admin=True)
    if invite is not None and allowed:
        return await _revoke(platform, invite_id, offer, origin)
    teams = (await standing_of(platform, principal.id)).teams if principal.id is not None else {}
    if invite is not None and (invite.team_id in teams or own == invite.email_key):
        raise Forbidden("Only those who manage the team may revoke its invites; just don't redeem it")
    raise InviteNotFound()


async def revoke_in(
    platform: Platform, organization_id: int, invite_id: int, origin: dict[str, Any]
) -> dict[str, Any]:
    """Revoke an invite to an organization. Raises InviteNotFound, also for one of another organization."""
    return await _revoke(platform, invite_id, Offer("", organization_id=organization_id), origin)


def fields_of(invite: Invite, now: datetime | None = None) -> dict[str, Any]:
    """The record's fields as clients see them."""
    if invite.team_id is not None:
        place = {"team_id": invite.team_id, "team_role": invite.role}
    else:
        place = {"organization_id": invite.organization_id, "org_role": invite.role}
    shown = ("id", "email", "max_uses", "use_count", "expires_at", "created_at")
    fields = {name: getattr(invite, name) for name in shown}
    return {**fields, "status": status_of(invite, now or utc_now()), **place}


async def _revoke(platform: Platform, invite_id: int, offer: Offer, origin: dict[str, Any]) -> dict[str, Any]:
    async with platform.database.unit() as unit:
        await unit.lock(LOCK)
        invite = await unit.session.scalar(select(Invite).where(Invite.id == invite_id, invites_to(offer)))
        if invite is None:
            raise InviteNotFound()
        status = status_of(invite, utc_now())
        if status != PENDING:
            raise InviteNotPending(f"Only a pending invite can be revoked; this one is {status}")
        invite.status = REVOKED
        record(unit, "invite.revoked", invite, await find_target(unit.session, offer_of(invite)), origin)
    return fields_of(invite)


def has_status(status: InviteStatus, now: datetime) -> ColumnElement[bool]:
    """The predicate for invites in an effective state."""
    if status == "pending":
        return (Invite.status == PENDING) & (Invite.expires_at > now)
    if status == "expired":
        return (Invite.status == PENDING) & (Invite.expires_at <= now)
    return Invite.status == status


def record(unit: Unit, action: str, invite: Invite, target: Target, origin: dict[str, Any]) -> None:
    """Audit what became of an invite, with its target and uses, without its token."""
    shown = {key: value for key, value in fields_of(invite).items() if key not in _NOT_AUDITED}
    audit(unit, action, "invite", invite.id, after=shown, origin=origin, scope_org_id=target.scope_org_id)
