"""pip, as plugins are installed with it: constrained to the versions of everything installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from cli.failures import CommandFailed, Missing, Refused
from cli.package_needs import PLATFORM, installed, plugin_packages, read_needs, reason_for

_CAUSES = re.compile(r"The conflict is caused by:\n(.*?)\n\n", re.DOTALL)
_CONSTRAINT = re.compile(r"The user requested \(constraint\) (\S+?)==(\S+)")


def is_path(spec: str) -> bool:
    """Whether pip would take it as a file or folder: a plain word is a name, whatever files exist."""
    return spec.endswith(".whl") or "/" in spec or "\\" in spec or spec in (".", "..")


@dataclass(frozen=True)
class ResolvedPackage:
    """A package that pip would install; `source` makes pip get exactly this one."""

    name: str
    version: str
    source: str
    requested: bool


@dataclass(frozen=True)
class Pip:
    """Runs pip."""

    offline: bool = False
    find_links: str | None = None
    upgrade: bool = False

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run pip in this environment and capture its output."""
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    @property
    def sources(self) -> list[str]:
        """Options that say where pip may look."""
        links = ["--find-links", str(Path(self.find_links).absolute())] if self.find_links else []
        return [*links, *(["--no-index", "--no-build-isolation"] if self.offline else [])]

    def require(self) -> None:
        """Raise CommandFailed if this environment has no pip."""
        if find_spec("pip") is None:
            raise CommandFailed("this environment has no pip", "Try: python -m ensurepip")

    def resolve(self, spec: str, folder: Path) -> list[ResolvedPackage]:
        """The packages that pip would install. Raises Refused if that would change an installed one."""
        if is_path(spec) and _package_of(spec) == PLATFORM:
            raise Refused("that is the platform, not a plugin; nothing was changed", "Use its upgrade guide.")
        target = str(Path(spec).absolute()) if is_path(spec) else spec
        report = folder / "report.json"
        options = ["--upgrade", "--upgrade-strategy", "only-if-needed"] if self.upgrade else []
        reporting = ["--dry-run", "--report", str(report), "--constraint", str(_constraints(spec, folder))]
        attempts = [options]
        if is_path(spec) and _replaceable(spec) is not None:
            # pip takes a wheel of the installed version for the same one, but it may have been built again.
            attempts.append(["--force-reinstall", "--no-deps"])
        for attempt in attempts:
            result = self.run("install", *reporting, *attempt, *self.sources, "--", target)
            if result.returncode != 0:
                raise _refusal(spec, result.stdout + "\n" + result.stderr)
            items = json.loads(report.read_text(encoding="utf-8"))["install"]
            if items:
                break
        return [_resolved(item) for item in items]

    def fetch(self, packages: Sequence[ResolvedPackage], wheels: Path) -> None:
        """Get or build the wheel of each package; nothing is fetched after this."""
        wheels.mkdir()
        sources = [item.source for item in packages]
        result = self.run("wheel", "--no-deps", "--wheel-dir", str(wheels), *self.sources, "--", *sources)
        if result.returncode != 0:
            names = ", ".join(f"{item.name} {item.version}" for item in packages)
            raise CommandFailed(f"pip could not fetch {names}: {last_error(result)}")

    def stage(self, packages: Sequence[ResolvedPackage], wheels: Path, target: Path) -> None:
        """Unpack the wheels into a folder for inspection."""
        result = self.run("install", "--no-compile", "--target", str(target), *_exactly(packages, wheels))
        if result.returncode != 0:
            raise CommandFailed(f"pip can't unpack it; nothing was changed: {last_error(result)}")

    def install(self, packages: Sequence[ResolvedPackage], wheels: Path) -> None:
        """Install the wheels, even over the same version. If pip fails, remove what it has added again."""
        before = _installed()
        result = self.run("install", "--force-reinstall", *_exactly(packages, wheels))
        if result.returncode != 0:
            for name in sorted(_installed() - before):
                self.take_back(name)
            raise CommandFailed(
                f"pip failed; the packages it had added were removed again: {last_error(result)}"
            )

    def take_back(self, name: str) -> None:
        """Remove a package that pip has installed, even partly: pip can't uninstall unfinished ones."""
        if self.run("uninstall", "--yes", name).returncode == 0:
            return
        for dist, package in installed():
            if package.name == name:
                site = Path(str(dist.locate_file("")))
                for path in site.glob("*.dist-info"):
                    if canonicalize_name(path.name.partition("-")[0]) == name:
                        shutil.rmtree(path)


