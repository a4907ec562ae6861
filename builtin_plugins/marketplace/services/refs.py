"""What the catalog tells other plugins: listings by id or name."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from kernel.sdk import contracts

from ..models import Installation, Listing
from ..states import PUBLIC


def find_refs(session: Session, plugins: Sequence[str]) -> list[contracts.ListingRef]:
    """The listings whose id or name is among these."""
    wanted = list(plugins)
    query = select(
        Listing.id,
        Listing.name,
        Listing.display_name,
        Listing.status,
        Listing.current_version,
        Listing.package,
        Listing.version_range,
        Listing.base_tier,
    )
    rows = session.execute(query.where(or_(Listing.id.in_(wanted), Listing.name.in_(wanted))))
    return [
        contracts.ListingRef(one, name, shown, status == PUBLIC, version, package, versions, tier)
        for one, name, shown, status, version, package, versions, tier in rows
    ]


def find_together(session: Session, plugins: Sequence[str], limit: int) -> list[contracts.InstalledTogether]:
    """What accounts with one of these plugins have beside them."""
    wanted = list(plugins)
    having = (
        select(Installation.user_id)
        .where(Installation.plugin_id.in_(wanted), Installation.status == "installed")
        .distinct()
    )
    of = session.scalar(select(func.count()).select_from(having.subquery())) or 0
    number = func.count(Installation.user_id)
    query = (
        select(Listing.id, Listing.name, number)
        .join(Installation, Installation.plugin_id == Listing.id)
        .where(
            Listing.status == PUBLIC,
            Listing.id.not_in(wanted),
            Installation.status == "installed",
            Installation.user_id.in_(having),
        )
        .group_by(Listing.id, Listing.name)
        .order_by(number.desc(), Listing.name, Listing.id)
        .limit(limit)
    )
    return [
        contracts.InstalledTogether(one, name, accounts, of) for one, name, accounts in session.execute(query)
    ]
