"""Plugins: found by entry point, ordered, loaded in isolation, and refused with a reason."""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pluggy

from kernel.errors import ANY_ERROR
from kernel.hooks.checks import hook_mismatch, strange_argument
from kernel.hooks.manager import HookManager, brought
from kernel.libs.background import run_bounded
from kernel.observe.logs import mask
from kernel.plugins.extras import Extras, extras_of
from kernel.plugins.places import Cause, place_of
from kernel.version import API_VERSION, CODE_CONTRACT, DISTRIBUTION, fits_contract

log = logging.getLogger("platform.plugins")

GROUP = "platform.plugins"
ESSENTIAL = "platform.essential"
"""The group in which a package lists its essential plugins again: that is known before they are imported."""
SLOW = 2.0
_REPORT = Path("run") / "plugins.json"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,49}")
_RESERVED = frozenset({"kernel"})
_REASON_LIMIT = 500

Status = Literal["loaded", "refused", "failed", "disabled", "not_installed"]


class Plugin:
    """Base class of plugins: subclass it, give it a name, and implement hooks marked with `hookimpl`.

    `api_version` is the plugin API that it is written for, such as ``1.0``; ``platform.dev/v1`` is any 1.x.
    `requires` lists plugins that must be loaded first, or this one is refused; `after` only sets the order.
    If an `essential` plugin fails, the platform does not start, and nobody can disable it; its package lists
    its entry point in the group ``platform.essential``, too. One that is `off_by_default` is disabled until
    an administrator enables it. `capabilities`, `data_sources` and `databases` are shown to clients
    unchanged (wire-facts 6.1). `outgoing_hosts` names the hosts that the plugin calls (``api.example.org``,
    ``*.example.org``); operators see them before they install it. One that `may_start_slowly`, because
    operators make it prepare something first, is not reported as slow.
    """

    name: str = ""
    version: str = "0"
    api_version: str = API_VERSION
    description: str = ""
    author: str = ""
    requires: Sequence[str] = ()
    after: Sequence[str] = ()
    capabilities: Sequence[str] = ()
    data_sources: Sequence[str] = ()
    databases: Sequence[str] = ()
    outgoing_hosts: Sequence[str] = ()
    essential: bool = False
    off_by_default: bool = False
    may_start_slowly: bool = False


@dataclass
class PluginRecord:
    """The state of one plugin, and its reason. `place` is a line of its code, for the operator only.

    `is_guard` says whether it has start guards; None if it could not be imported, so nobody knows. `problems`
    holds what its start found but tolerated, `failures` what its hooks have raised since.
    """

    name: str
    status: Status
    reason: str | None = None
    place: str | None = None
    version: str = ""
    description: str = ""
    author: str = ""
    distribution: str | None = None
    requires: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    data_sources: tuple[str, ...] = ()
    databases: tuple[str, ...] = ()
    outgoing_hosts: tuple[str, ...] = ()
    api_version: str = ""
    essential: bool = False
    off_by_default: bool = False
    is_guard: bool | None = None
    instance: Any = None
    package: str = ""
    problems: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    registered_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def built_in(self) -> bool:
        """Whether the plugin is part of the platform."""
        return self.distribution == DISTRIBUTION

    def refuse(self, status: Status, reason: str, cause: Cause | None = None) -> None:
        """Take the plugin out of service. The reason is public, so possible secrets are masked."""
        self.place = None if cause is None else place_of(cause, self.package)
        self.status, self.reason, self.instance = status, mask(reason)[:_REASON_LIMIT], None


@dataclass(frozen=True)
class Candidate:
    """A plugin that might be loaded: its name, how to make it, and where it comes from.

    `distribution` is what pip installs, `package` what Python imports. `not_installed()` says how to install
    the packages that the plugin needs and that are not there; None if it has all. Without an `essential` one,
    the platform does not start.
    """

    name: str
    load: Callable[[], Any]
    distribution: str | None = None
    version: str | None = None
    package: str = ""
    not_installed: Callable[[], str | None] = lambda: None
    essential: bool = False


