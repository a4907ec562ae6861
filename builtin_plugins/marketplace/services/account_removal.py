"""What happens to an account's listings, ratings and installs when the account is deleted."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Select, delete, select

from builtin_plugins.accounts.api import SharedThing
from kernel.sdk import Account, Platform, Scope, Unit

from ..models import Installation, Listing, Rating
from .search import forget

_PUBLISHED = ("approved", "archived")
"""States in which a listing may have been installed by others."""


def hand_over(unit: Unit, account: Account, heir: Scope | None) -> list[SharedThing]:
    """Make the heir the author of what was published; without an heir, returns it."""
    query = select(Listing).where(Listing.submitted_by == str(account.id), Listing.status.in_(_PUBLISHED))
    published = unit.session.scalars(query.order_by(Listing.number).with_for_update()).all()
    if heir is None:
        return [SharedThing("listing", listing.id, listing.name, "shared") for listing in published]
    for listing in published:
        listing.submitted_by = str(heir.account_id)
        if listing.author_email is not None and listing.author_email.casefold() == account.email_key:
            listing.author_email = None
    unit.session.flush()
    return []


async def remove_of_account(platform: Platform, account_id: int) -> None:
    """Remove its ratings, installs and unpublished listings."""
    await platform.database.write(_remove, str(account_id))


def _remove(unit: Unit, subject: str) -> None:
    unpublished = (Listing.submitted_by == subject) & Listing.status.not_in(_PUBLISHED)
    for listing in unit.session.scalars(_locked_listings(unpublished)):
        forget(unit, listing.number)
        unit.session.delete(listing)
    unit.session.flush()
    ratings = select(Rating).where(Rating.user_id == subject)
    rated = _locked_listings(Listing.id.in_(ratings.with_only_columns(Rating.plugin_id)))
    listings = {listing.id: listing for listing in unit.session.scalars(rated)}
    for rating in unit.session.scalars(ratings):
        listing = listings[rating.plugin_id]
        listing.rating_sum -= rating.rating
        listing.rating_count -= 1
        unit.session.delete(rating)
    unit.session.execute(delete(Installation).where(Installation.user_id == subject))


def _locked_listings(condition: ColumnElement[bool]) -> Select[Listing]:
    """Listings, held in the order of their numbers."""
    return select(Listing).where(condition).order_by(Listing.number).with_for_update()
