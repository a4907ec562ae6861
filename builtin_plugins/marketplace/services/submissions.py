"""Status changes of a listing: only one of simultaneous changes wins, and each leaves a row."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from kernel.sdk import Caller, Principal, Unit, audit, utc_now

from ..errors import IllegalMove, ListingNotFound
from ..models import Listing, Transition
from ..schemas import ListingOut, ListingPage
from ..states import Role, Trigger, find_move
from ..submission_schemas import History, HistoryQuery, SubmissionsQuery, TransitionOut
from .checks import run_checks
from .records import read_page, render, roles_of
from .search import index


def list_own(session: Session, principal: Principal, bounds: tuple[int, int]) -> ListingPage:
    """The caller's listings, the most recently changed first."""
    mine = select(Listing).where(Listing.submitted_by == principal.subject)
    order = (Listing.updated_at.desc(), Listing.number.desc())
    return read_page(session, mine, order, bounds, principal)


def list_queue(session: Session, principal: Principal, query: SubmissionsQuery) -> ListingPage:
    """Submitted listings of one status, the oldest first."""
    submitted = select(Listing).where(Listing.origin == "submitted", Listing.status == query.status)
    order = (Listing.submitted_at.is_(None), Listing.submitted_at, Listing.number)
    return read_page(session, submitted, order, query.slice, principal)


def move(
    unit: Unit,
    caller: Caller,
    plugin_id: str,
    trigger: Trigger,
    *,
    notes: str | None = None,
) -> ListingOut:
    """Make a move. Raises ListingNotFound, IllegalMove."""
    query = select(Listing).where(Listing.id == plugin_id).with_for_update()
    listing: Listing | None = unit.session.scalar(query)
    if listing is None:
        raise ListingNotFound()
    roles = roles_of(caller.principal, listing)
    if not roles:
        raise ListingNotFound()
    rule = find_move(trigger, listing.status, roles)
    if rule is None:
        raise IllegalMove(f"'{trigger}' is not possible for a listing that is {listing.status}")
    before, now = listing.status, utc_now()
    listing.status, listing.updated_at = rule.target, now
    _stamp(listing, trigger, caller.principal, notes)
    if trigger == "submit":
        listing.checks = [check.model_dump() for check in run_checks(unit.session, caller.platform, listing)]
    role = acting_as(roles & rule.roles)
    unit.session.add(
        Transition(
            plugin_id=listing.id,
            from_status=before,
            to_status=rule.target,
            actor=caller.principal.subject,
            actor_role=role,
            notes=notes,
            created_at=now,
        )
    )
    audit(
        unit,
        f"listing.{trigger}",
        "listing",
        listing.id,
        before={"status": before},
        after={"status": rule.target, "actor_role": role},
        origin=caller.origin,
    )
    index(unit, listing)
    return render(listing, caller.principal)


def acting_as(roles: frozenset[Role]) -> Role:
    """Which of the caller's roles a move is recorded under."""
    order: tuple[Role, ...] = ("owner", "admin", "service")
    return next(role for role in order if role in roles)


def _stamp(listing: Listing, trigger: Trigger, principal: Principal, notes: str | None) -> None:
    """Set the fields that change with the state."""
    now = listing.updated_at
    if trigger == "submit":
        listing.submitted_at, listing.reviewed_by, listing.review_notes = now, None, None
    elif trigger in ("claim", "approve", "reject"):
        listing.reviewed_by = principal.subject
    if trigger == "approve":
        listing.published_at = now
    if trigger == "reject":
        listing.review_notes = notes


def history(session: Session, principal: Principal, plugin_id: str, query: HistoryQuery) -> History:
    """The moves of a listing, for its author and administrators. Raises ListingNotFound to anyone else."""
    listing = session.scalar(select(Listing).where(Listing.id == plugin_id))
    if listing is None or not roles_of(principal, listing):
        raise ListingNotFound()
    mine = Transition.plugin_id == plugin_id
    total = session.scalar(select(func.count()).select_from(Transition).where(mine)) or 0
    page = select(Transition).where(mine).order_by(Transition.id).limit(query.limit).offset(query.offset)
    moves = [TransitionOut.model_validate(row, from_attributes=True) for row in session.scalars(page)]
    return History(transitions=moves, count=len(moves), total=total, limit=query.limit, offset=query.offset)
