"""What the plugins in service offer to the kernel: routes, services, jobs, actions, checks, sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from kernel.gateway.services import Service
from kernel.http.routes import RouteTable
from kernel.jobs.declarations import JobRef
from kernel.observe.health import HealthCheck
from kernel.plugins.actions import Action
from kernel.plugins.resource_keys import ResourceKey


@dataclass
class Offers:
    """All declared items, each with its plugin."""

    jobs: dict[str, JobRef] = field(default_factory=dict)
    job_plugins: dict[str, str] = field(default_factory=dict)
    actions: dict[tuple[str, str], Action] = field(default_factory=dict)
    services: dict[str, tuple[str, Service]] = field(default_factory=dict)
    known_services: dict[str, Service] = field(default_factory=dict)
    route_tables: list[tuple[str, RouteTable]] = field(default_factory=list)
    health_checks: list[tuple[str, HealthCheck]] = field(default_factory=list)
    sources: list[tuple[str, ResourceKey[Any]]] = field(default_factory=list)
    app_setups: list[tuple[str, Callable[[web.Application], None]]] = field(default_factory=list)

    @property
    def all_services(self) -> dict[str, Service]:
        """The services that plugins offer here, and those that installed packages merely name."""
        return self.known_services | {name: service for name, (_, service) in self.services.items()}

    def withdraw(self, plugins: Iterable[str]) -> None:
        """Forget what these plugins offered, except jobs: those already accepted are still run."""
        gone = frozenset(plugins)
        self.route_tables = [item for item in self.route_tables if item[0] not in gone]
        self.health_checks = [item for item in self.health_checks if item[0] not in gone]
        self.services = {name: item for name, item in self.services.items() if item[0] not in gone}
        self.actions = {key: action for key, action in self.actions.items() if key[0] not in gone}
        self.sources = [item for item in self.sources if item[0] not in gone]
        self.app_setups = [item for item in self.app_setups if item[0] not in gone]


OFFERS: ResourceKey[Offers] = ResourceKey("offers")
