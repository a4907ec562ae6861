"""What the catalog tells other plugins: listings by id or name."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from kernel.sdk import contracts

from ..models import Listing
from ..states import PUBLIC


def find_refs(session: Session, plugins: Sequence[str]) -> list[contracts.ListingRef]:
    """The listings whose id or name is among these."""
    wanted = list(plugins)
    query = select(Listing.id, Listing.name, Listing.display_name, Listing.status)
    rows = session.execute(query.where(or_(Listing.id.in_(wanted), Listing.name.in_(wanted))))
    return [contracts.ListingRef(one, name, shown, status == PUBLIC) for one, name, shown, status in rows]
