"""Looks up a plugin's package in the catalogs that plugins know, and checks what they say of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from cli.failures import CommandFailed, Missing, Refused

if TYPE_CHECKING:
    from kernel.plugins.diagnostics import PluginPackage

NAME = re.compile(r"[^\W_][^\x00-\x1f/<>=!~;\[\]@]{0,99}")
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
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
    """What this platform's catalog says about the plugin `name`; None if there is none.

    Raises Missing if the catalog at `address` has none, Refused for an entry that can't be installed.
    """
    from cli import running

    if address is None:
        package = running.run(_here(name)) if NAME.fullmatch(name) else None
        return None if package is None else _checked(package, "this platform's catalog")
    address = address.rstrip("/")
    if urlsplit(address).scheme not in ("http", "https") or not urlsplit(address).hostname:
        raise CommandFailed(f"'{address}' is not an address", "Write --from https://platform.example.org")
    package = running.run(_elsewhere(name, address))
    if package is None:
        raise Missing(f"the catalog at {address} has no plugin '{name}'", "Check the name.")
    return _checked(package, address)


async def _here(name: str) -> PluginPackage | None:
    from sqlalchemy.exc import SQLAlchemyError

    from cli import console, running
    from kernel.hooks.hookspecs import find_plugin_package

    settings = running.kernel_settings()
    if settings.database_url is None and not (settings.home / "platform.db").exists():
        return None  # the platform was never started
    async with running.stored_platform(apply_migrations=False) as platform:
        try:
            return await platform.hooks.ask(find_plugin_package, platform=platform, name=name, address=None)
        except SQLAlchemyError:  # the tables don't match the plugin's code
            console.warn("This platform's catalog can't be read. Try: platformctl db upgrade")
            return None


async def _elsewhere(name: str, address: str) -> PluginPackage | None:
    from cli import running
    from kernel.hooks.hookspecs import find_plugin_package

    async with running.explained_platform() as platform:
        if not platform.hooks.implementations(find_plugin_package):
            raise CommandFailed("no plugin here can read catalogs", "'platformctl plugins list' shows all.")
        return await platform.hooks.ask(find_plugin_package, platform=platform, name=name, address=address)


def _checked(package: PluginPackage, where: str) -> CatalogEntry:
    """The entry. Raises Refused for values that must not reach pip."""
    name = _plain(package.name)
    if not package.package:
        raise Refused(f"{where} names no pip package for '{name}'", "Ask the plugin's author to add it.")
    try:
        versions = str(SpecifierSet(package.version_range or ""))
    except (InvalidSpecifier, TypeError):
        raise Refused(f"{where} names no valid range of versions for '{name}'") from None
    if not isinstance(package.package, str) or not _PACKAGE.fullmatch(package.package):
        raise Refused(f"{where} names no valid pip package for '{name}'")
    return CatalogEntry(
        name,
        where,
        package.package,
        versions,
        _plain(package.tier or "community"),
        _plain(package.verdict),
        tuple(_plain(text) for text in package.failures),
        tuple(_plain(required) for required in package.requires),
        tuple((_plain(other), _plain(reason)) for other, reason in package.conflicts),
    )


def _plain(text: object) -> str:
    """A stranger's text, made safe for a terminal."""
    return _CONTROL.sub(" ", "" if text is None else str(text))[:_MOST_TEXT]
