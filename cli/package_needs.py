"""The installed packages, and which need which. Requirements of extras and other systems count, too."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib import metadata
from typing import NamedTuple

from packaging.utils import canonicalize_name

from kernel.plugins.loading import GROUP

PLATFORM = "platform-kernel"
_FIELD = re.compile(r"^(Name|Version):[ \t]*(.*?)\s*$", re.MULTILINE)
_REQUIRED = re.compile(r"^Requires-Dist:[ \t]*([A-Za-z0-9._-]+)", re.MULTILINE)

Needs = Mapping[str, Collection[str]]


class Package(NamedTuple):
    """A package's name in its canonical form, and its version."""

    name: str
    version: str


def installed() -> Iterator[tuple[metadata.Distribution, Package]]:
    """Every installed package.

    Faster than `Distribution.name` and `version`, which parse the whole metadata: seconds for all packages.
    """
    for dist in metadata.distributions():
        head = (dist.read_text("METADATA") or dist.read_text("PKG-INFO") or "").partition("\n\n")[0]
        fields = dict(_FIELD.findall(head))
        if "Name" in fields:
            yield dist, Package(canonicalize_name(fields["Name"]), fields.get("Version", ""))


def plugin_packages() -> set[str]:
    """The names of the installed packages that have plugins, the platform among them."""
    points = metadata.entry_points(group=GROUP)
    return {canonicalize_name(point.dist.name) for point in points if point.dist}


def read_needs() -> Needs:
    """Each installed package, with the names of those that it requires."""
    return {
        package.name: {
            canonicalize_name(name) for name in _REQUIRED.findall(dist.read_text("METADATA") or "")
        }
        for dist, package in installed()
    }


def left_without(package: str, needs: Needs) -> list[str]:
    """The installed packages without plugins that only this one needs, directly or through each other."""
    remaining = (needs.keys() - _closure([package], needs)) | (plugin_packages() - {package})
    return sorted(needs.keys() - _closure(remaining, needs) - {package})


def reason_for(name: str, version: str, needs: Needs) -> str:
    """Why a package is installed, in one sentence."""
    if name in _closure([PLATFORM], needs):
        return f"the platform needs {name} {version}"
    plugins = sorted(one for one in plugin_packages() if name in _closure([one], needs))
    if plugins:
        return f"{name} {version} is installed for {', '.join(plugins)}"
    return f"{name} {version} is installed, though no plugin needs it ({removal([name])})"


def removal(names: Iterable[str]) -> str:
    """The command that removes packages."""
    return shlex.join([sys.executable, "-m", "pip", "uninstall", *names])


def _closure(names: Iterable[str], needs: Needs) -> set[str]:
    closure: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in closure:
            closure.add(name)
            pending += needs.get(name, ())
    return closure
