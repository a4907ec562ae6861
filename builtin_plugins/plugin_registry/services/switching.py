"""Enables and disables plugins: stored first, then applied in every process."""

from __future__ import annotations

from builtin_plugins.tools.api import Directory, PluginEntry
from kernel.sdk import Caller, Conflict, Platform, Unit, audit, utc_now

from ..live import LIVE, TOPIC
from ..models import Switch

_LOCK = "plugin_registry.switch"


async def switch(caller: Caller, entry: PluginEntry, *, on: bool, own_name: str) -> None:
    """Enable or disable a plugin; doing it twice is not an error. Raises Conflict if it can't last."""
    platform = caller.platform
    if entry.reason is not None:
        raise Conflict(f"'{entry.name}' can't be enabled or disabled: {entry.reason}")
    if on:
        await _check_requirements(platform, entry)
    else:
        await _check_dependants(platform, entry, own_name)
    await platform.database.write(_remember, caller, entry, on)
    await platform.resource(LIVE).refresh()


def _remember(unit: Unit, caller: Caller, entry: PluginEntry, on: bool) -> None:
    unit.lock(_LOCK)
    row = unit.session.get(Switch, entry.name)
    was_on = not entry.off_by_default if row is None else row.enabled
    unit.session.merge(Switch(plugin=entry.name, enabled=on, changed_at=utc_now(), changed_by=caller.id))
    if was_on != on:
        action = "plugin.enabled" if on else "plugin.disabled"
        before, after = {"enabled": was_on}, {"enabled": on}
        audit(unit, action, "plugin", entry.name, before=before, after=after, origin=caller.origin)
    unit.notify(TOPIC, entry.name)


async def _check_requirements(platform: Platform, entry: PluginEntry) -> None:
    off = [name for name in entry.requires if not platform.is_on(name)]
    if off:
        raise Conflict(f"'{entry.name}' requires {_quoted(off)}; enable {_those(off)} first")


async def _check_dependants(platform: Platform, entry: PluginEntry, own_name: str) -> None:
    if entry.essential or entry.name == own_name:
        raise Conflict(f"'{entry.name}' can't be disabled: without it nothing could be enabled again")
    others = await Directory(platform).entries()
    needing = [other.name for other in others if entry.name in other.requires and other.status == "enabled"]
    if needing:
        verb = "requires" if len(needing) == 1 else "require"
        raise Conflict(f"{_quoted(needing)} {verb} '{entry.name}'; disable {_those(needing)} first")


def _quoted(names: list[str]) -> str:
    *rest, last = (f"'{name}'" for name in names)
    return f"{', '.join(rest)} and {last}" if rest else last


def _those(names: list[str]) -> str:
    return "that" if len(names) == 1 else "them"
