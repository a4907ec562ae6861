"""Activating, listing, looking up and checking licenses."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from builtin_plugins.accounts.api import select_members
from kernel.sdk import (
    Account,
    Caller,
    Platform,
    Principal,
    Unit,
    Unprocessable,
    audit,
    scope_of,
    shared_moment,
)

from ..errors import LicenseNotFound, SeatsTaken
from ..models import License, Seat
from ..schemas import (
    ActivatedLicense,
    ActivateRequest,
    KeyInvalid,
    KeyValid,
    LicenseList,
    LicenseOut,
    NewKey,
)
from ..tiers import highest
from .keys import end_of, hasher_of, make_key, masked
from .plugins import check_form, check_known, listings
from .usage import USAGE, LicenseUsage

LOCK = "licensing"
YEAR = timedelta(days=365)


async def activate(caller: Caller, body: ActivateRequest) -> ActivatedLicense:
    """Make a license, or renew the existing one with another key and tier.

    Raises PluginUnknown, Unprocessable, SeatsTaken.
    """
    _check_holder(body)
    await check_known(caller.platform, body.plugin_id)
    await caller.platform.database.read(_check_holder_known, caller.platform, body)
    subject = None if body.organization_id else body.user_id or caller.principal.subject
    tenant = await _tenant(caller, subject, body.organization_id)
    key = make_key()
    row = await caller.platform.database.write(_activate, caller, body, subject, key)
    fields = {name: getattr(row, name) for name in _FIELDS}
    return ActivatedLicense(
        **fields, tenant_id=tenant, license_key=key, license_key_masked=masked(row.key_end)
    )


_FIELDS = (
    "id",
    "activated_by",
    "plugin_id",
    "tier",
    "valid_from",
    "valid_until",
    "trial_expires_at",
    "active",
    "seats",
)


def _check_holder(body: ActivateRequest) -> None:
    if (body.organization_id is None) != (body.seats is None):
        loc = ("body", "seats" if body.seats is None else "organization_id")
        raise Unprocessable.field(loc, "A license of an organization needs both organization_id and seats")
    if body.organization_id is not None and body.user_id is not None:
        raise Unprocessable.field(("body", "user_id"), "Send user_id or organization_id, not both")


def _check_holder_known(session: Session, platform: Platform, body: ActivateRequest) -> None:
    """Raise Unprocessable for an unknown account or organization; services can't be checked."""
    if body.organization_id is not None:
        query = platform.hooks.ask_now(
            select_members, platform=platform, organization_id=body.organization_id
        )
        if query is None or session.scalar(query.limit(1)) is None:
            loc, text = ("body", "organization_id"), "There is no organization with this id"
            raise Unprocessable.field(loc, text, body.organization_id)
    user = body.user_id
    if user is None or user.startswith("service:"):
        return
    account = session.get(Account, int(user)) if user.isdecimal() and len(user) <= 9 else None
    if account is None or account.deleted_at is not None:
        raise Unprocessable.field(("body", "user_id"), "There is no account with this id", user)


async def _tenant(caller: Caller, subject: str | None, organization_id: int | None) -> str:
    """The organization that a license belongs to, as text; an account without one is its own tenant."""
    if organization_id is not None:
        return str(organization_id)
    if subject == caller.principal.subject and caller.principal.claims.get("tenant_id"):
        return str(caller.principal.claims["tenant_id"])
    places = await organizations_of(caller.platform, subject or "")
    return str(min(places)) if places else f"user:{subject}"


async def organizations_of(platform: Platform, subject: str) -> Sequence[int]:
    """The organizations that a token's subject is now a member of."""
    if not subject.isdecimal() or len(subject) > 9:
        return ()
    principal = Principal("user", subject, int(subject))
    return (await scope_of(platform, principal)).organizations


