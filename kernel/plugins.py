"""Plugins: found by entry points, ordered, loaded each inside its own boundary, refused with a reason."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, TypeVar

import pluggy

from kernel import hookspecs
from kernel.version import API_VERSION

log = logging.getLogger("platform.plugins")

GROUP = "platform.plugins"
SLOW = 2.0
_REPORT = Path("run") / "plugins.json"

Status = Literal["loaded", "refused", "failed", "disabled"]
T = TypeVar("T")


class Plugin:
    """Base of a plugin: subclass it, name it, implement hooks marked with `hookimpl`.

    `requires` names plugins that must be loaded first, or this one is refused; `after` only orders.
    `essential` plugins stop the start when they fail.
    """

    name: str = ""
    version: str = "0"
    api_version: str = API_VERSION
    description: str = ""
    author: str = ""
    requires: Sequence[str] = ()
    after: Sequence[str] = ()
    essential: bool = False


@dataclass
class PluginRecord:
    """What became of one plugin, and why."""

    name: str
    status: Status
    reason: str | None = None
    version: str = ""
    description: str = ""
    author: str = ""
    distribution: str | None = None
    requires: tuple[str, ...] = ()
    instance: Any = None
    problems: list[str] = field(default_factory=list)

    def refuse(self, status: Status, reason: str) -> None:
        """Take the plugin out of service."""
        self.status, self.reason, self.instance = status, reason, None


@dataclass(frozen=True)
class Candidate:
    """A plugin that might be loaded: its name and how to make it."""

    name: str
    load: Callable[[], Any]
    distribution: str | None = None


def installed() -> list[Candidate]:
    """The plugins of every installed package, by entry point; the first of two with one name counts."""
    found: dict[str, Candidate] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
        found.setdefault(point.name, _candidate(point))
    return list(found.values())


def _candidate(point: EntryPoint) -> Candidate:
    def load() -> Any:
        made = point.load()
        return made() if isinstance(made, type) else made

    return Candidate(point.name, load, point.dist.name if point.dist else None)


def given(plugins: Iterable[type | Any]) -> list[Candidate]:
    """Plugins handed over directly, as tests do."""
    return [_given(plugin) for plugin in plugins]


def _given(plugin: type | Any) -> Candidate:
    return Candidate(plugin.name, plugin if isinstance(plugin, type) else lambda: plugin)


class PluginHost:
    """Loads candidates into one plugin manager, and keeps the record of each."""

    def __init__(self, timeout: float, disabled: Iterable[str] = ()) -> None:
        self.manager = pluggy.PluginManager(hookspecs.PROJECT)
        self.manager.add_hookspecs(hookspecs)
        self.records: dict[str, PluginRecord] = {}
        self._timeout = timeout
        self._disabled = frozenset(disabled)

    def load(self, candidates: Sequence[Candidate]) -> None:
        """Load, order and register them; what fails is recorded, with its dependants, and skipped."""
        for candidate in candidates:
            self.records[candidate.name] = self._load_one(candidate)
        for name in self._order():
            self._register(self.records[name])
        self._refuse_pending()

    def loaded(self) -> list[PluginRecord]:
        """Records of the plugins in service, in loading order."""
        return [record for record in self.records.values() if record.status == "loaded"]

    def fail(self, name: str, reason: str) -> list[str]:
        """Take a plugin and its dependants out of service; answers the names."""
        record = self.records.get(name)
        if record is None or record.status != "loaded":
            return []
        self._take_out(record, "failed", reason)
        dependants = [r.name for r in self.loaded() if name in r.requires]
        gone = [name]
        for dependant in dependants:
            record = self.records[dependant]
            self._take_out(record, "refused", f"it requires '{name}', which failed: {reason}")
            gone += [dependant, *self._cascade(dependant)]
        return gone

    def _cascade(self, name: str) -> list[str]:
        gone = []
        for record in self.loaded():
            if name in record.requires:
                self._take_out(record, "refused", f"it requires '{name}', which is not in service")
                gone += [record.name, *self._cascade(record.name)]
        return gone

    def _take_out(self, record: PluginRecord, status: Status, reason: str) -> None:
        if record.instance is not None and self.manager.is_registered(record.instance):
            self.manager.unregister(record.instance)
        record.refuse(status, reason)
        log.error("plugin %s is out of service: %s", record.name, reason)

    def _load_one(self, candidate: Candidate) -> PluginRecord:
        record = PluginRecord(candidate.name, "loaded", distribution=candidate.distribution)
        if candidate.name in self._disabled:
            record.refuse("disabled", "it is listed in PLATFORM_PLUGINS_DISABLED")
            return record
        try:
            started = time.monotonic()
            instance = run_bounded(candidate.load, self._timeout)
            if time.monotonic() - started > SLOW:
                log.warning("plugin %s took %.1f s to load", candidate.name, time.monotonic() - started)
            _describe(record, instance)
        except TimeoutError:
            record.refuse("failed", f"it did not finish loading within {self._timeout:g} s")
        except BaseException as error:  # noqa: BLE001 - boundary: a stranger's import may raise anything
            if isinstance(error, KeyboardInterrupt):
                raise
            record.refuse("failed", f"it can't be imported: {type(error).__name__}: {error}"[:500])
        return record

    def _order(self) -> list[str]:
        """Names in the order of `requires` and `after`; refuses what lacks a requirement."""
        self._refuse_unmet()
        loaded = {record.name: record for record in self.loaded()}
        graph = {
            name: [n for n in (*record.requires, *getattr(record.instance, "after", ())) if n in loaded]
            for name, record in sorted(loaded.items())
        }
        try:
            order = list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            for name in set(error.args[1]):
                self.records[name].refuse("refused", f"its requirements form a circle: {' → '.join(error.args[1])}")
            return self._order()
        self.records = {n: self.records[n] for n in [*order, *(n for n in self.records if n not in order)]}
        return order

    def _refuse_unmet(self) -> None:
        while True:
            loaded = {record.name for record in self.loaded()}
            unmet = [(r, n) for r in self.loaded() for n in r.requires if n not in loaded]
            if not unmet:
                return
            for record, name in unmet:
                record.refuse("refused", f"it requires the plugin '{name}', which {self._why(name)}")

    def _why(self, name: str) -> str:
        record = self.records.get(name)
        return "is not installed" if record is None else f"is {record.status}: {record.reason}"

    def _register(self, record: PluginRecord) -> None:
        try:
            self.manager.register(record.instance, record.name)
            for specs in self._own_specs(record):
                self.manager.add_hookspecs(specs)
        except (pluggy.PluginValidationError, ValueError) as error:
            self._take_out(record, "refused", f"its hooks do not fit: {_first_line(error)}")
        except Exception as error:  # noqa: BLE001 - boundary: a stranger's hook
            self._take_out(record, "failed", f"register_hookspecs raised {type(error).__name__}: {error}"[:500])

    def _own_specs(self, record: PluginRecord) -> Sequence[object]:
        bring = getattr(record.instance, "register_hookspecs", None)
        return [] if bring is None else run_bounded(bring, self._timeout)

    def _refuse_pending(self) -> None:
        """Refuse whoever implements a hook that nobody specifies: most often a misspelt name."""
        known = {name for name in vars(self.manager.hook) if self.manager.hook.__dict__[name].spec}
        for record in self.loaded():
            for caller in self.manager.get_hookcallers(record.instance) or []:
                if caller.spec is None and not self._optional(record, caller.name):
                    close = _closest(caller.name, known)
                    self._take_out(record, "refused", f"there is no hook '{caller.name}'{close}")
                    break

    def _optional(self, record: PluginRecord, hook: str) -> bool:
        caller = getattr(self.manager.hook, hook)
        return any(i.optionalhook for i in caller.get_hookimpls() if i.plugin is record.instance)


def write_report(home: Path, records: Sequence[PluginRecord]) -> None:
    """Keep what became of each plugin at this start, for `platformctl plugins why` in another process."""
    plugins = [{"name": r.name, "version": r.version, "status": r.status, "reason": r.reason} for r in records]
    report = {"started_at": datetime.now(UTC).isoformat(timespec="seconds"), "plugins": plugins}
    target = home / _REPORT
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_text(json.dumps(report, ensure_ascii=False), encoding="utf-8")
    temporary.replace(target)


def read_report(home: Path) -> dict[str, Any] | None:
    """What the last start of a server wrote; None where none has started yet."""
    try:
        report = json.loads((home / _REPORT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return report if isinstance(report, dict) else None


def _describe(record: PluginRecord, instance: Any) -> None:
    name = getattr(instance, "name", "")
    if name != record.name:
        record.refuse("refused", f"its entry point is called '{record.name}', but the plugin says '{name}'")
        return
    wanted = str(getattr(instance, "api_version", API_VERSION))
    if wanted.partition(".")[0] != API_VERSION.partition(".")[0]:
        record.refuse("refused", f"it is written for plugin API {wanted}; this platform offers {API_VERSION}")
        return
    record.instance = instance
    record.version = str(getattr(instance, "version", ""))
    record.description = str(getattr(instance, "description", ""))
    record.author = str(getattr(instance, "author", ""))
    record.requires = tuple(getattr(instance, "requires", ()))


def run_bounded(function: Callable[[], T], seconds: float) -> T:
    """Call `function` in a thread of its own and wait at most `seconds`; TimeoutError after that.

    A thread can't be killed: one that hangs stays behind, as a daemon, and holds up nothing else.
    """
    outcome: list[tuple[bool, Any]] = []

    def call() -> None:
        try:
            outcome.append((True, function()))
        except BaseException as error:  # noqa: BLE001 - carried over to the caller
            outcome.append((False, error))

    thread = threading.Thread(target=call, name="plugin-start", daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise TimeoutError
    worked, value = outcome[0]
    if not worked:
        raise value
    return value  # type: ignore[no-any-return]


def _closest(name: str, known: set[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
