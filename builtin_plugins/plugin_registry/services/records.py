"""Plugins as records, and their health."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, cast

from builtin_plugins.tools.api import Directory, PluginEntry
from kernel.sdk import NotFound, Platform, utc_now
from kernel.sdk.telemetry import is_failure, run_check

from ..schemas import PluginHealth, PluginOut

# The tier that a plugin requires by default (wire-facts section 7).
_DEFAULT_TIER: Literal["community"] = "community"

HealthStatus = Literal["unknown", "healthy", "unhealthy", "error"]
HealthCheckResult = tuple[str, datetime, datetime]


async def get_entry(platform: Platform, name: str) -> PluginEntry:
    """The plugin called `name`. Raises NotFound."""
    entry = await Directory(platform).entry(name)
    if entry is None:
        raise NotFound(f"There is no plugin '{name[:80]}'")
    return entry


def record_of(entry: PluginEntry, last_check: HealthCheckResult | None) -> PluginOut:
    """The record of wire-facts 6.1; `last_check` is the result of the last health check."""
    return PluginOut(
        name=entry.name,
        version=entry.version,
        description=entry.description,
        author=entry.author,
        status=entry.status,
        enabled=entry.status == "enabled",
        dependencies=list(entry.requires),
        capabilities=list(entry.capabilities),
        data_sources=list(entry.data_sources),
        databases=list(entry.databases),
        registered_at=entry.registered_at,
        health_status=_health(entry, last_check),
        last_health_check=last_check[1] if last_check else None,
        health_changed_at=last_check[2] if last_check else None,
        install_source=entry.source,
        required_tier=_DEFAULT_TIER,
        reason=_reason(entry),
    )


def _reason(entry: PluginEntry) -> str | None:
    """Why the plugin is not in service, or what is wrong with it."""
    if entry.status == "disabled" and entry.reason is None:
        return f"It is disabled; an administrator can enable it: POST /v1/plugins/{entry.name}/enable"
    return entry.reason or entry.problem


def _health(entry: PluginEntry, last_check: HealthCheckResult | None) -> HealthStatus:
    if entry.status == "error":
        return "error"
    if entry.problem:
        return "unhealthy"
    return cast("HealthStatus", last_check[0]) if last_check and entry.status == "enabled" else "unknown"


async def health_of(platform: Platform, entry: PluginEntry) -> PluginHealth:
    """Run the plugin's checks now; a plugin that isn't in service is unhealthy, for that reason."""
    checks: dict[str, str] = {}
    message = _reason(entry)
    if entry.status == "enabled":
        own = Directory(platform).health_checks(entry.name)
        checks = {check.name: await run_check(platform, check) for check in own}
    healthy = message is None and not any(is_failure(text) for text in checks.values())
    return PluginHealth(
        name=entry.name,
        healthy=healthy,
        health_status="error" if entry.status == "error" else "healthy" if healthy else "unhealthy",
        last_health_check=utc_now(),
        message=message,
        checks=checks,
    )
