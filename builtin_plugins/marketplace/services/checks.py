"""Automatic checks of a submission, before a person reviews it. They inform; a person decides."""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from sqlalchemy import select
from sqlalchemy.orm import Session

from kernel.sdk import DIRECTORY, Caller

from ..errors import ListingNotFound
from ..models import Listing
from ..schemas import Check
from .records import roles_of

_SHORTEST = 20


async def run_checks(caller: Caller, plugin_id: str) -> list[Check]:
    """What is right and wrong with a listing. Raises ListingNotFound for one that is not the caller's."""
    taken = caller.platform.resource(DIRECTORY).taken_names()
    listing = await caller.platform.database.read(_read, caller, plugin_id)
    return [_metadata(listing), _name(listing, taken), _package(listing), _source(listing)]


def _read(session: Session, caller: Caller, plugin_id: str) -> Listing:
    found: Listing | None = session.scalar(select(Listing).where(Listing.id == plugin_id))
    if found is None or not roles_of(caller.principal, found):
        raise ListingNotFound()
    return found


def _metadata(listing: Listing) -> Check:
    short = len(listing.description or "") < _SHORTEST
    text = f"The description has fewer than {_SHORTEST} characters" if short else "The description is there"
    return Check(check="metadata", ok=not short, message=text)


def _name(listing: Listing, taken: frozenset[str]) -> Check:
    bad = listing.name_key in taken
    text = "An installed plugin has this name" if bad else "No installed plugin has this name"
    return Check(check="name", ok=not bad, message=text)


def _package(listing: Listing) -> Check:
    if listing.package is None:
        return Check(check="package", ok=False, message="No pip package is named: nobody can install it")
    try:
        SpecifierSet(listing.version_range or "")
    except InvalidSpecifier:
        text = f"'{listing.version_range}' is no range of versions; write one such as >=1.2,<2"
        return Check(check="package", ok=False, message=text)
    return Check(check="package", ok=True, message=f"The package is {listing.package}")


def _source(listing: Listing) -> Check:
    ok = listing.repository_url is not None
    text = "The source is named" if ok else "No repository_url: a reviewer can't see the source"
    return Check(check="source", ok=ok, message=text)
