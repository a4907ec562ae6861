"""Installing plugins, in steps that refuse before anything is changed.

1. Look up the name in the catalog: its package, and what the dependency graph says.
2. Resolve with everything that is installed as constraints: what would change a package is refused.
3. Fetch the wheels, unpack them into a temporary folder, and start the plugin from there: what brings no
   plugin, or does not start, is refused. Show what it declares.
4. Install exactly those wheels, and start again; if that fails, put back what was there.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from packaging.utils import canonicalize_name

from cli import console
from cli.auditing import note_packages
from cli.catalog import CatalogEntry, look_up
from cli.failures import CommandFailed, Missing, Refused
from cli.package_needs import installed
from cli.pip import Pip, ResolvedPackage, is_path
from cli.trial import TrialDeclarations, facts, try_start
from kernel.plugins.loading import GROUP

if TYPE_CHECKING:
    from cli.console import Busy


@dataclass(frozen=True)
class How:
    """The operator's options. `force` installs what the graph or a trial start refuses."""

    dry_run: bool = False
    yes: bool = False
    force: bool = False
    address: str | None = None


def install_plugin(spec: str, pip: Pip, how: How) -> None:
    """Install `spec`: a name in the catalog, a requirement, a wheel or a folder.

    Raises Refused before anything is changed.
    """
    pip.require()
    with tempfile.TemporaryDirectory(prefix="platform-install-") as folder, console.busy("Starting") as busy:
        listed = _find(spec, how, busy)
        if listed is not None:
            _check_graph(listed, how)
        requirement = spec if listed is None else listed.requirement
        busy.step(f"Resolving {requirement} with what is installed")
        packages = pip.resolve(requirement, Path(folder))
        if not packages:
            console.note("It is already installed. Use --upgrade for a newer version.")
            return
        plan = _prepare(requirement, pip, packages, Path(folder), busy)
        with busy.paused():
            _show(listed, plan)
            _check_trial(plan, how)
            _check_database(plan, how)
            if how.dry_run:
                for item in packages:
                    console.done(f"would install {item.name} {item.version}")
                return
            if not how.yes and sys.stdin.isatty():
                typer.confirm("Install it?", abort=True)
        busy.step(f"Installing {', '.join(item.name for item in packages)}")
        with _put_back_on_failure(packages, Path(folder) / "before", pip) as keep:
            pip.install(packages, plan.wheels)
            keep(_restarted(plan, how, busy))
    for item in packages:
        console.done(f"installed {item.name} {item.version}")
    for plugin in plan.declared:
        if plugin.starts:
            console.done(f"plugin '{plugin.name}' starts")
    note_packages("plugin.installed", {plugin.name: {"version": plugin.version} for plugin in plan.declared})
    console.note("Restart the platform to use the plugin.")


def _find(spec: str, how: How, busy: Busy) -> CatalogEntry | None:
    if how.address is None and is_path(spec):
        if not Path(spec).exists():
            raise Missing(
                f"there is no file or folder '{spec}'; nothing was changed", "Check the name or path."
            )
        return None
    busy.step(f"Looking for {spec} in the catalog")
    return look_up(spec, how.address)


def _check_graph(listed: CatalogEntry, how: How) -> None:
    """Raise Refused if the dependency graph says that it can't work here."""
    here = {_key(point.name) for point in metadata.entry_points(group=GROUP)}
    missing = [name for name in listed.requires if _key(name) not in here]
    clashes = [reason or name for name, reason in listed.conflicts if _key(name) in here]
    problems = [
        *listed.failures,
        *(f"it requires {name}, which is not installed" for name in missing),
        *clashes,
    ]
    if problems and not how.force:
        first = f"Install {missing[0]} first. " if missing else ""
        raise Refused(
            f"'{listed.name}' doesn't fit the installed plugins; nothing was changed: {'; '.join(problems)}",
            f"{first}To install it anyway, use --force.",
        )


def _key(name: str) -> str:
    return canonicalize_name(name.replace(" ", "-"))


@dataclass(frozen=True)
class _Plan:
    """What would be installed, from which wheels, and what a trial start showed about its plugins."""

    packages: Sequence[ResolvedPackage]
    wheels: Path
    declared: Sequence[TrialDeclarations]


def _prepare(
    requirement: str, pip: Pip, packages: Sequence[ResolvedPackage], folder: Path, busy: Busy
) -> _Plan:
    wheels, staged = folder / "wheels", folder / "staged"
    busy.step("Fetching " + ", ".join(f"{item.name} {item.version}" for item in packages))
    pip.fetch(packages, wheels)
    pip.stage(packages, wheels, staged)
    names = _plugins_in(staged, {canonicalize_name(item.name) for item in packages if item.requested})
    if not names:
        raise Refused(
            f"'{requirement}' contains no plugin: it has no entry point in the group '{GROUP}'",
            "Use pip to install libraries. If this is meant to be a plugin, its author must "
            "add the entry point.",
        )
    _check_names(names, {canonicalize_name(item.name) for item in packages})
    busy.step(f"Starting {', '.join(names)} in its own home")
    return _Plan(packages, wheels, try_start(names, staged))


