"""Invites as records: list them, revoke them. They are issued in `issuing`, redeemed in `redeeming`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.cache import standing_of
from builtin_plugins.tenancy.access.changes import lock
from builtin_plugins.tenancy.access.decisions import decide
from builtin_plugins.tenancy.access.standing import shared_now
from builtin_plugins.tenancy.errors import InviteNotFound, InviteNotPending
from builtin_plugins.tenancy.invites.offers import Offer, OfferTarget, find_target, invites_to, offer_of
from builtin_plugins.tenancy.invites.schemas import InviteStatus, OrgInviteQuery
from builtin_plugins.tenancy.models import Invite
from builtin_plugins.tenancy.permissions import TEAM_MANAGE
from kernel.sdk import Account, Caller, Forbidden, Unit, audit, utc_now

PENDING, ACCEPTED, REVOKED, EXPIRED = "pending", "accepted", "revoked", "expired"

_NOT_AUDITED = frozenset({"id", "expires_at", "created_at"})


def status_of(invite: Invite, now: datetime) -> str:
    """The effective state: a pending invite past its time is expired (spec 3.2)."""
    return EXPIRED if invite.status == PENDING and invite.expires_at <= now else str(invite.status)


def list_page(session: Session, offer: Offer, query: OrgInviteQuery) -> tuple[list[dict[str, Any]], int]:
    """Invites to a team or an organization, the newest first, and how many there are."""
    now = shared_now(session)
    find_target(session, offer)
    condition = invites_to(offer)
    if query.status is not None:
        condition &= has_status(query.status, now)
    ordered = select(Invite).where(condition).order_by(Invite.created_at.desc(), Invite.id.desc())
    total = session.scalar(select(func.count()).select_from(Invite).where(condition))
    rows = session.scalars(ordered.limit(query.limit).offset(query.offset)).all()
    return [fields_of(row, now) for row in rows], int(total or 0)


async def revoke(caller: Caller, invite_id: int) -> dict[str, Any]:
    """Revoke an invite to a team. Raises InviteNotFound, Forbidden, InviteNotPending.

    Those who know of the invite but may not revoke it, the invited person and the team's members, are
    refused with 403; for all others it does not exist.
    """
    platform = caller.platform
    invite, own = await platform.database.read(_find_to_team, invite_id, caller.id)
    # The same statements for unknown invites as for others', so that the time doesn't tell them apart.
    offer = Offer("", team_id=0) if invite is None else offer_of(invite)
    allowed = await decide(caller, TEAM_MANAGE, offer.team_id or 0, or_admin=True)
    if invite is not None and allowed:
        return await platform.database.write(_revoke, caller, invite_id, offer)
    teams = (await standing_of(platform, caller.id)).teams if caller.id is not None else {}
    if invite is not None and (invite.team_id in teams or own == invite.email_key):
        raise Forbidden("Only the team's managers may revoke its invites; if you don't want it, ignore it")
    raise InviteNotFound()


def _find_to_team(
    session: Session, invite_id: int, account_id: int | None
) -> tuple[Invite | None, str | None]:
    """An invite to a team, and the caller's own address."""
    invite = session.scalar(select(Invite).where(Invite.id == invite_id, Invite.team_id.is_not(None)))
    return invite, session.scalar(select(Account.email_key).where(Account.id == account_id))


def revoke_in(unit: Unit, caller: Caller, organization_id: int, invite_id: int) -> dict[str, Any]:
    """Revoke an invite to an organization. Raises InviteNotFound, also for one of another organization."""
    return _revoke(unit, caller, invite_id, Offer("", organization_id=organization_id))


def fields_of(invite: Invite, now: datetime | None = None) -> dict[str, Any]:
    """The record's fields as clients see them."""
    if invite.team_id is not None:
        place = {"team_id": invite.team_id, "team_role": invite.role}
    else:
        place = {"organization_id": invite.organization_id, "org_role": invite.role}
    names = ("id", "email", "max_uses", "use_count", "expires_at", "created_at")
    fields = {name: getattr(invite, name) for name in names}
    return {**fields, "status": status_of(invite, now or utc_now()), **place}


def _revoke(unit: Unit, caller: Caller, invite_id: int, offer: Offer) -> dict[str, Any]:
    lock(unit)
    invite = unit.session.scalar(select(Invite).where(Invite.id == invite_id, invites_to(offer)))
    if invite is None:
        raise InviteNotFound()
    status = status_of(invite, unit.now())
    if status != PENDING:
        raise InviteNotPending(f"Only a pending invite can be revoked; this one is {status}")
    invite.status = REVOKED
    record(unit, caller, "invite.revoked", invite, find_target(unit.session, offer_of(invite)))
    return fields_of(invite)


def has_status(status: InviteStatus, now: datetime) -> ColumnElement[bool]:
    """The predicate for invites in an effective state."""
    if status == "pending":
        return (Invite.status == PENDING) & (Invite.expires_at > now)
    if status == "expired":
        return (Invite.status == PENDING) & (Invite.expires_at <= now)
    return Invite.status == status


def record(unit: Unit, caller: Caller, action: str, invite: Invite, target: OfferTarget) -> None:
    """Record an event of an invite in the audit log, with its target and uses, without its token."""
    state = {key: value for key, value in fields_of(invite).items() if key not in _NOT_AUDITED}
    scope = target.scope_org_id
    audit(unit, action, "invite", invite.id, after=state, origin=caller.origin, scope_org_id=scope)
