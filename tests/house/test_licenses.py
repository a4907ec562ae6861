"""Every dependency has a license as free as ours; nothing under GPL or AGPL is installed with us."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kernel.version import DISTRIBUTION

ROOT = Path(__file__).resolve().parents[2]

# Licenses that ask for nothing but their text, and MPL-2.0, whose copyleft ends at its own files.
PERMISSIVE = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Unlicense|Zlib|BSL-1\.0|MPL|Mozilla|CC0|CNRI",
    re.IGNORECASE,
)
COPYLEFT = re.compile(r"A?GPL|General Public License|EUPL|SSPL|Affero|CC-BY-(NC|SA)", re.IGNORECASE)
# Weak copyleft, for a library that is used as it is published and can be replaced.
LESSER = {
    "num2words": "pure Python, imported as it is published; it can be replaced by another release",
}


def required(*names: str) -> Iterator[metadata.Distribution]:
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in seen:
            continue
        seen.add(name)
        found = metadata.distribution(name)
        yield found
        for wanted in map(Requirement, found.requires or ()):
            if wanted.marker is None or any(
                wanted.marker.evaluate({"extra": extra}) for extra in _extras(name)
            ):
                waiting.append(wanted.name)


@cache
def _asked() -> list[Requirement]:
    return [Requirement(line) for line in metadata.requires(DISTRIBUTION) or ()]


@cache
def _extras(name: str) -> set[str]:
    return {
        "",
        *(extra for item in _asked() if canonicalize_name(item.name) == name for extra in item.extras),
    }


def tools() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [Requirement(line).name for line in project["dependency-groups"]["dev"]]


def license_of(distribution: metadata.Distribution) -> str:
    """What a distribution says in its metadata: the expression, else the classifiers, else the first line."""
    found = distribution.metadata
    expression = found.get("License-Expression")
    if expression:
        return expression
    classifiers = [line for line in found.get_all("Classifier") or [] if line.startswith("License ::")]
    spoken = [line.rpartition(" :: ")[2] for line in classifiers]
    named = [text for text in spoken if text != "OSI Approved"]
    return "; ".join(named) or (found.get("License") or "").strip().partition("\n")[0]


def told(distribution: metadata.Distribution) -> str:
    """The name of a case: the package and its license."""
    return f"{distribution.metadata['Name']}: {license_of(distribution)}"


@pytest.mark.parametrize("dependency", list(required(DISTRIBUTION, *tools())), ids=told)
def test_license_is_permissive(dependency: metadata.Distribution) -> None:
    """The license is a permissive one; LGPL only for a named library with its reason."""
    name, said = canonicalize_name(dependency.metadata["Name"]), license_of(dependency)
    assert said, f"{name} does not say under which license it is"
    if name in LESSER:
        assert re.search(r"LGPL", said) and not re.search(r"AGPL|(?<!L)GPL", said), f"{name}: {said}"
        return
    assert not COPYLEFT.search(said), f"{name} is under {said}"
    assert PERMISSIVE.search(said), f"the license of {name} is not known to be permissive: {said}"


@pytest.mark.parametrize(
    "said", ["GPL-3.0-only", "AGPL-3.0-or-later", "GNU General Public License v3 (GPLv3)", "LGPL-3.0-only"]
)
def test_copyleft_is_recognized(said: str) -> None:
    assert COPYLEFT.search(said)


def test_our_own_license() -> None:
    ours = metadata.metadata(DISTRIBUTION)
    assert ours["License-Expression"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
