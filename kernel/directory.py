"""Every plugin as clients see it: those made of code, and those that other plugins offer while running."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kernel.actions import Action
from kernel.db.base import utc_now
from kernel.errors import FAULTS
from kernel.plugins import PluginRecord

if TYPE_CHECKING:
    from kernel.db.engine import Unit
    from kernel.platform import Platform

log = logging.getLogger("platform.plugins")

EntryStatus = Literal["registered", "enabled", "disabled", "error"]

# Path segments under /v1/plugins that a plugin of this name would hide behind, and the kernel's own name.
RESERVED_NAMES = frozenset({"ai", "install", "kernel", "reload-webhook", "schema"})


@dataclass(frozen=True)
class PluginEntry:
    """One plugin, whatever it is made of.

    `reason` says why it is not in service, `problem` what is wrong with one that is. `source` is how it came
    here: ``vendored`` (part of the platform), ``package``, or the name of a `PluginSource`. `webhooks` are
    the inbound paths that it answers, without the leading ``/webhook``.
    """

    name: str
    status: EntryStatus
    source: str
    version: str = ""
    description: str = ""
    author: str = ""
    reason: str | None = None
    problem: str | None = None
    requires: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    data_sources: tuple[str, ...] = ()
    databases: tuple[str, ...] = ()
    webhooks: tuple[str, ...] = ()
    essential: bool = False
    registered_at: datetime = field(default_factory=utc_now)


class PluginSource(Protocol):
    """Plugins that are documents rather than code; they come and go while the platform runs.

    `name` is the `source` of its entries. All methods may be called at the same time.
    """

    name: str

    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of a document."""
        ...

    async def plugins(self) -> Sequence[PluginEntry]:
        """Every plugin of this source, refused documents included, as `enabled` or `error`."""
        ...

    async def actions(self, plugin: str) -> Sequence[Action]:
        """The actions of one plugin; none for a stranger's name."""
        ...

    async def install(self, document: bytes, media_type: str, *, update: bool) -> PluginEntry:
        """Keep a document, durable before it returns, and put it into service.

        With `update` it takes the place of the installed document of the same name. Raises BadRequest (it
        can't be read), Unprocessable (it is not valid), Conflict (the name or something it claims is taken),
        NotFound (nothing to update).
        """
        ...

    async def remove(self, unit: Unit, plugin: str) -> bool:
        """Forget a plugin and all that it stored, in this unit; False when there is no trace of it."""
        ...

    async def refresh(self) -> None:
        """Look for changes now."""
        ...


class Directory:
    """Asks the plugin host and every source. One for each platform, as ``platform.directory``."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    async def entries(self) -> list[PluginEntry]:
        """Every plugin, by name."""
        found = [*map(self._of_code, self._platform.plugins), *await self.offered()]
        return sorted(found, key=lambda entry: entry.name)

    async def offered(self) -> list[PluginEntry]:
        """The plugins of the sources alone."""
        found: list[PluginEntry] = []
        for owner, source in self._platform.sources:
            try:
                entries = await source.plugins()
            except FAULTS:  # boundary: a source is a stranger's code, the others' plugins must still show
                log.exception("the plugin source '%s' of %s failed", source.name, owner)
                continue
            found += [self._judged(owner, entry) for entry in entries]
        return found

    async def entry(self, name: str) -> PluginEntry | None:
        """One plugin; None for an unknown name."""
        record = self._platform.host.records.get(name)
        if record is not None:
            return self._of_code(record)
        return next((entry for entry in await self.offered() if entry.name == name), None)

    async def actions(self) -> list[tuple[str, Action]]:
        """(plugin, action) of every plugin in service, in the order of their names."""
        found = [(n, action) for (n, _), action in self._platform.actions.items() if self._platform.is_on(n)]
        for entry in await self.offered():
            found += [(entry.name, action) for action in await self._offered_actions(entry.name)]
        return sorted(found, key=lambda pair: (pair[0], pair[1].name))

    async def action(self, plugin: str, name: str) -> Action | None:
        """An action of a plugin in service; None where there is none."""
        declared = self._platform.actions.get((plugin, name))
        if declared is not None:
            return declared if self._platform.is_on(plugin) else None
        return next((item for item in await self._offered_actions(plugin) if item.name == name), None)

    def taken_names(self) -> frozenset[str]:
        """Names that a source must not use: those of code, in service or not, and reserved ones."""
        return RESERVED_NAMES | self._platform.host.records.keys()

    async def _offered_actions(self, plugin: str) -> list[Action]:
        if not self._platform.is_on(plugin):
            return []
        on = (source for owner, source in self._platform.sources if self._platform.is_on(owner))
        return [action for source in on for action in await source.actions(plugin)]

    def _judged(self, owner: str, entry: PluginEntry) -> PluginEntry:
        """The entry as it is once the switches are looked at."""
        if entry.status == "error" or self._platform.is_on(entry.name):
            if self._platform.is_on(owner):
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
            problem=record.problems[-1] if record.problems else None,
            requires=record.requires,
            capabilities=record.capabilities,
            data_sources=record.data_sources,
            databases=record.databases,
            essential=bool(getattr(record.instance, "essential", False)),
            registered_at=record.registered_at,
        )

    def _status(self, record: PluginRecord) -> EntryStatus:
        if record.status != "loaded":
            return "disabled" if record.status == "disabled" else "error"
        return "enabled" if self._platform.is_on(record.name) else "disabled"
