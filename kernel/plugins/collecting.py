"""Collects what plugins offer: each thing has one owner, and each route names its access."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from kernel.auth.permissions import Permission
from kernel.errors import StartupError
from kernel.events.events import Event, EventCatalog
from kernel.gateway import handlers as gateway_handlers
from kernel.gateway.health import OWN_CHECKS, check_name
from kernel.gateway.services import Service, declaration_problem
from kernel.hooks import hookspecs
from kernel.hooks.types import Declaration
from kernel.http.route_checks import RouteChecks
from kernel.jobs.declarations import JobRef
from kernel.plugins.actions import Action
from kernel.plugins.declarations import Declarations
from kernel.plugins.offers import Offers
from kernel.plugins.places import Cause
from kernel.plugins.states import PluginStates

R = TypeVar("R")

KERNEL = "kernel"
OWN_ROUTES = (gateway_handlers.routes,)


class Collector:
    """Collects and checks what the plugins of one platform offer."""

    def __init__(
        self,
        declarations: Declarations,
        states: PluginStates,
        permissions: dict[str, Permission],
        offers: Offers,
        events: EventCatalog,
    ) -> None:
        self._declarations = declarations
        self._states = states
        self._permissions = permissions
        self._offers = offers
        self._events = events
        names = (*OWN_CHECKS, *map(check_name, offers.known_services))
        self._holders = {("health check", name): KERNEL for name in names}

    def collect(self, own_jobs: Iterable[JobRef]) -> None:
        """Collect every plugin's permissions, events, jobs, actions, routes, services, checks and sources."""
        declared, offers = self._declared, self._offers
        for plugin, permissions in declared(hookspecs.register_permissions):
            if self._takes(plugin, "permission", [item.key for item in permissions]):
                self._permissions.update({item.key: item for item in permissions})
        for plugin, events in declared(hookspecs.register_events):
            self._add_events(plugin, events)
        offers.jobs.update({job.name: job for job in own_jobs})
        self._holders.update({("job", name): KERNEL for name in offers.jobs})
        for plugin, jobs in declared(hookspecs.register_jobs):
            if self._takes(plugin, "job", [job.name for job in jobs]):
                offers.jobs.update({job.name: job for job in jobs})
                offers.job_plugins.update({job.name: plugin for job in jobs})
        for plugin, actions in declared(hookspecs.register_actions):
            self._add_actions(plugin, actions)
        for plugin, tables in declared(hookspecs.register_routes):
            offers.route_tables += [(plugin, table) for table in tables]
        for plugin, services in declared(hookspecs.register_services):
            self._add_services(plugin, services)
        for plugin, checks in declared(hookspecs.register_health_checks):
            names = [*dict.fromkeys(check.name for check in checks)]  # a check may be in several services
            if self._takes(plugin, "health check", names):
                offers.health_checks += [(plugin, check) for check in checks]
        for plugin, sources in declared(hookspecs.register_plugin_sources):
            offers.sources += [(plugin, source) for source in sources]
        for plugin, setups in declared(hookspecs.register_app_setups):
            offers.app_setups += [(plugin, setup) for setup in setups]

    def _declared(self, spec: Declaration[[], R]) -> list[tuple[str, R]]:
        return sorted(self._declarations.of(spec), key=self._third_party_last)

    def _third_party_last(self, declared: Sequence[Any]) -> bool:
        """The sort key: third-party plugins come last, so that none takes a built-in plugin's name."""
        return not self._states.records[declared[0]].built_in

    def _takes(self, plugin: str, kind: str, names: Sequence[str]) -> bool:
        """Give a plugin these names. If one is taken, the plugin goes out of service; returns False."""
        for name in names:
            holder = plugin if names.count(name) > 1 else self._holders.get((kind, name))
            if holder is not None:
                self._refuse(plugin, f"its {kind} '{name}' is already declared by '{holder}'; rename it")
                return False
        self._holders.update({(kind, name): plugin for name in names})
        return True

    def _add_events(self, plugin: str, events: Sequence[type[Event]]) -> None:
        problem = self._events.add(plugin, events)
        if problem is not None:
            self._refuse(plugin, problem)

    def _add_actions(self, plugin: str, actions: Sequence[Action]) -> None:
        """Add a plugin's actions. By house rule 2, one with invalid access is refused like such a route."""
        for action in actions:
            problem = action.problem(self._permissions)
            if problem is not None:
                self._refuse(plugin, f"the action '{action.name}' {problem}")
                return
        if self._takes(plugin, "action", [f"{one.owner or plugin}.{one.name}" for one in actions]):
            self._offers.actions.update({(one.owner or plugin, one.name): one for one in actions})

    def _add_services(self, plugin: str, services: Sequence[Service]) -> None:
        """Add a plugin's services, each beside all others that are known here."""
        offers = self._offers
        if not self._takes(plugin, "service", [service.name for service in services]):
            return
        new = [check_name(one.name) for one in services if one.name not in offers.known_services]
        if not self._takes(plugin, "health check", new):
            return
        for declared in services:
            service = declared.completed(offers.known_services.get(declared.name))
            problem = declaration_problem(service, offers.all_services)
            if problem is not None:
                self._refuse(plugin, f"its service '{service.name}' {problem}")
                return
            offers.services[service.name] = plugin, service

    def check_routes(self) -> None:
        """House rule 7: a wrong route of the kernel stops the start; one of a plugin gets it refused."""
        own = {name for name, record in self._states.records.items() if record.built_in}
        checks = RouteChecks(self._permissions, self._offers.all_services, trusted={KERNEL, *own})
        problems = [(KERNEL, checks.problem(KERNEL, OWN_ROUTES))]
        offered = [(plugin, [table], "") for plugin, table in self._offers.route_tables]
        offered += [(plugin, [*one.tables], one.name) for plugin, one in self._offers.services.values()]
        for plugin, tables, service in sorted(offered, key=self._third_party_last):
            problems.append((plugin, checks.problem(plugin, tables, service)))
        for owner, flaw in problems:
            if flaw is not None:
                self._refuse(owner, *flaw)
        for plugin, offer in list(self._offers.services.values()):
            problem = checks.mount_problem(plugin, offer)
            if problem is not None:
                self._refuse(plugin, f"its service '{offer.name}' {problem}")

    def _refuse(self, owner: str, problem: str, cause: Cause | None = None) -> None:
        record = self._states.records.get(owner)
        if record is None or record.built_in:
            raise StartupError(f"plugin '{owner}': {problem}")
        self._states.fail(owner, problem, cause)