def _activate(unit: Unit, caller: Caller, body: ActivateRequest, subject: str | None, key: str) -> License:
    row = grant(
        unit,
        caller.platform,
        holder=License.user_id == subject if subject else License.organization_id == body.organization_id,
        fields={
            "user_id": subject,
            "organization_id": body.organization_id,
            "plugin_id": body.plugin_id,
            "tier": body.tier,
            "seats": body.seats,
            "activated_by": caller.principal.subject,
        },
        key=key,
        trial_days=body.trial_days,
    )
    _check_seats(unit.session, row)
    after = {"tier": row.tier, "plugin_id": row.plugin_id, "holder": subject or f"org {row.organization_id}"}
    audit(
        unit,
        "license.activated",
        "license",
        row.id,
        after=after,
        origin=caller.origin,
        scope_org_id=row.organization_id,
    )
    return row


def grant(
    unit: Unit,
    platform: Platform,
    *,
    holder: Any,
    fields: dict[str, Any],
    key: str,
    trial_days: int | None = None,
) -> License:
    """The holder's license of a plugin, made or renewed for a year from now, in this unit."""
    unit.lock(LOCK)
    now = unit.now()
    query = select(License).where(holder, License.plugin_id == fields["plugin_id"])
    row: License | None = unit.session.scalar(query)
    if row is None:
        row = add_license(unit, platform, key)
    for name, value in fields.items():
        setattr(row, name, value)
    row.valid_from, row.active = now, True
    row.trial_expires_at = None if trial_days is None else now + timedelta(days=trial_days)
    row.valid_until = row.trial_expires_at or now + YEAR
    _set_key(platform, row, key)
    unit.session.flush()
    return row


def add_license(unit: Unit, platform: Platform, key: str, **fields: Any) -> License:
    """A new license in this unit, with its key."""
    row = License(id=str(uuid.uuid4()), usage_count=0, **fields)
    unit.session.add(row)
    _set_key(platform, row, key)
    return row


def _set_key(platform: Platform, row: License, key: str) -> None:
    row.key_hash, row.key_end = hasher_of(platform).hash(key), end_of(key)


def _check_seats(session: Session, row: License) -> None:
    if row.seats is not None and seats_used(session, [row.id]).get(row.id, 0) > row.seats:
        raise SeatsTaken()


def seats_used(session: Session, ids: Iterable[str]) -> dict[str, int]:
    """Taken seats, by license."""
    query = select(Seat.license_id, func.count()).where(Seat.license_id.in_(list(ids)))
    return {
        license_id: int(number) for license_id, number in session.execute(query.group_by(Seat.license_id))
    }


def is_valid(session: Session) -> Any:
    """The condition for valid licenses."""
    return License.active.is_(True) & has_not_expired(session)


def has_not_expired(session: Session) -> Any:
    """The condition for licenses that have not expired by the database's clock."""
    return License.valid_until > shared_moment(session)


async def list_own(caller: Caller) -> LicenseList:
    """The caller's licenses, newest first: its own, and those of organizations in which it has a seat."""
    subject = caller.principal.subject
    places = await organizations_of(caller.platform, subject)
    return await _listed(caller.platform, held_by(subject, places))


def held_by(subject: str, organizations: Sequence[int]) -> Any:
    """The condition for licenses that cover a subject: its own, and those in which a member has a seat."""
    mine = License.user_id == subject
    if not organizations:
        return mine
    seated = select(Seat.license_id).where(Seat.user_id == int(subject))
    return or_(mine, License.organization_id.in_(organizations) & License.id.in_(seated))


async def list_of_organization(caller: Caller, organization_id: int) -> LicenseList:
    """The licenses of an organization."""
    mine = License.organization_id == organization_id
    return await _listed(caller.platform, mine)


async def _listed(platform: Platform, which: Any) -> LicenseList:
    usage = platform.resource(USAGE)
    return await usage.between_writes(lambda: platform.database.read(_list, platform, which))


def _list(session: Session, platform: Platform, which: Any) -> LicenseList:
    query = select(License, is_valid(session)).where(which)
    rows = session.execute(query.order_by(License.valid_from.desc(), License.id)).all()
    names = listings(platform, session, [row.plugin_id for row, _ in rows])
    used = seats_used(session, [row.id for row, _ in rows if row.seats is not None])
    usage = platform.resource(USAGE)
    licenses = [_render(row, names, used, usage, valid) for row, valid in rows]
    return LicenseList(licenses=licenses, count=len(licenses))


