"""What a catalog says about a plugin's package: this platform's own catalog, or that of another instance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import aiohttp
from sqlalchemy.orm import Session

from builtin_plugins.plugin_registry import api as plugin_registry
from kernel.sdk import BadGateway, Platform
from kernel.sdk.operations import PluginPackage

from .services.refs import find_refs

_SECONDS = 20
_MOST_BYTES = 4 * 1024 * 1024


def own_package(session: Session, platform: Platform, name: str) -> PluginPackage | None:
    """What the approved listing `name` and the dependency graph say; None if there is no such listing."""
    listing = next((ref for ref in find_refs(session, [name]) if ref.approved and ref.name == name), None)
    if listing is None:
        return None
    verdict = platform.hooks.ask_now(
        plugin_registry.judge_dependencies, platform=platform, session=session, plugin_id=listing.id
    ) or plugin_registry.DependencyVerdict("unknown", (), (), ())
    return PluginPackage(
        name,
        listing.package,
        listing.version_range,
        listing.tier,
        verdict=verdict.verdict,
        failures=verdict.failures,
        requires=tuple(required.name for required in verdict.requires),
        conflicts=verdict.conflicts,
    )


async def package_elsewhere(name: str, address: str) -> PluginPackage | None:
    """The same from the catalog of the platform at `address`. Raises BadGateway if that is none."""
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    try:
        async with aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session:
            return await _fetch(session, name, address)
    except (aiohttp.ClientError, TimeoutError):
        raise BadGateway(f"no platform answers at {address}; check that it is running") from None


async def _fetch(session: aiohttp.ClientSession, name: str, address: str) -> PluginPackage | None:
    search = f"/v1/marketplace/plugins/search?limit=20&q={quote(name, safe='')}"
    page = await _get(session, address, search)
    listing = next((item for item in page.get("plugins", ()) if item.get("name") == name), None)
    if listing is None:
        return None
    key = quote(str(listing.get("id")), safe="")
    graph = await _get(session, address, f"/v1/graph/dependencies/{key}")
    conflicts = await _get(session, address, f"/v1/graph/conflicts/{key}")
    return PluginPackage(
        name,
        listing.get("package"),
        listing.get("version_range"),
        listing.get("base_tier"),
        verdict=graph.get("verdict", "unknown"),
        failures=tuple(graph.get("resolve_failures", ())),
        requires=tuple(item.get("name") for item in graph.get("dependencies", ())),
        conflicts=tuple((item.get("name"), item.get("reason")) for item in conflicts.get("conflicts", ())),
    )


async def _get(session: aiohttp.ClientSession, address: str, path: str) -> Mapping[str, Any]:
    """The object at an address; empty if the instance has no dependency graph."""
    async with session.get(address + path) as answer:
        body = await answer.content.read(_MOST_BYTES)
        if answer.status in (404, 503) and path.startswith("/v1/graph/"):
            return {}
        try:
            document = json.loads(body) if answer.status == 200 else None
        except ValueError:
            document = None
    if not isinstance(document, dict):
        raise BadGateway(
            f"{address} is not a platform with a catalog: "
            f"it answered {path.partition('?')[0]} with {answer.status}"
        )
    return document
