"""Listings as clients see them, who sees which, and pages of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, false, func, or_, select, true
from sqlalchemy.orm import Session

from kernel.sdk import Principal

from ..errors import ListingNotFound
from ..models import Listing
from ..schemas import ListingOut, ListingPage, WheelOut
from ..states import PUBLIC, Role

_PLAIN = (
    "id",
    "name",
    "display_name",
    "description",
    "author",
    "repository_url",
    "distribution_type",
    "docker_image",
    "package",
    "version_range",
    "current_version",
    "pricing_model",
    "base_tier",
    "status",
    "featured",
    "download_count",
    "rating_count",
    "created_at",
    "updated_at",
    "published_at",
    "developer_id",
    "category_id",
    "requires_services",
    "origin",
    "submitted_by",
    "reviewed_by",
    "review_notes",
)


def roles_of(principal: Principal, listing: Listing | None = None) -> frozenset[Role]:
    """The caller's roles for a listing; without one, its roles everywhere."""
    roles: set[Role] = set()
    if principal.is_admin:
        roles.add("admin")
    if principal.is_service:
        roles.add("service")
    if listing is not None and principal.subject and listing.submitted_by == principal.subject:
        roles.add("owner")
    return frozenset(roles)


def is_privileged(principal: Principal) -> bool:
    """Whether the caller sees listings of every status."""
    return bool(roles_of(principal))


def seen_by(principal: Principal) -> ColumnElement[bool]:
    """The condition for listings that the caller may see: approved ones, and its own of any status."""
    if is_privileged(principal):
        return true()
    mine = Listing.submitted_by == principal.subject if principal.subject else false()
    return or_(Listing.status == PUBLIC, mine)


def find(session: Session, principal: Principal, plugin_id: str, *, lock: bool = False) -> Listing:
    """A listing that the caller may see. Raises ListingNotFound, also for one that it may not."""
    query = select(Listing).where(Listing.id == plugin_id, seen_by(principal))
    listing: Listing | None = session.scalar(query.with_for_update() if lock else query)
    if listing is None:
        raise ListingNotFound()
    return listing


def find_approved(session: Session, plugin_id: str, *, lock: bool = False) -> Listing:
    """A listing that everybody may see. Raises ListingNotFound."""
    query = select(Listing).where(Listing.id == plugin_id, Listing.status == PUBLIC)
    listing: Listing | None = session.scalar(query.with_for_update() if lock else query)
    if listing is None:
        raise ListingNotFound()
    return listing


def average(listing: Listing) -> float | None:
    """The mean of its ratings, to two decimals."""
    return round(listing.rating_sum / listing.rating_count, 2) if listing.rating_count else None


def render(listing: Listing, principal: Principal) -> ListingOut:
    """The record. The checks, the reviewer and its notes are for the author and administrators."""
    fields = {name: getattr(listing, name) for name in _PLAIN}
    inside = bool(roles_of(principal, listing))
    if not inside:
        fields |= {"submitted_by": None, "reviewed_by": None, "review_notes": None}
    return ListingOut(
        **fields,
        author_email=None,
        rating_average=average(listing),
        checks=listing.checks if inside else None,
        wheel=WheelOut.model_validate(listing.wheel) if inside and listing.wheel else None,
    )


def page_from(
    rows: Sequence[Listing], total: int, bounds: tuple[int, int], principal: Principal
) -> ListingPage:
    """The envelope of wire-facts 1.2."""
    limit, offset = bounds
    return ListingPage(
        plugins=[render(row, principal) for row in rows],
        count=len(rows),
        total=total,
        limit=limit,
        offset=offset,
        page=offset // limit + 1,
        page_size=limit,
        total_pages=-(-total // limit),
    )


def read_page(
    session: Session, query: Select[Any], order: Sequence[Any], bounds: tuple[int, int], principal: Principal
) -> ListingPage:
    """A page of what `query` selects."""
    limit, offset = bounds
    total = session.scalar(select(func.count()).select_from(query.order_by(None).subquery())) or 0
    rows = session.scalars(query.order_by(*order).limit(limit).offset(offset)).all()
    return page_from(rows, total, bounds, principal)
