"""All plugins as clients see them: Python packages, and those that other plugins provide at run time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from kernel.sdk import ANY_ERROR, PLUGIN_STATES, Action, HealthCheck, Platform
from kernel.sdk.operations import OFFERS, PluginRecord

from .sources import EntryStatus, PluginEntry, PluginSource

log = logging.getLogger("platform.plugins")

# Path segments under /v1/plugins that would hide a plugin of that name, and the kernel's own name.
RESERVED_NAMES = frozenset({"ai", "install", "kernel", "reload-webhook", "schema"})


class Directory:
    """Asks the plugin host and every source. It keeps nothing: make one where you need it."""

    def __init__(self, platform: Platform) -> None:
        self._permissions = platform.permissions
        self._resources = platform.resources
        self._states = platform.resource(PLUGIN_STATES)
        self._offers = platform.resource(OFFERS)

    async def entries(self) -> list[PluginEntry]:
        """Every plugin, by name."""
        plugins = [*map(self._of_code, self._states.records.values()), *await self.offered()]
        return sorted(plugins, key=lambda entry: entry.name)

    async def offered(self) -> list[PluginEntry]:
        """The plugins from sources only."""
        plugins: list[PluginEntry] = []
        for owner, source in self._opened():
            try:
                entries = await source.plugins()
            except ANY_ERROR:  # boundary: one source's failure must not hide the plugins of the others
                log.exception("the plugin source '%s' of %s failed", source.name, owner)
                continue
            plugins += [self._judged(owner, entry) for entry in entries]
        return plugins

    async def entry(self, name: str) -> PluginEntry | None:
        """One plugin; None for an unknown name."""
        record = self._states.records.get(name)
        if record is not None:
            return self._of_code(record)
        return next((entry for entry in await self.offered() if entry.name == name), None)

    async def actions(self) -> list[tuple[str, Action]]:
        """The (plugin, action) pairs of every active plugin, sorted by name."""
        pairs = [(n, action) for (n, _), action in self._offers.actions.items() if self._states.is_on(n)]
        for entry in await self.offered():
            pairs += [(entry.name, action) for action in await self._offered_actions(entry.name)]
        return sorted(pairs, key=lambda pair: (pair[0], pair[1].name))

    def actions_out_of_service(self) -> list[tuple[str, Action]]:
        """The (plugin, action) pairs of loaded but disabled plugins made of code."""
        pairs = ((n, action) for (n, _), action in self._offers.actions.items() if not self._states.is_on(n))
        return sorted(pairs, key=lambda pair: (pair[0], pair[1].name))

    async def action(self, plugin: str, name: str) -> Action | None:
        """An action of an active plugin, or None."""
        declared = self._offers.actions.get((plugin, name))
        if declared is not None:
            return declared if self._states.is_on(plugin) else None
        return next((item for item in await self._offered_actions(plugin) if item.name == name), None)

    def services(self) -> dict[str, list[str]]:
        """The plugins with routes in each service of this process; the one that offers it comes first."""
        plugins_by_service = {name: [plugin] for name, (plugin, _) in self._offers.services.items()}
        for plugin, table in self._offers.route_tables:
            if table.service in plugins_by_service and plugin not in plugins_by_service[table.service]:
                plugins_by_service[table.service].append(plugin)
        return plugins_by_service

    def sources(self) -> Sequence[PluginSource]:
        """The sources of enabled plugins."""
        return [source for owner, source in self._opened() if self._states.is_on(owner)]

    def _opened(self) -> list[tuple[str, PluginSource]]:
        """The (plugin, source) pairs that this process has opened."""
        sources = ((owner, self._resources.find(key)) for owner, key in self._offers.sources)
        return [(owner, source) for owner, source in sources if source is not None]

    def health_checks(self, plugin: str) -> Sequence[HealthCheck]:
        """The checks of one plugin made of code."""
        return [check for owner, check in self._offers.health_checks if owner == plugin]

    def taken_names(self) -> frozenset[str]:
        """Names that a source must not use: those of Python plugins, active or not, and reserved ones."""
        return RESERVED_NAMES | self._states.records.keys()

    async def _offered_actions(self, plugin: str) -> list[Action]:
        if not self._states.is_on(plugin):
            return []
        actions = [action for source in self.sources() for action in await source.actions(plugin)]
        return [action for action in actions if self._is_sound(plugin, action)]

    def _is_sound(self, plugin: str, action: Action) -> bool:
        problem = action.problem(self._permissions)
        if problem is not None:
            log.error("the action '%s' of %s %s", action.name, plugin, problem)
        return problem is None

    def _judged(self, owner: str, entry: PluginEntry) -> PluginEntry:
        """The entry, with the status that the plugin's switch implies."""
        if entry.status == "error" or self._states.is_on(entry.name):
            if self._states.is_on(owner):
                return entry
            return replace(entry, status="disabled", reason=f"the plugin '{owner}' is disabled")
        return replace(entry, status="disabled")

    def _of_code(self, record: PluginRecord) -> PluginEntry:
        return PluginEntry(
            name=record.name,
            status=self._status(record),
            source="vendored" if record.built_in else "package",
            version=record.version,
            description=record.description,
            author=record.author,
            reason=record.reason,
            problem=self._states.problem_of(record),
            requires=record.requires,
            capabilities=record.capabilities,
            data_sources=record.data_sources,
            databases=record.databases,
            essential=bool(getattr(record.instance, "essential", False)),
            off_by_default=record.off_by_default,
            package=None if record.built_in else record.distribution,
            registered_at=record.registered_at,
        )

    def _status(self, record: PluginRecord) -> EntryStatus:
        if record.status == "not_installed":
            return "registered"
        if record.status != "loaded":
            return "disabled" if record.status == "disabled" else "error"
        return "enabled" if self._states.is_on(record.name) else "disabled"