def _exactly(packages: Sequence[ResolvedPackage], wheels: Path) -> list[str]:
    """Arguments that make pip use these wheels and nothing else."""
    pins = [f"{item.name}=={item.version}" for item in packages]
    return ["--no-deps", "--no-index", "--find-links", str(wheels), "--", *pins]


def _constraints(spec: str, folder: Path) -> Path:
    """A constraints file that pins everything installed, except the plugin to be replaced."""
    replaced = _replaceable(spec)
    pins = {package.name: package.version for _, package in installed() if package.name != replaced}
    file = folder / "constraints.txt"
    file.write_text("".join(f"{name}=={version}\n" for name, version in sorted(pins.items())))
    return file


def _replaceable(spec: str) -> str | None:
    """The package that `spec` names if it is a plugin's: only such a package may change its version."""
    name = _package_of(spec)
    return name if name in plugin_packages() - {PLATFORM} else None


def _package_of(spec: str) -> str | None:
    path = Path(spec)
    try:
        if path.suffix == ".whl":
            return parse_wheel_filename(path.name)[0]
        if is_path(spec):
            project = tomllib.loads((path / "pyproject.toml").read_text(encoding="utf-8"))["project"]
            return canonicalize_name(project["name"])
        return canonicalize_name(Requirement(spec).name)
    except (InvalidWheelFilename, InvalidRequirement, OSError, ValueError, KeyError):
        return None


def _resolved(item: dict[str, Any]) -> ResolvedPackage:
    name, version = item["metadata"]["name"], item["metadata"]["version"]
    source = item["download_info"]["url"] if item.get("is_direct") else f"{name}=={version}"
    return ResolvedPackage(name, version, source, bool(item.get("requested")))


def _refusal(spec: str, output: str) -> CommandFailed:
    """The error for the operator, made from pip's output."""
    conflict = _CAUSES.search(output)
    if conflict:
        needs = read_needs()
        lines = [line.strip() for line in conflict.group(1).splitlines() if line.strip()]
        lines = [_CONSTRAINT.sub(lambda match: reason_for(match[1], match[2], needs), line) for line in lines]
        return Refused(
            f"'{spec}' conflicts with installed packages; nothing was changed: " + "; ".join(lines),
            "Try another version, or ask the plugin's author for a compatible release.",
        )
    errors = [line[7:] for line in output.splitlines() if line.startswith("ERROR: ")]
    text = "; ".join(errors) or output.strip()[-500:]
    if "No matching distribution" in text or "Invalid requirement" in text:
        reason = errors[-1] if errors else text
        absent = _package_of(reason.partition("No matching distribution found for ")[2])
        if absent is not None and absent != _package_of(spec):
            return Missing(
                f"'{spec}' requires a package that was not found; nothing was changed: {reason}",
                "Check the package index, or add a folder that has it: --find-links FOLDER.",
            )
        return Missing(f"'{spec}' was not found; nothing was changed: {reason}", "Check the name or path.")
    return CommandFailed(f"pip could not resolve '{spec}'; nothing was changed: {text}")


def _installed() -> set[str]:
    """The names of the installed packages."""
    return {package.name for _, package in installed()}


def last_error(result: subprocess.CompletedProcess[str]) -> str:
    """The line of pip's output that gives the reason."""
    errors = [line[7:] for line in result.stderr.splitlines() if line.startswith("ERROR: ")]
    return errors[-1] if errors else result.stderr.strip()[-300:]
