"""Which plugins are active: loaded, not failed since, not disabled."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from kernel.errors import StartupError
from kernel.hooks.checks import Misanswered
from kernel.observe.logs import mask
from kernel.plugins.loading import PluginHost, PluginRecord
from kernel.plugins.places import Cause
from kernel.plugins.resource_keys import ResourceKey

log = logging.getLogger("platform.plugins")

_FAILURES_KEPT = 20
_LATELY = 300.0

OnChange = Callable[[frozenset[str]], None]


class PluginStates:
    """Fails, enables and disables plugins, and notifies those that keep anything of theirs.

    `revision` counts changes of what is declared and in service.
    """

    def __init__(self, host: PluginHost) -> None:
        self._host = host
        self._listeners: list[OnChange] = []
        self._hook_failures: dict[str, tuple[float, str]] = {}
        self.switched_off: frozenset[str] = frozenset()
        self.revision = 0

    @property
    def records(self) -> dict[str, PluginRecord]:
        """The record of every plugin by name, in loading order."""
        return self._host.records

    def loaded(self) -> list[PluginRecord]:
        """The plugins that loaded and have not failed, in loading order."""
        return self._host.loaded()

    def is_loaded(self, name: str) -> bool:
        """Whether the plugin loaded and has not failed."""
        record = self.records.get(name)
        return record is not None and record.status == "loaded"

    def is_on(self, name: str) -> bool:
        """Whether the plugin is enabled."""
        return name not in self.switched_off

    def listen(self, listener: OnChange) -> None:
        """Call `listener(failed)` after each change, with the names of the plugins that just failed."""
        self._listeners.append(listener)

    def switch_off(self, plugins: Iterable[str]) -> None:
        """Disable exactly these plugins in this process; enable all others.

        They stay loaded and their resources open, so that enabling them is quick; but their routes answer
        403, and hooks, actions and health checks leave them out. Jobs already accepted are still run.
        """
        self.switched_off = frozenset(plugins)
        self._changed(frozenset())

    def fail(self, name: str, reason: str, cause: Cause | None = None) -> None:
        """Take a plugin and its dependants out of service. Raises StartupError if one is essential.

        The `cause`, if given, shows which line of the plugin to look at.
        """
        failed = frozenset(self._host.fail(name, reason, cause=cause))
        self.insist_on_essential()
        self._changed(failed)

    def note(self, name: str, problem: str) -> None:
        """Show a problem that its start found; the plugin stays in service."""
        record = self.records[name]
        if problem not in record.problems:
            log.warning("plugin %s: %s", name, problem)
            record.problems.append(problem)

    def insist_on_essential(self) -> None:
        """Raise StartupError if an essential plugin is not in service."""
        for record in self.records.values():
            if record.essential and record.status == "disabled":
                text = f"the platform can't do without the plugin '{record.name}', but {record.reason}"
                raise StartupError(f"{text}; remove it from that list")
            if record.essential and record.status != "loaded":
                status = record.status.replace("_", " ")
                raise StartupError(f"the essential plugin '{record.name}' is {status}: {record.reason}")

    def declaration_failed(self, plugin: str, hook: str, error: BaseException) -> None:
        """A declaration failed, and is not asked for again: take the plugin out of service."""
        reason = _reason(hook, error)
        log.error("plugin %s: %s", plugin, reason, exc_info=error)
        self.fail(plugin, reason, error)

    def hook_failed(self, plugin: str, hook: str, error: BaseException) -> None:
        """Another hook failed: only report it, as the next call may succeed."""
        reason = _reason(hook, error)
        log.error("plugin %s: %s", plugin, reason, exc_info=error)
        if plugin not in self.records:
            return
        # The error's text may contain users' data; Misanswered names only types.
        brief = reason if isinstance(error, Misanswered) else f"{hook} raised {type(error).__name__}"
        self._hook_failures[plugin] = (time.monotonic(), f"{brief}; the server's log says why")
        self.records[plugin].failures.append(reason)
        del self.records[plugin].failures[:-_FAILURES_KEPT]

    def problem_of(self, record: PluginRecord) -> str | None:
        """What is wrong with a plugin in service, as a public text: a hook that failed lately, otherwise what
        its start found.
        """
        return self.failing().get(record.name) or (record.problems[-1] if record.problems else None)

    def failing(self) -> dict[str, str]:
        """Loaded plugins with hooks that failed lately, each with the last failure as a public text."""
        since = time.monotonic() - _LATELY
        failures = self._hook_failures.copy()  # a unit in another thread may be adding one
        recent = ((name, text) for name, (when, text) in failures.items() if when >= since)
        return {name: text for name, text in recent if self.is_loaded(name) and self.is_on(name)}

    def _changed(self, failed: frozenset[str]) -> None:
        self.revision += 1
        for listener in self._listeners:
            listener(failed)


def _reason(hook: str, error: BaseException) -> str:
    if isinstance(error, Misanswered):
        return f"{hook} {error}"
    return mask(f"{hook} raised {type(error).__name__}: {error}")[:500]


PLUGIN_STATES: ResourceKey[PluginStates] = ResourceKey("plugin_states")
