"""Bundles switched on and off: what is wanted is written first, then put into effect.

A process that ends in between leaves what is wanted, and `reconcile` does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.platform_ops.bundles.membership import CLAIMS, CORE, Wanted
from builtin_plugins.platform_ops.models import BundleSwitch
from kernel.sdk import (
    DIRECTORY,
    PLUGIN_STATES,
    Caller,
    Conflict,
    NotFound,
    Platform,
    PlatformError,
    Unit,
    audit,
    contracts,
)

GATEWAY = "api-gateway"
Outcome = Literal["changed", "already", "absent"]


class BundleNotFound(NotFound):
    code = "bundle_not_found"
    default_detail = f"No such bundle; there are {', '.join(CLAIMS)}"


class CoreBundle(Conflict):
    code = "bundle_is_core"
    default_detail = "The bundle 'core' can't be disabled: without it nothing could be enabled again"


@dataclass
class Switched:
    """What became of services, by name; `errors` say which and why."""

    changed: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def wanted(session: Session) -> Wanted:
    """What administrators want, as it is stored."""
    off = select(BundleSwitch.name).where(BundleSwitch.enabled.is_(False))
    return Wanted(frozenset(session.scalars(off)))


def check_name(bundle: str) -> None:
    """Raise BundleNotFound for a name that is none."""
    if bundle not in CLAIMS:
        raise BundleNotFound()


async def want(caller: Caller, bundle: str, *, on: bool) -> Wanted:
    """Store what is wanted of a bundle. Raises CoreBundle where it can't be."""
    if bundle == CORE and not on:
        raise CoreBundle()
    return await caller.platform.database.write(_store, caller, bundle, on)


async def put(caller: Caller, services: Iterable[str], *, on: bool) -> Switched:
    """Switch the plugins of these services, one after the other; an error of one stops no other."""
    done = Switched()
    for service in services:
        try:
            outcome = await _put(caller, service, on=on)
        except PlatformError as error:
            done.errors.append(f"{service}: {error.detail}")
        else:
            getattr(done, outcome).append(service)
    return done


def plugin_of(platform: Platform, service: str) -> str | None:
    """The plugin that offers a service here and has not failed."""
    plugins = platform.resource(DIRECTORY).services().get(service, [])
    return plugins[0] if plugins and platform.resource(PLUGIN_STATES).is_loaded(plugins[0]) else None


def runs(platform: Platform, service: str) -> bool:
    """Whether a service answers here."""
    plugin = plugin_of(platform, service)
    return service == GATEWAY or (plugin is not None and platform.is_on(plugin))


async def _put(caller: Caller, service: str, *, on: bool) -> Outcome:
    if service == GATEWAY:
        return "already"
    plugin = plugin_of(caller.platform, service)
    if plugin is None:
        return "absent"
    if caller.platform.is_on(plugin) == on:
        return "already"
    if await caller.platform.hooks.ask(contracts.switch_plugin, caller=caller, plugin=plugin, on=on) is None:
        raise Conflict("nothing here switches plugins; install the plugin 'plugin_registry'")
    return "changed"


def _store(unit: Unit, caller: Caller, bundle: str, on: bool) -> Wanted:
    unit.lock("platform_ops.bundles")
    row = unit.session.get(BundleSwitch, bundle)
    was_on = row is None or row.enabled
    if row is None:
        row = BundleSwitch(name=bundle)
        unit.session.add(row)
    row.enabled, row.changed_by = on, caller.principal.subject
    if was_on != on:
        action = "bundle.enabled" if on else "bundle.disabled"
        audit(unit, action, "bundle", bundle, origin=caller.origin)
    unit.session.flush()
    return wanted(unit.session)
