"""What plugins offer, put together: each thing has one owner, and each route names its access."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kernel import hookspecs
from kernel.actions import Action
from kernel.auth import handlers as auth_handlers
from kernel.auth.permissions import Permission
from kernel.declarations import Declarations
from kernel.errors import StartupError
from kernel.events import Event, EventCatalogue
from kernel.gateway import handlers as gateway_handlers
from kernel.gateway import root
from kernel.gateway.services import Service
from kernel.http.route_checks import RouteChecks
from kernel.jobs import handlers as job_handlers
from kernel.jobs.declarations import JobRef
from kernel.offers import Offers
from kernel.places import Cause
from kernel.plugin_states import PluginStates

OWN_ROUTES = (*auth_handlers.TABLES, job_handlers.routes, gateway_handlers.routes, root.routes)


class Collector:
    """Collects and checks what the plugins of one platform offer."""

    def __init__(
        self,
        declarations: Declarations,
        states: PluginStates,
        permissions: dict[str, Permission],
        offers: Offers,
        events: EventCatalogue,
    ) -> None:
        self._declarations = declarations
        self._states = states
        self._permissions = permissions
        self._offers = offers
        self._events = events

    def collect(self, own_jobs: Iterable[JobRef]) -> None:
        """Permissions, events, jobs, actions, routes, services, checks and sources of every plugin."""
        declared, offers = self._declarations.of, self._offers
        for _, permissions in declared(hookspecs.register_permissions):
            self._permissions.update({item.key: item for item in permissions})
        for plugin, events in sorted(declared(hookspecs.register_events), key=self._third_party_last):
            self._add_events(plugin, events)
        offers.jobs.update({job.name: job for job in own_jobs})
        for plugin, jobs in declared(hookspecs.register_jobs):
            offers.jobs.update({job.name: job for job in jobs})
            offers.job_plugins.update({job.name: plugin for job in jobs})
        for plugin, actions in declared(hookspecs.register_actions):
            self._add_actions(plugin, actions)
        for plugin, tables in declared(hookspecs.register_routes):
            offers.route_tables += [(plugin, table) for table in tables]
        for plugin, services in declared(hookspecs.register_services):
            self._add_services(plugin, services)
        for plugin, checks in declared(hookspecs.register_health_checks):
            offers.health_checks += [(plugin, check) for check in checks]
        for plugin, sources in declared(hookspecs.register_plugin_sources):
            offers.sources += [(plugin, source) for source in sources]

    def _third_party_last(self, declared: tuple[str, object]) -> bool:
        """Whether it is somebody else's plugin: none takes a name from the platform's own."""
        return not self._states.records[declared[0]].built_in

    def _add_events(self, plugin: str, events: Sequence[type[Event]]) -> None:
        problem = self._events.add(plugin, events)
        if problem is not None:
            self._refuse(plugin, problem)

    def _add_actions(self, plugin: str, actions: Sequence[Action]) -> None:
        """House rule 2, for actions: one whose access does not hold is refused as a route's is."""
        for action in actions:
            problem = action.problem(self._permissions)
            if problem is not None:
                self._refuse(plugin, f"the action '{action.name}' {problem}")
                return
        self._offers.actions.update({(action.owner or plugin, action.name): action for action in actions})

    def _add_services(self, plugin: str, services: Sequence[Service]) -> None:
        for service in services:
            if service.name in self._offers.services:
                holder = self._offers.services[service.name][0]
                self._states.fail(plugin, f"the service '{service.name}' is already offered by '{holder}'")
                return
            self._offers.services[service.name] = (plugin, service)

    def check_routes(self) -> None:
        """House rule 7: a wrong route of the kernel stops the start, one of a plugin refuses it."""
        checks = RouteChecks(self._permissions)
        problems = [("kernel", checks.problem("kernel", OWN_ROUTES))]
        problems += [(plugin, checks.problem(plugin, [table])) for plugin, table in self._offers.route_tables]
        for plugin, service in self._offers.services.values():
            problems.append((plugin, checks.problem(plugin, service.tables, service.name)))
        for owner, flaw in problems:
            if flaw is not None:
                self._refuse(owner, *flaw)

    def _refuse(self, owner: str, problem: str, cause: Cause | None = None) -> None:
        record = self._states.records.get(owner)
        if record is None or record.built_in:
            raise StartupError(f"plugin '{owner}': {problem}")
        self._states.fail(owner, problem, cause)
