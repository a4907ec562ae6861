"""Switches bundles on and off: the desired state is stored first, then put into effect.

A service with containers is switched by starting and stopping them, any other by its plugin. If the process
ends in between, the desired state stays, and `reconcile` does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.platform_ops import api
from builtin_plugins.platform_ops.bundles.membership import CLAIMS, CORE, BundleSwitches, Claims, all_claims
from builtin_plugins.platform_ops.containers.engine import Container, Engine, engine_of
from builtin_plugins.platform_ops.models import BundleSwitch
from builtin_plugins.tools.api import Directory
from kernel.sdk import PLUGIN_STATES, Caller, Conflict, NotFound, Platform, PlatformError, Unit, audit

GATEWAY = "api-gateway"
Outcome = Literal["changed", "already", "absent"]


class BundleNotFound(NotFound):
    code = "bundle_not_found"
    default_detail = f"No such bundle; the bundles are {', '.join(CLAIMS)}"


class CoreBundle(Conflict):
    code = "bundle_is_core"
    default_detail = "The bundle 'core' can't be disabled: without it nothing could be enabled again"


@dataclass
class SwitchedServices:
    """What happened to services, by name; `errors` tell which failed and why."""

    changed: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Fleet:
    """The existing containers, and the bundles' claims from their labels."""

    engine: Engine | None
    containers: Sequence[Container]

    @property
    def claims(self) -> Claims:
        """The platform's own claims and those from labels."""
        return all_claims((one.service, one.bundles) for one in self.containers)

    def of(self, service: str) -> list[Container]:
        """The containers of a service."""
        return [one for one in self.containers if one.service == service]

    def check_name(self, bundle: str) -> None:
        """Raise BundleNotFound if no bundle has this name."""
        if bundle not in self.claims:
            raise BundleNotFound(f"No such bundle; the bundles are {', '.join(self.claims)}")


async def fleet(platform: Platform, *, now: bool) -> Fleet:
    """The existing containers; `now` for a fresh list before changes. Raises `ENGINE_ERRORS`."""
    engine = engine_of(platform)
    if engine is None:
        return Fleet(None, ())
    return Fleet(engine, await (engine.containers() if now else engine.recent_containers()))


def desired_switches(session: Session, claims: Claims) -> BundleSwitches:
    """The desired state, as administrators set it."""
    off = select(BundleSwitch.name).where(BundleSwitch.enabled.is_(False))
    return BundleSwitches(frozenset(session.scalars(off)), claims)


async def want(caller: Caller, bundle: str, claims: Claims, *, on: bool) -> BundleSwitches:
    """Store the desired state of a bundle. Raises CoreBundle if it can't be disabled."""
    if bundle == CORE and not on:
        raise CoreBundle()
    return await caller.platform.database.write(_store, caller, bundle, claims, on)


async def put(caller: Caller, fleet: Fleet, services: Iterable[str], *, on: bool) -> SwitchedServices:
    """Switch these services, one after the other; an error of one doesn't stop the others."""
    done = SwitchedServices()
    for service in services:
        try:
            outcome = await _put(caller, fleet, service, on=on)
        except PlatformError as error:
            done.errors.append(f"{service}: {error.detail}")
        else:
            getattr(done, outcome).append(service)
    return done


def plugin_of(platform: Platform, service: str) -> str | None:
    """The plugin that offers a service here and has not failed."""
    plugins = Directory(platform).services().get(service, [])
    return plugins[0] if plugins and platform.resource(PLUGIN_STATES).is_loaded(plugins[0]) else None


def runs(platform: Platform, service: str) -> bool:
    """Whether a service answers in this process."""
    plugin = plugin_of(platform, service)
    return service == GATEWAY or (plugin is not None and platform.is_on(plugin))


async def _put(caller: Caller, fleet: Fleet, service: str, *, on: bool) -> Outcome:
    containers = fleet.of(service)
    if fleet.engine is not None and containers:
        return await _put_containers(fleet.engine, containers, on=on)
    if service == GATEWAY:
        return "already"
    plugin = plugin_of(caller.platform, service)
    if plugin is None:
        return "absent"
    if caller.platform.is_on(plugin) == on:
        return "already"
    if await caller.platform.hooks.ask(api.switch_plugin, caller=caller, plugin=plugin, on=on) is None:
        raise Conflict("no plugin here can enable or disable others; install the plugin 'plugin_registry'")
    return "changed"


async def _put_containers(engine: Engine, containers: Iterable[Container], *, on: bool) -> Outcome:
    changed = [
        await (engine.start(one) if on else engine.stop(one)) for one in containers if one.running != on
    ]
    return "changed" if any(changed) else "already"


def _store(unit: Unit, caller: Caller, bundle: str, claims: Claims, on: bool) -> BundleSwitches:
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
    return desired_switches(unit.session, claims)
