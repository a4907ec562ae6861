"""Installing plugins with pip, in steps that refuse before anything is changed.

1. Resolve against constraints made of everything that is installed: what would change a package is refused.
2. Fetch the plugin's wheel and look for its entry points: what brings no plugin is refused.
3. Install exactly what was resolved, without looking for dependencies again.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Sequence
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from cli import console
from cli.failures import CommandFailed, Missing, Refused
from kernel.plugins import GROUP
from kernel.serve import this_command

if TYPE_CHECKING:
    from cli.plugin_facts import Shown

PLATFORM = "platform-kernel"
_CAUSES = re.compile(r"The conflict is caused by:\n(.*?)\n\n", re.DOTALL)
_CONSTRAINT = re.compile(r"The user requested \(constraint\) (\S+?)==(\S+)")


@dataclass(frozen=True)
class Resolved:
    """A package that pip would install; `source` is what to tell pip to get exactly this one."""

    name: str
    version: str
    source: str
    requested: bool


@dataclass(frozen=True)
class Pip:
    """How pip is called."""

    offline: bool = False
    find_links: str | None = None
    upgrade: bool = False

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run pip in this environment; its output is captured."""
        command = [sys.executable, "-m", "pip", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    @property
    def sources(self) -> list[str]:
        """Where pip may look."""
        links = ["--find-links", str(Path(self.find_links).absolute())] if self.find_links else []
        return [*links, *(["--no-index", "--no-build-isolation"] if self.offline else [])]


def install_plugin(wanted: str, pip: Pip, *, dry_run: bool = False) -> None:
    """Install `wanted`: a requirement, a wheel or a folder. Raises Refused before anything is changed."""
    _require_pip(pip)
    with tempfile.TemporaryDirectory() as folder, console.busy("Starting pip") as busy:
        busy.step(f"Resolving {wanted} with what is installed")
        constraints = _constraints(wanted, Path(folder))
        found = _resolve(pip, wanted, constraints)
        busy.step("Reading which plugins it brings")
        plugins = [name for item in found if item.requested for name in _plugins_in(pip, item, Path(folder))]
        if found and not plugins:
            raise Refused(
                f"'{wanted}' contains no plugin: it has no entry point in the group '{GROUP}'",
                "Use pip to install libraries. If this is meant to be a plugin, its author must "
                "add the entry point.",
            )
        if found and not dry_run:
            busy.step(f"Installing {', '.join(item.name for item in found)}")
            _install(pip, found, constraints)
    _report(found, plugins, dry_run)


def _require_pip(pip: Pip) -> None:
    if pip.run("--version").returncode != 0:
        raise CommandFailed("this environment has no pip", "Try: python -m ensurepip")


def _constraints(wanted: str, folder: Path) -> Path:
    """A file that holds everything that is installed at its version, save the plugin that is replaced."""
    replaced = _replaceable(wanted)
    pins = {
        canonicalize_name(dist.name): dist.version
        for dist in metadata.distributions()
        if dist.name and canonicalize_name(dist.name) != replaced
    }
    file = folder / "constraints.txt"
    file.write_text("".join(f"{name}=={version}\n" for name, version in sorted(pins.items())))
    return file


def _replaceable(wanted: str) -> str | None:
    """The package that `wanted` names when it is a plugin's: only such a one may change its version."""
    name = _package_of(wanted)
    return name if name in {canonicalize_name(d) for d in _plugin_packages()} - {PLATFORM} else None


def _package_of(wanted: str) -> str | None:
    path = Path(wanted)
    try:
        if path.suffix == ".whl":
            return parse_wheel_filename(path.name)[0]
        if path.is_dir():
            project = tomllib.loads((path / "pyproject.toml").read_text(encoding="utf-8"))["project"]
            return canonicalize_name(project["name"])
        return canonicalize_name(Requirement(wanted).name)
    except (InvalidWheelFilename, InvalidRequirement, OSError, ValueError, KeyError):
        return None


def _plugin_packages() -> set[str]:
    return {point.dist.name for point in metadata.entry_points(group=GROUP) if point.dist}


def _resolve(pip: Pip, wanted: str, constraints: Path) -> list[Resolved]:
    target = str(Path(wanted).absolute()) if Path(wanted).exists() else wanted
    report = constraints.with_name("report.json")
    options = ["--upgrade", "--upgrade-strategy", "only-if-needed"] if pip.upgrade else []
    asked = ["--dry-run", "--report", str(report), "--constraint", str(constraints)]
    result = pip.run("install", *asked, *options, *pip.sources, "--", target)
    if result.returncode != 0:
        raise _refusal(wanted, result.stdout + "\n" + result.stderr)
    items = json.loads(report.read_text(encoding="utf-8"))["install"]
    return [_resolved(item) for item in items]


def _resolved(item: dict[str, Any]) -> Resolved:
    name, version = item["metadata"]["name"], item["metadata"]["version"]
    source = item["download_info"]["url"] if item.get("is_direct") else f"{name}=={version}"
    return Resolved(name, version, source, bool(item.get("requested")))


def _refusal(wanted: str, output: str) -> CommandFailed:
    """pip's reasons in an operator's words."""
    conflict = _CAUSES.search(output)
    if conflict:
        lines = [line.strip() for line in conflict.group(1).splitlines() if line.strip()]
        lines = [_CONSTRAINT.sub(r"the platform needs \1 \2", line) for line in lines]
        return Refused(
            f"'{wanted}' conflicts with packages that the platform needs; nothing was changed: "
            f"" + "; ".join(lines),
            "Try another version, or ask the plugin's author for a compatible release.",
        )
    errors = [line[7:] for line in output.splitlines() if line.startswith("ERROR: ")]
    text = "; ".join(errors) or output.strip()[-500:]
    if "No matching distribution" in text or "Invalid requirement" in text:
        reason = errors[-1] if errors else text
        return Missing(f"'{wanted}' was not found; nothing was changed: {reason}", "Check the name or path.")
    return CommandFailed(f"pip could not resolve '{wanted}'; nothing was changed: {text}")


def _plugins_in(pip: Pip, item: Resolved, folder: Path) -> list[str]:
    """The plugins' names that the package's wheel declares."""
    with zipfile.ZipFile(_wheel(pip, item, folder)) as wheel:
        names = [n for n in wheel.namelist() if n.endswith(".dist-info/entry_points.txt")]
        text = wheel.read(names[0]).decode() if names else ""
    parser = ConfigParser(delimiters=("=",))
    try:
        parser.read_string(text)
    except ConfigError as error:
        raise Refused(f"{item.name} {item.version}: its entry points can't be read: {error}") from None
    return list(parser[GROUP]) if parser.has_section(GROUP) else []


def _wheel(pip: Pip, item: Resolved, folder: Path) -> Path:
    """The package's wheel: the one that was given, or one that pip fetches or builds."""
    if item.source.startswith("file:") and item.source.endswith(".whl"):
        return Path(url2pathname(urlsplit(item.source).path))
    result = pip.run("wheel", "--no-deps", "--wheel-dir", str(folder), *pip.sources, "--", item.source)
    found = sorted(folder.glob("*.whl"))
    if result.returncode != 0 or not found:
        raise CommandFailed(f"pip could not fetch {item.name} {item.version}: {_last_error(result)}")
    return found[-1]


def _install(pip: Pip, found: Sequence[Resolved], constraints: Path) -> None:
    before = _installed()
    sources = [item.source for item in found]
    held = ["--no-deps", "--constraint", str(constraints)]
    result = pip.run("install", *held, *pip.sources, "--", *sources)
    if result.returncode != 0:
        for name in sorted(_installed() - before):
            _take_back(pip, name)
        raise CommandFailed(
            f"pip failed; the packages it had added were removed again: {_last_error(result)}"
        )


def _take_back(pip: Pip, name: str) -> None:
    """Remove what pip has installed, or has begun to: it can't uninstall what it did not finish itself."""
    if pip.run("uninstall", "--yes", name).returncode == 0:
        return
    for dist in metadata.distributions():
        if dist.name and canonicalize_name(dist.name) == name:
            site = Path(str(dist.locate_file("")))
            for path in site.glob("*.dist-info"):
                if canonicalize_name(path.name.partition("-")[0]) == name:
                    shutil.rmtree(path)


def _installed() -> set[str]:
    """Names of what is installed, asked anew."""
    return {canonicalize_name(dist.name) for dist in metadata.distributions() if dist.name}


def _last_error(result: subprocess.CompletedProcess[str]) -> str:
    errors = [line[7:] for line in result.stderr.splitlines() if line.startswith("ERROR: ")]
    return errors[-1] if errors else result.stderr.strip()[-300:]


def _report(found: Sequence[Resolved], plugins: Sequence[str], dry_run: bool) -> None:
    if not found:
        console.note("It is already installed. Use --upgrade for a newer version.")
        return
    for item in found:
        console.done(f"{'would install' if dry_run else 'installed'} {item.name} {item.version}")
    if not dry_run:
        for name in plugins:
            with console.busy(f"Loading {name} in a process of its own"):
                reason = _why_not(name)
            _tell(name, reason)
        console.note("Restart the platform to use the plugin.")


def _why_not(name: str) -> str | None:
    """Why a new process can't load the plugin; None when it can."""
    command = [*this_command("plugins", "why", name, "--json")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode == 0:
        return None
    return str(json.loads(answer.stdout)["reason"]) if answer.stdout else answer.stderr.strip()


def _tell(name: str, reason: str | None) -> None:
    if reason is None:
        console.done(f"plugin '{name}' loads")
        return
    raise CommandFailed(
        f"plugin '{name}' is installed but does not load: {reason}",
        f"Fix the plugin, or remove it: platformctl plugins uninstall {name}",
    )


def uninstall_plugin(name: str, plugins: Sequence[Shown], *, force: bool) -> None:
    """Uninstall the package of plugin (or package) `name`. Raises Refused for what the platform needs."""
    packages = {point.name: point.dist.name for point in metadata.entry_points(group=GROUP) if point.dist}
    by_package = {canonicalize_name(package): package for package in packages.values()}
    package = packages.get(name) or by_package.get(canonicalize_name(name))
    if package is None:
        raise Missing(f"no plugin '{name}' is installed", f"Installed: {', '.join(sorted(packages))}.")
    if canonicalize_name(package) == PLATFORM:
        raise Refused(
            f"'{name}' is part of the platform",
            f"Set PLATFORM_PLUGINS_DISABLED={name} to turn it off at the next start.",
        )
    gone = {plugin for plugin, owner in packages.items() if owner == package}
    needed = sorted(p.name for p in plugins if p.name not in gone and gone & set(p.requires))
    if needed and not force:
        raise Refused(
            f"other plugins require it: {', '.join(needed)}", "Uninstall them first, or use --force."
        )
    result = Pip().run("uninstall", "--yes", package)
    if result.returncode != 0:
        raise CommandFailed(f"pip could not uninstall {package}: {_last_error(result)}")
    console.done(f"{package} is uninstalled ({', '.join(sorted(gone))}); its tables and data are kept")
    console.note("Restart the platform to stop using the plugin.")