def installed() -> list[Candidate]:
    """The plugins of all installed packages, found by entry point, in the order of their names."""
    all_points = entry_points()
    points = sorted(all_points.select(group=GROUP), key=lambda p: p.name)
    essential = {(point.dist, point.name) for point in all_points.select(group=ESSENTIAL)}
    # Reading a name or version parses the package's whole metadata each time.
    packages = {dist: _package(dist) for dist in {point.dist for point in points}}
    return [
        replace(_candidate(point, *packages[point.dist]), essential=(point.dist, point.name) in essential)
        for point in points
    ]


def _package(dist: Distribution | None) -> tuple[str | None, str | None, Extras | None]:
    """Name, version and extras of what pip installed."""
    if dist is None:
        return None, None, None
    metadata = dist.metadata
    return metadata["Name"], metadata["Version"], Extras(dist)


def _candidate(
    point: EntryPoint, distribution: str | None, version: str | None, extras: Extras | None
) -> Candidate:
    def load() -> Any:
        plugin = point.load()
        return plugin() if isinstance(plugin, type) else plugin

    def not_installed() -> str | None:
        return None if extras is None else extras.remedy(extras_of(point))

    package = point.module.partition(".")[0]
    return Candidate(point.name, load, distribution, version, package, not_installed)


def direct_candidates(plugins: Iterable[type | Any]) -> list[Candidate]:
    """Plugins passed in directly, as in tests."""
    return [_direct_candidate(plugin) for plugin in plugins]


def _direct_candidate(plugin: Any) -> Candidate:
    made_by = plugin if isinstance(plugin, type) else type(plugin)
    load = plugin if isinstance(plugin, type) else lambda: plugin
    name = getattr(plugin, "name", "") or made_by.__name__
    essential = bool(getattr(plugin, "essential", False))
    return Candidate(name, load, package=made_by.__module__.partition(".")[0], essential=essential)


