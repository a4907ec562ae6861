"""The kinds of sources that plugins have registered, and those that were refused."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from builtin_plugins.sources import api
from builtin_plugins.sources.errors import KindUnavailable
from builtin_plugins.sources.protocol import SourceKind
from kernel.sdk import PLUGIN_STATES, Platform, ResourceKey, Unprocessable

log = logging.getLogger("platform.sources")


class SourceKinds:
    """The kinds of this server. Those of a plugin are hidden while `in_service` says that it isn't.

    `refused` says why a kind is not offered, by its name.
    """

    def __init__(
        self, declared: Sequence[tuple[str, Sequence[SourceKind]]], in_service: Callable[[str], bool]
    ) -> None:
        self._in_service = in_service
        self._kinds: dict[str, tuple[str, SourceKind]] = {}
        self.refused: dict[str, str] = {}
        for plugin, kinds in declared:
            for kind in kinds:
                self._take(plugin, kind)

    def _take(self, plugin: str, kind: SourceKind) -> None:
        if kind.name not in self._kinds:
            self._kinds[kind.name] = (plugin, kind)
            return
        reason = f"the plugin '{self._kinds[kind.name][0]}' has a kind of this name"
        self.refused[f"{plugin}:{kind.name}"] = reason
        log.error("the kind of source '%s' of '%s' is refused: %s", kind.name, plugin, reason)

    @property
    def all(self) -> Mapping[str, SourceKind]:
        """Those in service, by name."""
        return {name: kind for name, (plugin, kind) in self._kinds.items() if self._in_service(plugin)}

    def named(self, name: str) -> SourceKind:
        """The kind of a new source. Raises Unprocessable with the list of names."""
        kind = self.all.get(name)
        if kind is None:
            message = f"must be one of {', '.join(self.all) or '(no kind of source is installed)'}"
            raise Unprocessable.field(("body", "kind"), message, name)
        return kind

    def of(self, name: str) -> SourceKind:
        """The kind of a source that there is. Raises KindUnavailable."""
        kind = self.all.get(name)
        if kind is None:
            raise KindUnavailable(f"The plugin for sources of the kind '{name}' is not running")
        return kind


SOURCE_KINDS: ResourceKey[SourceKinds] = ResourceKey("kinds of sources")


@asynccontextmanager
async def open_kinds(platform: Platform) -> AsyncIterator[SourceKinds]:
    """The resource `SOURCE_KINDS`."""
    states = platform.resource(PLUGIN_STATES)

    def in_service(plugin: str) -> bool:
        return states.is_loaded(plugin) and states.is_on(plugin)

    declared = platform.hooks.ask_now(api.register_sources)
    # Third parties come last, so that none takes a built-in kind's name.
    yield SourceKinds(sorted(declared, key=lambda entry: not states.records[entry[0]].built_in), in_service)
