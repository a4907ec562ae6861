"""The lock files name one version of everything that is needed, and it is what these tests run on."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kernel.testing import missing

ROOT = Path(__file__).resolve().parents[2]
RUNTIME, DEVELOPMENT, DATA = "requirements.lock", "requirements-dev.lock", "requirements-data.lock"
LIGHT, FULL = "requirements-light.lock", "full"
BUILD, RELEASE, DOCS = "requirements-build.lock", "requirements-release.lock", "requirements-docs.lock"
ALL = (RUNTIME, DEVELOPMENT, DATA, LIGHT, BUILD, RELEASE, DOCS)


def extras() -> list[str]:
    """What `./setup.sh` installs besides the core and, unless it is to be light, `full`: not all of `all`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (everything,) = map(Requirement, project["optional-dependencies"]["all"])
    return ["storage", *sorted(everything.extras - {"otel", "s3"})]


def pins(file: str) -> dict[str, Requirement]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    found = [Requirement(line.removesuffix("\\")) for line in lines if line and line[0] not in "#- "]
    return {canonicalize_name(item.name): item for item in found}


def wanted(group: str | None = None) -> list[Requirement]:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    return installed(*extras(), FULL) if group is None else [Requirement(line) for line in groups[group]]


def installed(*names: str) -> list[Requirement]:
    """What the core and these extras require, those that stand for other extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named, lines = list(names), list(project["dependencies"])
    for extra in named:
        for line in project["optional-dependencies"][extra]:
            own = Requirement(line)
            if own.name == project["name"]:
                named += own.extras - set(named)
            else:
                lines.append(line)
    return [Requirement(line) for line in lines]


def requirements_of(name: str) -> list[str]:
    """What an installed package requires. Skips where the environment is older than the locks."""
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        missing(f"{name} is locked and not installed here; ./setup.sh test installs it")
        raise


@pytest.mark.parametrize("file", ALL)
def test_every_line_is_one_version(file: str) -> None:
    loose = [str(item) for item in pins(file).values() if not re.fullmatch(r"==[^*,]+", str(item.specifier))]
    assert loose == []


@pytest.mark.parametrize("file", ALL)
def test_every_line_has_hashes(file: str) -> None:
    """Each version is followed by the hashes of its files, so that pip installs nothing else."""
    text = (ROOT / file).read_text(encoding="utf-8")
    hashed = re.findall(r"^(\S+)==.* \\\n {4}--hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
    assert {canonicalize_name(name) for name in hashed} == set(pins(file))


def test_requirements_are_met() -> None:
    """Each requirement of the platform, and of its tests, is pinned at a version that fits."""
    runtime = pins(RUNTIME)
    everything = runtime | pins(DEVELOPMENT)
    for item, known in [(i, runtime) for i in wanted()] + [(i, everything) for i in wanted("dev")]:
        pin = known.get(canonicalize_name(item.name))
        assert pin is not None, f"{item.name} is not locked"
        version = str(pin.specifier).removeprefix("==")
        assert item.specifier.contains(version), f"{pin} does not fit {item}"


def test_everything_that_is_required_is_locked() -> None:
    """What the locked packages require is locked too: an installation takes nothing by chance."""
    known = pins(RUNTIME) | pins(DEVELOPMENT)
    for name, pin in known.items():
        if pin.marker is not None and not pin.marker.evaluate():
            continue
        for item in map(Requirement, requirements_of(name)):
            if item.marker is None or item.marker.evaluate({"extra": ""}):
                assert canonicalize_name(item.name) in known, f"{name} requires {item.name}"


@pytest.mark.parametrize("file", ALL)
def test_locks_name_no_index(file: str) -> None:
    """Where packages come from is the machine's business: no address stands in a lock."""
    assert "://" not in (ROOT / file).read_text(encoding="utf-8")


def test_the_light_lock_is_the_rest() -> None:
    """It pins what the platform needs without the extra `full`, and what that requires; same versions."""
    light, everything = pins(LIGHT), pins(RUNTIME)
    for name, pin in light.items():
        assert str(pin) == str(everything[name])
    needed = {canonicalize_name(one.name) for one in installed(*extras())}
    left_out = {canonicalize_name(one.name) for one in wanted()} - needed
    assert not left_out & set(light)
    for name in needed | set(light):
        assert name in light, f"{name} is not in {LIGHT}"
        pin = light[name]
        if pin.marker is not None and not pin.marker.evaluate():
            continue
        for item in map(Requirement, requirements_of(name)):
            if item.marker is None or item.marker.evaluate({"extra": ""}):
                assert canonicalize_name(item.name) in light, f"{name} requires {item.name}"


def test_packages_of_data_are_required_by_nobody() -> None:
    """They come without what they require, so that their code does not run: nothing here may count on it."""
    needed = {canonicalize_name(item.name) for item in [*wanted(), *wanted("dev")]}
    for name in pins(DATA):
        assert name not in needed
        assert metadata.version(name) == str(pins(DATA)[name].specifier).removeprefix("==")