class PluginHost:
    """Loads candidates into a plugin manager that knows the kernel's hooks, and keeps a record of each.

    `keep_out(candidate)` may return a reason not to import a candidate at all. The `earlier_problems` (pairs
    of plugin name and problem) are not logged again.
    """

    def __init__(
        self,
        manager: HookManager,
        timeout: float,
        disabled: Iterable[str] = (),
        keep_out: Callable[[Candidate], str | None] = lambda _candidate: None,
        earlier_problems: Collection[tuple[str, str]] = (),
    ) -> None:
        self.manager = manager
        self.records: dict[str, PluginRecord] = {}
        self._timeout = timeout
        self._disabled = frozenset(disabled)
        self._keep_out = keep_out
        self._earlier_problems = earlier_problems

    def load(self, candidates: Sequence[Candidate]) -> None:
        """Load, order and register them; those that fail, and their dependants, are recorded and skipped."""
        for candidate in sorted(candidates, key=lambda c: c.distribution != DISTRIBUTION):
            namesake = self.records.get(candidate.name)
            if namesake is None:
                self.records[candidate.name] = self._load_one(candidate)
            else:
                self._report_namesake(namesake, candidate)
        order = self._order()
        for record in self.records.values():
            if record.status in ("failed", "refused"):
                self._report(record)
        for name in order:
            if self.records[name].status == "loaded":
                self._register(self.records[name])
        for record in self.loaded():
            self._check_hooks(record)

    def loaded(self) -> list[PluginRecord]:
        """Records of the plugins in service, in loading order."""
        return [record for record in self.records.values() if record.status == "loaded"]

    def fail(
        self, name: str, reason: str, status: Status = "failed", cause: Cause | None = None
    ) -> list[str]:
        """Take a plugin and its dependants out of service; returns the names."""
        record = self.records.get(name)
        if record is None or record.status != "loaded":
            return []
        if record.instance is not None and self.manager.is_registered(record.instance):
            self.manager.unregister(record.instance)
        record.refuse(status, reason, cause)
        self._report(record)
        gone = [name]
        for dependant in self.loaded():
            if name in dependant.requires:
                gone += self.fail(dependant.name, self._unmet(name), self._unmet_status(name))
        return gone

    def _report(self, record: PluginRecord) -> None:
        if (record.name, record.reason) not in self._earlier_problems:
            log.error("plugin %s is out of service: %s", record.name, record.reason)

    def _report_namesake(self, record: PluginRecord, other: Candidate) -> None:
        package = f"the package '{other.distribution}'" if other.distribution else "another package"
        problem = f"{package} offers a plugin of the same name, which is ignored; remove one of the two"
        record.problems.append(problem)
        if (record.name, problem) not in self._earlier_problems:
            log.warning("plugin %s: %s", record.name, problem)

    def _load_one(self, candidate: Candidate) -> PluginRecord:
        record = PluginRecord(
            candidate.name,
            "loaded",
            distribution=candidate.distribution,
            package=candidate.package,
            essential=candidate.essential,
        )
        if candidate.name in self._disabled:
            record.refuse("disabled", "it is listed in PLATFORM_PLUGINS_DISABLED")
        elif not _NAME.fullmatch(candidate.name) or candidate.name in _RESERVED:
            record.refuse(
                "refused", "its name can't be the prefix of tables: use a-z, 0-9 and '_', and not 'kernel'"
            )
        elif remedy := candidate.not_installed():
            record.version = candidate.version or ""
            record.refuse("not_installed", remedy)
        elif reason := self._keep_out(candidate):
            record.refuse("failed", reason)
        else:
            self._import(record, candidate)
        return record

    def _import(self, record: PluginRecord, candidate: Candidate) -> None:
        started = time.monotonic()
        try:
            _describe(record, run_bounded(candidate.load, self._timeout))
        except TimeoutError:
            record.refuse("failed", f"it did not finish loading within {self._timeout:g} s")
        except BaseException as error:  # boundary: an import may raise or exit in any way
            if isinstance(error, KeyboardInterrupt):
                raise
            record.refuse("failed", f"it can't be imported: {type(error).__name__}: {error}", error)
        if time.monotonic() - started > SLOW:
            log.warning("plugin %s took %.1f s to load", record.name, time.monotonic() - started)

    def _order(self) -> list[str]:
        """Names in the order of `requires` and `after`; refuses plugins that lack a requirement."""
        self._refuse_unmet()
        order = self._sorted(with_wishes=True) or self._sorted(with_wishes=False)
        if order is None:
            return self._order()
        self.records = {n: self.records[n] for n in [*order, *(n for n in self.records if n not in order)]}
        return order

    def _sorted(self, *, with_wishes: bool) -> list[str] | None:
        """The loading order; None after a cycle, whose members are refused if all of it is required."""
        loaded = {record.name: record for record in sorted(self.loaded(), key=lambda r: r.name)}
        graph = {
            name: [n for n in (*record.requires, *(record.after if with_wishes else ())) if n in loaded]
            for name, record in loaded.items()
        }
        try:
            return list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            cycle = " → ".join(error.args[1])
            for name in () if with_wishes else set(error.args[1]):
                loaded[name].refuse("refused", f"its requirements form a cycle: {cycle}")
            return None

    def _refuse_unmet(self) -> None:
        while True:
            loaded = {record.name for record in self.loaded()}
            unmet = [(r, n) for r in self.loaded() for n in r.requires if n not in loaded]
            if not unmet:
                return
            for record, name in unmet:
                record.refuse(self._unmet_status(name), self._unmet(name))

    def _unmet_status(self, name: str) -> Status:
        """What becomes of a plugin that requires this one: without its packages, nothing is wrong."""
        record = self.records.get(name)
        return "refused" if record is None or record.status != "not_installed" else "not_installed"

    def _unmet(self, name: str) -> str:
        record = self.records.get(name)
        if record is None:
            why = "is not installed"
        else:
            why = f"is {record.status.replace('_', ' ')}: {record.reason}"
        return f"it requires the plugin '{name}', which {why}"

    def _register(self, record: PluginRecord) -> None:
        flaw = strange_argument(self.manager, record.instance)
        if flaw is not None:
            self.fail(record.name, flaw.reason, "refused", flaw.function)
            return
        try:
            self.manager.register(record.instance, record.name)
            for specs in self._own_specs(record):
                self.manager.add_specs(specs)
        except (pluggy.PluginValidationError, ValueError) as error:
            self.fail(record.name, f"its hooks are invalid: {' '.join(str(error).split())}", "refused")
        except TimeoutError:
            self.fail(record.name, f"register_hookspecs did not return within {self._timeout:g} s")
        except ANY_ERROR as error:  # boundary: third-party code
            self.fail(record.name, f"register_hookspecs raised {type(error).__name__}: {error}", cause=error)

    def _own_specs(self, record: PluginRecord) -> Sequence[Any]:
        bring = getattr(record.instance, "register_hookspecs", None)
        return [] if bring is None else run_bounded(lambda: brought(bring()), self._timeout)

    def _check_hooks(self, record: PluginRecord) -> None:
        flaw = hook_mismatch(self.manager, record.instance) if record.status == "loaded" else None
        if flaw is not None:
            self.fail(record.name, flaw.reason, "refused", flaw.function)


