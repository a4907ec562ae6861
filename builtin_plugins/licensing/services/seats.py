"""Seats of organizations' licenses: never more than the license has, even with concurrent requests."""

from __future__ import annotations

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from kernel.sdk import Caller, Unit, audit

from ..errors import LicenseNotFound, NoSeatsLeft
from ..models import License, Seat
from ..schemas import SeatList, SeatOut
from .licenses import LOCK, organizations_of, seats_used


async def list_seats(caller: Caller, organization_id: int, license_id: str) -> SeatList:
    """Who holds the seats, in the order in which they were assigned. Raises LicenseNotFound."""
    return await caller.platform.database.read(_list, organization_id, license_id)


def _list(session: Session, organization_id: int, license_id: str) -> SeatList:
    license_row = _find(session, organization_id, license_id)
    query = select(Seat).where(Seat.license_id == license_id).order_by(Seat.assigned_at, Seat.user_id)
    seats = [SeatOut(user_id=row.user_id, assigned_at=row.assigned_at) for row in session.scalars(query)]
    return SeatList(seats=seats, count=len(seats), total=license_row.seats or 0)


async def assign(caller: Caller, organization_id: int, license_id: str, user_id: int) -> SeatList:
    """Give a member a seat; a member who has one keeps it. Raises LicenseNotFound, NoSeatsLeft.

    An account that isn't a member is treated like an unknown one.
    """
    if organization_id not in await organizations_of(caller.platform, str(user_id)):
        raise LicenseNotFound("This account is not a member of this organization")
    return await caller.platform.database.write(_assign, caller, organization_id, license_id, user_id)


def _assign(unit: Unit, caller: Caller, organization_id: int, license_id: str, user_id: int) -> SeatList:
    unit.lock(LOCK)
    license_row = _find(unit.session, organization_id, license_id)
    if unit.session.get(Seat, (license_id, user_id)) is None:
        if seats_used(unit.session, [license_id]).get(license_id, 0) >= (license_row.seats or 0):
            raise NoSeatsLeft()
        unit.session.add(Seat(license_id=license_id, user_id=user_id, assigned_by=caller.id))
        _note(unit, caller, license_row, "license.seat_assigned", user_id)
        unit.session.flush()
    return _list(unit.session, organization_id, license_id)


async def remove(caller: Caller, organization_id: int, license_id: str, user_id: int) -> SeatList:
    """Take a seat back; one that nobody has is not an error. Raises LicenseNotFound."""
    return await caller.platform.database.write(_remove, caller, organization_id, license_id, user_id)


def _remove(unit: Unit, caller: Caller, organization_id: int, license_id: str, user_id: int) -> SeatList:
    unit.lock(LOCK)
    license_row = _find(unit.session, organization_id, license_id)
    mine = delete(Seat).where(Seat.license_id == license_id, Seat.user_id == user_id).returning(Seat.user_id)
    if unit.session.scalar(mine) is not None:
        _note(unit, caller, license_row, "license.seat_removed", user_id)
    return _list(unit.session, organization_id, license_id)


def _find(session: Session, organization_id: int, license_id: str) -> License:
    query = select(License).where(License.id == license_id, License.organization_id == organization_id)
    license_row: License | None = session.scalar(query)
    if license_row is None:
        raise LicenseNotFound()
    return license_row


def _note(unit: Unit, caller: Caller, row: License, action: str, user_id: int) -> None:
    audit(
        unit,
        action,
        "license",
        row.id,
        after={"user_id": user_id},
        origin=caller.origin,
        scope_org_id=row.organization_id,
    )


def free_all(unit: Unit, user_id: int) -> None:
    """Free the seats of a deleted account."""
    unit.session.execute(delete(Seat).where(Seat.user_id == user_id))
