"""Create, find, list and change listings."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from kernel.sdk import Caller, Principal, Unit, Unprocessable, audit, utc_now

from ..errors import (
    CategoryNotFound,
    FeaturedByAdministrators,
    ListingNameTaken,
    ListingNotFound,
    NotEditable,
    TooManyListings,
)
from ..models import Category, Listing
from ..schemas import ListingCreate, ListingOut, ListingPage, ListingsQuery, ListingUpdate
from ..settings import MarketplaceSettings
from ..states import EDITABLE, PUBLIC, Role
from .records import find, is_privileged, read_page, render, roles_of, seen_by
from .search import index, name_key

LOCK = "marketplace.names"
_NEWEST = (Listing.created_at.desc(), Listing.number.desc())


def list_page(session: Session, principal: Principal, query: ListingsQuery) -> ListingPage:
    """Listings of one status, newest first; of other statuses than `approved` only what the caller sees."""
    matches = select(Listing).where(Listing.status == query.status)
    if query.status != PUBLIC:
        matches = matches.where(seen_by(principal))
    if query.category is not None:
        in_category = or_(Category.id == query.category.lower(), Category.slug == query.category)
        matches = matches.where(Listing.category_id.in_(select(Category.id).where(in_category)))
    if query.pricing_model is not None:
        matches = matches.where(Listing.pricing_model == query.pricing_model)
    return read_page(session, matches, _NEWEST, query.slice, principal)


def featured(session: Session, principal: Principal, limit: int) -> ListingPage:
    """Approved listings that administrators recommend, newest first."""
    matches = select(Listing).where(Listing.status == PUBLIC, Listing.featured.is_(True))
    return read_page(session, matches, _NEWEST, (limit, 0), principal)


def get(session: Session, principal: Principal, plugin_id: str) -> ListingOut:
    """One listing. Raises ListingNotFound, also for one that the caller may not see."""
    return render(find(session, principal, plugin_id), principal)


def create(unit: Unit, caller: Caller, body: ListingCreate, installed_names: frozenset[str]) -> ListingOut:
    """A new listing: a draft of the caller, or at once approved when a service makes it.

    `installed_names` are the names of installed plugins, which nobody else may use. Raises NameTaken,
    TooManyListings, Unprocessable for an unknown category.
    """
    unit.lock(LOCK)
    by_service = caller.principal.is_service
    if not by_service:
        _check_number(unit.session, caller)
    check_name(unit.session, body.name, frozenset() if by_service else installed_names)
    _check_category(unit.session, body.category_id)
    now = utc_now()
    listing = Listing(
        **body.model_dump(exclude={"author_email"}),
        author_email=body.author_email,
        id=str(uuid.uuid4()),
        name_key=name_key(body.name),
        origin="first_party" if by_service else "submitted",
        status=PUBLIC if by_service else "draft",
        submitted_by=None if by_service else caller.principal.subject,
        created_at=now,
        updated_at=now,
        published_at=now if by_service else None,
    )
    unit.session.add(listing)
    index(unit, listing)
    audit(unit, "listing.created", "listing", listing.id, after=_state(listing), origin=caller.origin)
    return render(listing, caller.principal)


def _check_number(session: Session, caller: Caller) -> None:
    most = caller.platform.settings_of(MarketplaceSettings).max_listings_per_user
    mine = select(func.count()).where(
        Listing.submitted_by == caller.principal.subject, Listing.status != "archived"
    )
    if (session.scalar(mine) or 0) >= most:
        raise TooManyListings()


def check_name(session: Session, name: str, installed_names: frozenset[str], own: str | None = None) -> None:
    """Raise NameTaken where another listing or an installed plugin has the name."""
    key = name_key(name)
    holder = session.scalar(select(Listing.id).where(Listing.name_key == key))
    if (holder is not None and holder != own) or key in installed_names:
        raise ListingNameTaken()


def _check_category(session: Session, category_id: str | None) -> None:
    """Raise Unprocessable unless it exists; if it does, it can't be deleted before this unit ends."""
    shared = {"read": True}
    if category_id is not None and session.get(Category, category_id, with_for_update=shared) is None:
        raise Unprocessable.field(("body", "category_id"), CategoryNotFound.default_detail, category_id)


def read_changes(body: ListingUpdate) -> dict[str, Any]:
    """The fields of an update. Raises Unprocessable for none, for `status`, for a wrong null."""
    sent = body.model_fields_set
    extra = body.model_extra or {}
    if "status" in extra:
        raise Unprocessable.field(
            ("body", "status"), "The status changes through /v1/marketplace/submissions; leave it out"
        )
    changes = {name: getattr(body, name) for name in sent if name in ListingUpdate.model_fields}
    if not changes:
        raise Unprocessable.field(("body",), "Send at least one field to change")
    nullable = {"description", "repository_url", "package", "version_range", "current_version", "category_id"}
    for name, value in changes.items():
        if value is None and name not in nullable:
            raise Unprocessable.field(("body", name), "must not be null")
    return changes


def update(
    unit: Unit, caller: Caller, plugin_id: str, changes: dict[str, Any], installed_names: frozenset[str]
) -> ListingOut:
    """Change a listing. Raises ListingNotFound, FeaturedByAdministrators, NotEditable, NameTaken."""
    unit.lock(LOCK)
    listing = find_writable(unit.session, caller.principal, plugin_id)
    _check_rights(roles_of(caller.principal, listing), listing, changes)
    if "name" in changes:
        check_name(unit.session, changes["name"], installed_names - {listing.name_key}, own=listing.id)
        listing.name_key = name_key(changes["name"])
    _check_category(unit.session, changes.get("category_id"))
    before = {name: getattr(listing, name) for name in changes}
    for name, value in changes.items():
        setattr(listing, name, value)
    listing.updated_at = utc_now()
    index(unit, listing)
    audit(unit, "listing.updated", "listing", listing.id, before=before, after=changes, origin=caller.origin)
    return render(listing, caller.principal)


def find_writable(session: Session, principal: Principal, plugin_id: str, *, lock: bool = True) -> Listing:
    """A listing that the caller owns or administers. Raises ListingNotFound otherwise."""
    query = select(Listing).where(Listing.id == plugin_id)
    if not is_privileged(principal):
        query = query.where(Listing.submitted_by == principal.subject)
    listing: Listing | None = session.scalar(query.with_for_update() if lock else query)
    if listing is None:
        raise ListingNotFound()
    return listing


def check_unreviewed(principal: Principal, listing: Listing) -> None:
    """Raise NotEditable if its author would change what is being reviewed, or was."""
    if listing.status not in EDITABLE and not is_privileged(principal):
        raise NotEditable()


def _check_rights(roles: frozenset[Role], listing: Listing, changes: dict[str, Any]) -> None:
    if "admin" in roles:
        return
    if "service" in roles:
        if listing.origin == "submitted":
            raise NotEditable("This listing was submitted by a person; services can't change it")
        return
    if "featured" in changes:
        raise FeaturedByAdministrators()
    if listing.status not in EDITABLE:
        raise NotEditable()


def _state(listing: Listing) -> dict[str, Any]:
    """A listing in the audit log."""
    return {"name": listing.name, "status": listing.status, "origin": listing.origin}
