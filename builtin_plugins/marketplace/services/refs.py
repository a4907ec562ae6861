"""What the catalog offers other plugins: listings by id or name."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from builtin_plugins.plugin_registry import api as plugin_registry

from ..models import Installation, InstalledPlugin, Listing
from ..states import PUBLIC


def find_refs(session: Session, plugins: Sequence[str]) -> list[plugin_registry.ListingRef]:
    """The listings whose id or name, or that of an installed plugin of theirs, is among these."""
    names = list(plugins)
    behind = select(InstalledPlugin.plugin_id).where(InstalledPlugin.name.in_(names))
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
    named = and_(Listing.name.in_(names), Listing.name.not_in(select(InstalledPlugin.name)))
    fits = or_(Listing.id.in_(names), named, Listing.id.in_(behind))
    installed = _installed(session)
    return [
        plugin_registry.ListingRef(
            *(listing_id, name, display_name, status == PUBLIC, version, package, versions, tier),
            plugins=tuple(installed.get(listing_id, ())),
        )
        for listing_id, name, display_name, status, version, package, versions, tier in session.execute(
            query.where(fits)
        )
    ]


def _installed(session: Session) -> dict[str, list[str]]:
    """Names of installed plugins, by the listing whose package they came with."""
    names: dict[str, list[str]] = {}
    for name, listing in session.execute(
        select(InstalledPlugin.name, InstalledPlugin.plugin_id).order_by(InstalledPlugin.name)
    ):
        names.setdefault(listing, []).append(name)
    return names


def find_together(
    session: Session, plugins: Sequence[str], limit: int
) -> list[plugin_registry.InstalledTogether]:
    """Which other plugins are installed by accounts that have one of these."""
    plugin_ids = list(plugins)
    having = (
        select(Installation.user_id)
        .where(Installation.plugin_id.in_(plugin_ids), Installation.status == "installed")
        .distinct()
    )
    of = session.scalar(select(func.count()).select_from(having.subquery())) or 0
    number = func.count(Installation.user_id)
    query = (
        select(Listing.id, Listing.name, number)
        .join(Installation, Installation.plugin_id == Listing.id)
        .where(
            Listing.status == PUBLIC,
            Listing.id.not_in(plugin_ids),
            Installation.status == "installed",
            Installation.user_id.in_(having),
        )
        .group_by(Listing.id, Listing.name)
        .order_by(number.desc(), Listing.name, Listing.id)
        .limit(limit)
    )
    return [
        plugin_registry.InstalledTogether(listing_id, name, accounts, of)
        for listing_id, name, accounts in session.execute(query)
    ]
