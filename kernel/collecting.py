"""What plugins offer, put together: each thing has one owner, and each route names its access."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernel.auth import handlers as auth_handlers
from kernel.errors import StartupError
from kernel.gateway import handlers as gateway_handlers
from kernel.gateway.services import Service
from kernel.http.route_checks import RouteChecks

if TYPE_CHECKING:
    from kernel.platform import Platform

OWN_ROUTES = (*auth_handlers.TABLES, gateway_handlers.routes)


def collect(platform: Platform) -> None:
    """Permissions, jobs, actions, routes, services, checks and sources of every plugin."""
    for _, permissions in platform.declare("register_permissions"):
        platform.permissions.update({item.key: item for item in permissions})
    for _, jobs in platform.declare("register_jobs"):
        platform.jobs.update({job.name: job for job in jobs})
    for plugin, actions in platform.declare("register_actions"):
        platform.actions.update({(action.owner or plugin, action.name): action for action in actions})
    for plugin, tables in platform.declare("register_routes"):
        platform.route_tables += [(plugin, table) for table in tables]
    for plugin, services in platform.declare("register_services"):
        _add_services(platform, plugin, services)
    for plugin, checks in platform.declare("register_health_checks"):
        platform.health_checks += [(plugin, check) for check in checks]
    for plugin, sources in platform.declare("register_plugin_sources"):
        platform.sources += [(plugin, source) for source in sources]


def _add_services(platform: Platform, plugin: str, services: Sequence[Service]) -> None:
    for service in services:
        if service.name in platform.services:
            holder = platform.services[service.name][0]
            platform.fail_plugin(plugin, f"the service '{service.name}' is offered by '{holder}' already")
            return
        platform.services[service.name] = (plugin, service)


def check_routes(platform: Platform) -> None:
    """House rule 7: a route that names no access stops the start, and refuses a stranger's plugin."""
    checks = RouteChecks(platform.permissions)
    problems = [("kernel", checks.problem("kernel", OWN_ROUTES))]
    problems += [(plugin, checks.problem(plugin, [table])) for plugin, table in platform.route_tables]
    for plugin, service in platform.services.values():
        problems.append((plugin, checks.problem(plugin, service.tables, service.name)))
    for owner, problem in problems:
        if problem is not None:
            _refuse(platform, owner, problem)


def _refuse(platform: Platform, owner: str, problem: str) -> None:
    record = platform.host.records.get(owner)
    if record is None or record.built_in:
        raise StartupError(f"plugin '{owner}': {problem}")
    platform.fail_plugin(owner, problem)
