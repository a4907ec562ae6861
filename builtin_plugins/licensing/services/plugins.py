"""What licensing knows about plugins: the catalog's listings or, without a catalog, installed plugins."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from sqlalchemy.orm import Session

from builtin_plugins.plugin_registry import api as plugin_registry
from builtin_plugins.tools.api import Directory
from kernel.sdk import Platform

from ..errors import PluginUnknown

Listings = dict[str, plugin_registry.ListingRef]


def has_catalog(platform: Platform) -> bool:
    """Whether a plugin keeps a catalog."""
    return bool(platform.hooks.implementations(plugin_registry.find_listings))


def listings(platform: Platform, session: Session, plugins: Iterable[str]) -> Listings:
    """The listings with these ids or names, keyed by both."""
    names = sorted(set(plugins))
    spec = plugin_registry.find_listings
    answers = platform.hooks.ask_now(spec, platform=platform, session=session, plugins=names)
    refs = [listing for answer in answers for listing in answer]
    return {**{name: one for one in refs for name in one.names}, **{one.id: one for one in refs}}


def key_of(platform: Platform, session: Session, plugin: str) -> str:
    """The id under which licenses of the plugin with this name are stored."""
    listing = listings(platform, session, [plugin]).get(plugin)
    return plugin if listing is None else listing.id


def check_form(platform: Platform, plugin_id: str) -> None:
    """Raise PluginUnknown for what can't be the id of a listing (wire-facts 1.1)."""
    if not has_catalog(platform):
        return
    try:
        uuid.UUID(plugin_id)
    except ValueError:
        raise PluginUnknown() from None


async def check_known(platform: Platform, plugin_id: str) -> None:
    """Raise PluginUnknown unless there is such a listing, or, without a catalog, such a plugin."""
    if has_catalog(platform):
        check_form(platform, plugin_id)
        if plugin_id not in await platform.database.read(_listings, platform, plugin_id):
            raise PluginUnknown()
    elif await Directory(platform).entry(plugin_id) is None:
        raise PluginUnknown()


def _listings(session: Session, platform: Platform, plugin_id: str) -> Listings:
    return listings(platform, session, [plugin_id])
