"""Looks up a plugin in a catalog: this platform's own, or another instance's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from cli.failures import CommandFailed, Missing, Refused

if TYPE_CHECKING:
    import aiohttp
    from sqlalchemy.orm import Session

    from kernel.platform import Platform

NAME = re.compile(r"[^\W_][^\x00-\x1f/<>=!~;\[\]@]{0,99}")
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SECONDS = 20
_MOST_BYTES = 4 * 1024 * 1024
_MOST_TEXT = 500


@dataclass(frozen=True)
class CatalogEntry:
    """What a catalog and its dependency graph say about a plugin."""

    name: str
    where: str
    package: str
    version_range: str
    tier: str
    verdict: str
    failures: tuple[str, ...]
    requires: tuple[str, ...]
    conflicts: tuple[tuple[str, str | None], ...]

    @property
    def requirement(self) -> str:
        """The requirement for pip."""
        return f"{self.package}{self.version_range}"


def look_up(name: str, address: str | None) -> CatalogEntry | None:
    """The approved listing `name`; None if this platform's catalog has none.

    Raises Missing if the catalog at `address` has none, Refused for a listing that can't be installed.
    """
    from cli import running

    if address is not None:
        return running.run(_elsewhere(name, address.rstrip("/")))
    return running.run(_here(name)) if NAME.fullmatch(name) else None


async def _here(name: str) -> CatalogEntry | None:
    from sqlalchemy.exc import SQLAlchemyError

    from cli import console, running

    settings = running.kernel_settings()
    if settings.database_url is None and not (settings.home / "platform.db").exists():
        return None  # the platform was never started
    async with running.stored_platform(apply_migrations=False) as platform:
        try:
            return await platform.database.read(_read, platform, name)
        except SQLAlchemyError:  # the tables don't match the plugin's code
            console.warn("This platform's catalog can't be read. Try: platformctl db upgrade")
            return None


def _read(session: Session, platform: Platform, name: str) -> CatalogEntry | None:
    from builtin_plugins.plugin_registry import api

    answers = platform.hooks.ask_now(api.find_listings, platform=platform, session=session, plugins=[name])
    ref = next((ref for answer in answers for ref in answer if ref.approved and ref.name == name), None)
    if ref is None:
        return None
    judged = platform.hooks.ask_now(
        api.judge_dependencies, platform=platform, session=session, plugin_id=ref.id
    )
    verdict = judged or api.DependencyVerdict("unknown", (), (), ())
    return _listed(
        "this platform's catalog",
        {"name": ref.name, "package": ref.package, "version_range": ref.version_range, "base_tier": ref.tier},
        verdict.verdict,
        verdict.failures,
        tuple(one.name for one in verdict.requires),
        verdict.conflicts,
    )


async def _elsewhere(name: str, address: str) -> CatalogEntry:
    import aiohttp

    if urlsplit(address).scheme not in ("http", "https") or not urlsplit(address).hostname:
        raise CommandFailed(f"'{address}' is not an address", "Write --from https://platform.example.org")
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    try:
        async with aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session:
            return await _asked(session, name, address)
    except (aiohttp.ClientError, TimeoutError):
        raise CommandFailed(
            f"no platform answers at {address}", "Check the address, and that the platform is running."
        ) from None


async def _asked(session: aiohttp.ClientSession, name: str, address: str) -> CatalogEntry:
    search = f"/v1/marketplace/plugins/search?limit=20&q={quote(name, safe='')}"
    page = await _get(session, address, search)
    found = next((one for one in page.get("plugins", ()) if one.get("name") == name), None)
    if found is None:
        raise Missing(f"the catalog at {address} has no plugin '{name}'", "Check the name.")
    key = quote(str(found.get("id")), safe="")
    graph = await _get(session, address, f"/v1/graph/dependencies/{key}")
    conflicts = await _get(session, address, f"/v1/graph/conflicts/{key}")
    return _listed(
        address,
        found,
        str(graph.get("verdict", "unknown")),
        tuple(_plain(text) for text in graph.get("resolve_failures", ())),
        tuple(_plain(one.get("name")) for one in graph.get("dependencies", ())),
        tuple((_plain(one.get("name")), _plain(one.get("reason"))) for one in conflicts.get("conflicts", ())),
    )


async def _get(session: aiohttp.ClientSession, address: str, path: str) -> Mapping[str, Any]:
    """The object at an address; empty if the instance has no dependency graph."""
    import json

    async with session.get(address + path) as answer:
        body = await answer.content.read(_MOST_BYTES)
        if answer.status in (404, 503) and path.startswith("/v1/graph/"):
            return {}
        try:
            found = json.loads(body) if answer.status == 200 else None
        except ValueError:
            found = None
    if not isinstance(found, dict):
        raise CommandFailed(
            f"{address} is not a platform with a catalog: "
            f"it answered {path.partition('?')[0]} with {answer.status}"
        )
    return found


def _listed(
    where: str,
    found: Mapping[str, Any],
    verdict: str,
    failures: tuple[str, ...],
    requires: tuple[str, ...],
    conflicts: tuple[tuple[str, str | None], ...],
) -> CatalogEntry:
    """The listing. Raises Refused for values that must not reach pip."""
    name, package = _plain(found.get("name")), found.get("package")
    if not package:
        raise Refused(f"{where} names no pip package for '{name}'", "Ask the plugin's author to add it.")
    try:
        versions = str(SpecifierSet(found.get("version_range") or ""))
    except (InvalidSpecifier, TypeError):
        raise Refused(f"{where} names no valid range of versions for '{name}'") from None
    if not isinstance(package, str) or not _PACKAGE.fullmatch(package):
        raise Refused(f"{where} names no valid pip package for '{name}'")
    tier = _plain(found.get("base_tier") or "community")
    return CatalogEntry(name, where, package, versions, tier, _plain(verdict), failures, requires, conflicts)


def _plain(text: object) -> str:
    """A stranger's text, made safe for a terminal."""
    return _CONTROL.sub(" ", "" if text is None else str(text))[:_MOST_TEXT]