def write_report(home: Path, records: Sequence[PluginRecord]) -> None:
    """Store what happened to each plugin at this start, for child processes and `plugins why`."""
    fields = ("name", "version", "status", "reason", "place", "problems")
    plugins = [{name: getattr(record, name) for name in fields} for record in records]
    report = {"started_at": datetime.now(UTC).isoformat(timespec="seconds"), "plugins": plugins}
    target = home / _REPORT
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary.write_text(json.dumps(report, ensure_ascii=False), encoding="utf-8")
        temporary.replace(target)
    except OSError as error:  # such as a full disk, on which the platform still has to start
        log.warning("the report on plugins of this start can't be stored: %s", error.strerror)
        temporary.unlink(missing_ok=True)


def read_report(home: Path) -> dict[str, Any] | None:
    """The report of the last server start; None if there was none."""
    try:
        report = json.loads((home / _REPORT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return report if isinstance(report, dict) else None


def problems_at_last_start(home: Path) -> frozenset[tuple[str, str]]:
    """The (plugin, problem) pairs that the last server start has logged."""
    report = read_report(home)
    entries = report["plugins"] if report else []
    return frozenset(
        (entry["name"], text) for entry in entries for text in (entry["reason"], *entry.get("problems", ()))
    )


def _describe(record: PluginRecord, instance: Any) -> None:
    record.is_guard = hasattr(instance, "register_start_guards")
    if (problem := _misnamed(record.name, instance)) is not None:
        record.refuse("refused", problem)
        return
    contract = str(getattr(instance, "api_version", API_VERSION))
    if not fits_contract(contract):
        offered = f"{API_VERSION} ({CODE_CONTRACT})"
        record.refuse("refused", f"it is written for plugin API {contract}; this platform offers {offered}")
        return
    record.instance = instance
    for name in ("version", "description", "author"):
        setattr(record, name, str(getattr(instance, name, "")))
    for name in ("requires", "after", "databases", "data_sources", "capabilities", "outgoing_hosts"):
        setattr(record, name, _names(instance, name))
    record.essential = record.essential or bool(getattr(instance, "essential", False))
    record.off_by_default = bool(getattr(instance, "off_by_default", False))
    record.api_version = contract


def _misnamed(name: str, instance: Any) -> str | None:
    """What is wrong with an entry point's object, and how its author can fix it."""
    if isinstance(instance, ModuleType):
        meant = f"{instance.__name__}:{name.title().replace('_', '')}Plugin"
        return f"its entry point gives a module; name the class in it: {meant}"
    own = getattr(instance, "name", "")
    if not own:
        return f"it has no name: write name = '{name}' in the class {type(instance).__name__}"
    if own != name:
        return f"its entry point is called '{name}', but the plugin says '{own}'; make them the same"
    return None


def _names(instance: Any, attribute: str) -> tuple[str, ...]:
    """A list of names; a single string is one name, not a sequence of letters."""
    value = getattr(instance, attribute, None) or ()
    return (value,) if isinstance(value, str) else tuple(str(name) for name in value)