def _check_names(names: Collection[str], packages: Collection[str]) -> None:
    """Raise Refused for the name of another package's plugin: one of the two would be ignored."""
    for point in metadata.entry_points(group=GROUP):
        if point.name in names and point.dist and canonicalize_name(point.dist.name) not in packages:
            raise Refused(
                f"'{point.dist.name}' already has a plugin named '{point.name}'; nothing was changed",
                "Uninstall that package first, or ask the author to rename the new plugin.",
            )


def _plugins_in(staged: Path, packages: set[str]) -> list[str]:
    """The names of the plugins that these packages declare."""
    return sorted(
        point.name
        for dist in metadata.distributions(path=[str(staged)])
        if canonicalize_name(dist.name) in packages
        for point in dist.entry_points
        if point.group == GROUP
    )


def _show(listed: CatalogEntry | None, plan: _Plan) -> None:
    """Show everything that is known before anything is changed."""
    for plugin in plan.declared:
        tier = plugin.tier if listed is None else f"{plugin.tier} (the catalog says {listed.tier})"
        console.out().print(f"{plugin.name} {plugin.version}".strip(), markup=False, highlight=False)
        details = {
            "catalog": _catalog_summary(listed),
            **(facts(plugin) if plugin.starts else {}),
            "tier": tier,
        }
        console.print_facts([*details.items(), ("pip installs", _packages(plan.packages))])


def _catalog_summary(listed: CatalogEntry | None) -> str:
    if listed is None:
        return ""
    requires = f"; requires {', '.join(listed.requires)}" if listed.requires else ""
    conflicts = "; ".join(reason or name for name, reason in listed.conflicts)
    return f"{listed.where}: {listed.requirement}; dependencies: {listed.verdict}{requires}" + (
        f"; {conflicts}" if conflicts else ""
    )


def _packages(packages: Sequence[ResolvedPackage]) -> str:
    before = {package.name: package.version for _, package in installed()}
    texts = []
    for item in packages:
        old = before.get(canonicalize_name(item.name))
        texts.append(f"{item.name} {item.version} ({'new' if old is None else f'in place of {old}'})")
    return ", ".join(texts) + "; no other package changes"


def _check_trial(plan: _Plan, how: How) -> None:
    for plugin in plan.declared:
        if not plugin.starts and not how.force:
            raise Refused(
                f"plugin '{plugin.name}' does not start; nothing was changed: {plugin.reason}",
                "Ask its author for a release that does. To install it anyway, use --force.",
            )


def _check_database(plan: _Plan, how: How) -> None:
    """Raise Refused for a release that lacks migrations the database already has: it would not start."""
    with_tables = {plugin.name: plugin for plugin in plan.declared if plugin.revisions}
    for name, revision in _applied(with_tables).items():
        plugin = with_tables[name]
        if revision not in plugin.revisions and not how.force:
            raise Refused(
                f"the database has the migration {revision} of {name}, which version {plugin.version} lacks;"
                " nothing was changed",
                "Install the release that made it, or a later one. To install this one anyway, use --force.",
            )


def _applied(names: Collection[str]) -> dict[str, str]:
    """The revisions that the platform's database has of these owners; empty, with a warning, if it's down."""
    from sqlalchemy.exc import SQLAlchemyError

    from cli import running
    from cli.plugin_facts import applied_revisions
    from kernel.db.startup import reason_of

    try:
        return running.run(applied_revisions(names)) if names else {}
    except (SQLAlchemyError, OSError) as error:
        console.warn(f"The database can't be read, so it may be newer than this release: {reason_of(error)}.")
        return {}


def _restarted(plan: _Plan, how: How, busy: Busy) -> str | None:
    """Why the plugins do not start as installed; None if they do."""
    if how.force:
        return None
    names = [one.name for one in plan.declared]
    busy.step(f"Starting {', '.join(names)} as installed")
    failed = next((one for one in try_start(names) if not one.starts), None)
    return None if failed is None else f"plugin '{failed.name}' does not start: {failed.reason}"


@contextmanager
def _put_back_on_failure(packages: Sequence[ResolvedPackage], folder: Path, pip: Pip) -> Iterator[_Keep]:
    """Restore what was installed before, unless the block keeps the new packages."""
    replaced = _save(packages, folder)
    keep = _Keep()
    try:
        yield keep
        if keep.reason is not None:
            raise CommandFailed(f"{keep.reason}; the previous version was restored", "Ask its author.")
    except BaseException:  # including an operator's Ctrl-C
        for item in packages:
            pip.take_back(canonicalize_name(item.name))
        for copy, path in replaced:
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(copy, path)
        raise


class _Keep:
    """Call it with the reason why the new packages can't stay, or with None."""

    reason: str | None = None

    def __call__(self, reason: str | None) -> None:
        self.reason = reason


def _save(packages: Sequence[ResolvedPackage], folder: Path) -> list[tuple[Path, Path]]:
    """Copy the files of packages that will be replaced; (copy, where it belongs)."""
    names = {canonicalize_name(item.name) for item in packages}
    replaced = [dist for dist, package in installed() if package.name in names]
    paths = [Path(str(dist.locate_file(file))) for dist in replaced for file in dist.files or ()]
    folder.mkdir()
    saved = [(folder / str(number), path) for number, path in enumerate(paths) if path.is_file()]
    for copy, path in saved:
        shutil.copy2(path, copy)
    return saved
