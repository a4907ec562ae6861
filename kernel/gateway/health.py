"""The content of `/health`: for this process and all of its checks, or for one service (wire-facts 2.1)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from kernel import __version__
from kernel.errors import Unhealthy
from kernel.gateway.services import GATEWAY, REMOTE_SERVICES, RemoteServices, Service, in_order
from kernel.hooks import hookspecs
from kernel.libs.children.confinement import missing_confinement
from kernel.libs.live_cache import LiveCache
from kernel.observe.health import Health, HealthCheck, NotChecked, is_failure, run_check, run_checks
from kernel.plugins.offers import OFFERS
from kernel.plugins.resource_keys import ResourceKey
from kernel.plugins.states import PLUGIN_STATES
from kernel.process.machine_faults import FOR_OPERATORS
from kernel.stores.protocols import CacheUnavailable

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.health")

R = TypeVar("R")
MakeReport = Callable[["Platform"], Awaitable[R]]

_PATIENCE = 3.0  # less than the time limit of a check
_REPORTS = 100


class HealthReports:
    """Reports that anyone may ask for. Each is made once for all who ask at the same time or soon after, so
    that asking often costs the process little.

    A change of the plugins in service is seen at once.
    """

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._states = platform.resource(PLUGIN_STATES)
        seconds = platform.settings.health_cache_seconds
        self._reports: LiveCache[tuple[MakeReport[Any], int], Any] = LiveCache(self._make, seconds, _REPORTS)

    async def get(self, make: MakeReport[R]) -> R:
        """What this function returned when it was called at most `health_cache_seconds` ago."""
        report: R = await self._reports.get((make, self._states.revision))
        return report

    async def _make(self, key: tuple[MakeReport[Any], int]) -> Any:
        return await key[0](self._platform)


HEALTH_REPORTS: ResourceKey[HealthReports] = ResourceKey("health_reports")


async def gateway_health(platform: Platform) -> Health:
    """Everything that this process checks, and each service (decisions.md, Health).

    What is critical to a service alone decides about that service.
    """
    checks = [
        *kernel_checks(platform),
        *service_checks(platform),
        *(replace(check, critical=check.critical and not check.service) for _, check in _checks(platform)),
    ]
    failing = platform.resource(PLUGIN_STATES).failing()
    plugins = {
        r.name: {
            "status": r.status if platform.is_on(r.name) else "disabled",
            "reason": r.reason or failing.get(r.name),
        }
        for r in platform.plugins
    }
    for others in await platform.hooks.ask(hookspecs.list_other_plugins, platform=platform):
        plugins |= {name: {"status": status, "reason": reason} for name, (status, reason) in others.items()}
    extra = {"phase": platform.settings.phase, "plugins": plugins}
    health = await run_checks(platform, GATEWAY, __version__, checks, extra, by_itself=False)
    failed = [name for name, text in health.checks.items() if is_failure(text)]
    if health.status == "degraded":
        return health.model_copy(update={"message": f"Working, except for: {', '.join(failed)}"})
    return health


def _checks(platform: Platform) -> list[tuple[str, HealthCheck]]:
    return [
        (plugin, check) for plugin, check in platform.resource(OFFERS).health_checks if platform.is_on(plugin)
    ]


async def service_health(platform: Platform, service: Service) -> Health:
    """The content of a service's own `/health`."""
    own = [check for _, check in _checks(platform) if check.service == service.name]
    extra = await _figures(platform, service)
    return await run_checks(platform, service.name, service.version, [_DATABASE, *own], extra)


async def _figures(platform: Platform, service: Service) -> dict[str, Any]:
    """The service's own fields; empty if it fails, as health is read when things go wrong."""
    if service.health_extra is None:
        return {}
    try:
        return await service.health_extra(platform)
    except Exception as error:  # noqa: BLE001 - the checks say what is wrong
        log.warning("health details of %s are unavailable: %s", service.name, type(error).__name__)
        return {}


async def _check_database(platform: Platform) -> None:
    await platform.database.ping()
    if platform.database.damaged:
        raise Unhealthy(FOR_OPERATORS["damaged"])
    if await platform.database.is_read_only():
        raise Unhealthy("the database is read-only; nothing can be saved")


async def _check_cache(platform: Platform) -> None:
    try:
        await platform.cache.ping()
    except CacheUnavailable as error:
        why = f"the cache store does not answer ({error}); requests are not rate-limited"
        raise Unhealthy(why) from None


async def _check_plugins(platform: Platform) -> None:
    bad = {r.name: r.reason for r in platform.plugins if r.status in ("failed", "refused")}
    bad |= platform.resource(PLUGIN_STATES).failing()
    if bad:
        raise Unhealthy("; ".join(f"{name}: {reason}" for name, reason in bad.items()))


async def _check_confinement(_platform: Platform) -> None:
    if lacks := missing_confinement():
        raise NotChecked(f"limited, but not confined: this kernel lacks {' and '.join(lacks)}")


def check_name(service: str) -> str:
    """The key of a service in the `checks` of the gateway's health."""
    return service.replace("-", "_")


_DATABASE = HealthCheck("database", _check_database, critical=True)


OWN_CHECKS = ("database", "disk", "cache", "redis", "plugins", "child_processes")
"""Names of the kernel's own checks."""


def kernel_checks(platform: Platform) -> list[HealthCheck]:
    """Database, disk, cache (also as `redis`, if it is Redis), plugins and child processes."""
    settings = platform.settings
    redis = settings.redis_url is not None and settings.cache_store == "auto"
    cache = ("cache", "redis") if redis else ("cache",)
    return [
        _DATABASE,
        HealthCheck("disk", lambda platform: platform.disk.check(), critical=True),
        *(HealthCheck(name, _check_cache) for name in cache),
        HealthCheck("plugins", _check_plugins),
        HealthCheck("child_processes", _check_confinement),
    ]


def service_checks(platform: Platform) -> list[HealthCheck]:
    """One check for each service, under its name in snake case."""
    phase = platform.settings.phase
    return [
        HealthCheck(
            check_name(service.name),
            partial(_check_service, name=service.name),
            service.critical_phase is not None and phase >= service.critical_phase,
        )
        for service in in_order(platform.resource(OFFERS).all_services.values())
    ]


async def _check_service(platform: Platform, name: str) -> None:
    remote = platform.resources.find(REMOTE_SERVICES)
    if remote is not None and name in remote.names:
        await _check_elsewhere(remote, name)
        return
    offered = platform.resource(OFFERS).services.get(name)
    if offered is None:
        raise NotChecked("not installed")
    plugin = offered[0]
    if not platform.is_on(plugin):
        raise Unhealthy(f"the plugin '{plugin}' is disabled")
    await _check_here(platform, name)


async def _check_here(platform: Platform, name: str) -> None:
    """Run a service's critical checks in this process; its other checks are listed by name."""
    for _, check in _checks(platform):
        if check.service != name or not check.critical:
            continue
        if is_failure(text := await run_check(platform, check, by_itself=False)):
            raise Unhealthy(f"{check.name}: {text.removeprefix('unhealthy: ')}")


async def _check_elsewhere(remote: RemoteServices, name: str) -> None:
    body = await remote.fetch_health(name, _PATIENCE)
    checks = body.get("checks")
    if body.get("status") == "unhealthy":
        texts = checks.items() if isinstance(checks, dict) else ()
        failures = (f"{check}: {str(text)[11:]}" for check, text in texts if is_failure(str(text)))
        raise Unhealthy(next(failures, "reported by the service itself"))
