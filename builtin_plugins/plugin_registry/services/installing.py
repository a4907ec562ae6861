"""Installs and removes plugins that are documents, through the plugin source that takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete

from builtin_plugins.tools.api import Directory, PluginEntry, PluginSource
from kernel.sdk import Caller, Conflict, NotFound, Platform, Unit, audit

from ..live import LIVE, TOPIC
from ..models import ConfigValue, Switch


def source_for_documents(platform: Platform) -> PluginSource | None:
    """The source that takes documents; None if there is none."""
    return next(iter(Directory(platform).sources()), None)


async def install(caller: Caller, document: bytes, media_type: str, *, update: bool) -> PluginEntry:
    """Install a document, or update an installed one; durable and live when it returns."""
    source = source_for_documents(caller.platform)
    if source is None:
        raise Conflict("No active plugin accepts manifests")
    entries = {entry.name: entry for entry in await source.plugins()} if update else {}
    entry = await source.install(document, media_type, update=update)
    await caller.platform.database.write(_note, caller, entry, entries.get(entry.name), update)
    return entry


def _note(unit: Unit, caller: Caller, entry: PluginEntry, earlier: PluginEntry | None, update: bool) -> None:
    action = "plugin.updated" if update else "plugin.installed"
    before, after = _state(earlier), _state(entry)
    audit(unit, action, "plugin", entry.name, before=before, after=after, origin=caller.origin)


def _state(entry: PluginEntry | None) -> dict[str, Any] | None:
    """A plugin, for the audit log."""
    return None if entry is None else {"version": entry.version, "webhooks": list(entry.webhooks)}


async def uninstall(caller: Caller, name: str) -> None:
    """Remove a plugin with its document, stored data, configuration and switch.

    Raises NotFound for an unknown name, Conflict for a plugin made of code.
    """
    platform = caller.platform
    if any(record.name == name for record in platform.plugins):
        raise Conflict(
            f"'{name}' is a Python package: uninstall it on the server with platformctl plugins "
            f"uninstall. To turn it off, POST /v1/plugins/{name}/disable"
        )
    directory = Directory(platform)
    earlier = await directory.entry(name)
    await platform.database.write(_forget, caller, list(directory.sources()), name, earlier)
    await platform.resource(LIVE).refresh()


def _forget(
    unit: Unit, caller: Caller, sources: Sequence[PluginSource], name: str, earlier: PluginEntry | None
) -> None:
    removals = [source.remove(unit, name) for source in sources]
    if not any(removals):
        raise NotFound(f"There is no plugin '{name[:80]}'")
    unit.session.execute(delete(Switch).where(Switch.plugin == name))
    unit.session.execute(delete(ConfigValue).where(ConfigValue.plugin == name))
    audit(unit, "plugin.uninstalled", "plugin", name, before=_state(earlier), origin=caller.origin)
    unit.notify(TOPIC, name)


async def refresh(platform: Platform) -> list[str]:
    """Let every source look for changes now; returns the live webhooks."""
    for source in Directory(platform).sources():
        await source.refresh()
    return webhooks(await Directory(platform).entries())


def webhooks(entries: list[PluginEntry]) -> list[str]:
    """Full paths of the webhooks of plugins in service."""
    return sorted(f"/webhook{path}" for e in entries if e.status == "enabled" for path in e.webhooks)