def _render(row: License, names: Any, used: dict[str, int], usage: LicenseUsage, valid: bool) -> LicenseOut:
    listing = names.get(row.plugin_id)
    return LicenseOut(
        id=row.id,
        user_id=row.user_id,
        organization_id=row.organization_id,
        plugin_id=row.plugin_id,
        plugin_name=listing.name if listing else row.plugin_id,
        plugin_display_name=listing.display_name if listing else row.plugin_id,
        tier=row.tier,
        license_key=masked(row.key_end),
        valid_from=row.valid_from,
        valid_until=row.valid_until,
        active=valid,
        usage_count=row.usage_count + usage.pending(row.id),
        last_used_at=usage.last(row.id) or row.last_used_at,
        seats=row.seats,
        seats_used=None if row.seats is None else used.get(row.id, 0),
    )


async def best_of(platform: Platform, subject: str, plugin_id: str) -> tuple[str | None, str | None]:
    """The best tier that a subject has of a plugin, and the id of that license; two None without one."""
    places = await organizations_of(platform, subject)
    return await platform.database.read(best_in, held_by(subject, places), plugin_id)


def best_in(session: Session, which: Any, plugin_id: str) -> tuple[str | None, str | None]:
    """The best tier among the valid licenses of a plugin, and the id of that license."""
    query = select(License.tier, License.id).where(which, is_valid(session), License.plugin_id == plugin_id)
    ids_by_tier: dict[str, str] = {row.tier: row.id for row in session.execute(query)}
    if not ids_by_tier:
        return None, None
    best = highest(ids_by_tier) if highest(ids_by_tier) in ids_by_tier else next(iter(ids_by_tier))
    return best, ids_by_tier[best]


async def validate_key(caller: Caller, key: str, plugin_id: str) -> KeyValid | KeyInvalid:
    """Whether a key is that of a valid license of the plugin; a valid one counts as used.

    Raises PluginUnknown for what is not an id.
    """
    platform = caller.platform
    check_form(platform, plugin_id)
    usage, hashes = platform.resource(USAGE), hasher_of(platform).candidates(key)
    row, expired = await usage.between_writes(lambda: platform.database.read(find_by_key, hashes))
    if row is None or row.plugin_id != plugin_id:
        return KeyInvalid(reason="Invalid license key")
    if not row.active:
        return KeyInvalid(reason="The license is not active", valid_until=row.valid_until)
    if expired:
        return KeyInvalid(reason="The license has expired", valid_until=row.valid_until)
    usage.count(row.id)
    return KeyValid(
        user_id=row.user_id,
        plugin_id=row.plugin_id,
        tier=row.tier,
        valid_until=row.valid_until,
        usage_count=row.usage_count + usage.pending(row.id),
    )


def find_by_key(session: Session, hashes: Sequence[str]) -> tuple[License | None, bool]:
    """The license with a key of one of these hashes, and whether it has expired."""
    query = select(License, ~has_not_expired(session)).where(License.key_hash.in_(hashes))
    row = session.execute(query).one_or_none()
    return (None, False) if row is None else (row[0], bool(row[1]))


async def renew_key(caller: Caller, license_id: str) -> NewKey:
    """A new key for a license of the caller. Raises LicenseNotFound, also for one of somebody else."""
    key = make_key()
    await caller.platform.database.write(_renew_key, caller, license_id, key)
    return NewKey(id=license_id, license_key=key, license_key_masked=masked(end_of(key)))


def _renew_key(unit: Unit, caller: Caller, license_id: str, key: str) -> None:
    mine = select(License).where(License.id == license_id, License.user_id == caller.principal.subject)
    row = unit.session.scalar(mine.with_for_update())
    if row is None:
        raise LicenseNotFound()
    _set_key(caller.platform, row, key)
    audit(unit, "license.key_renewed", "license", row.id, origin=caller.origin)
