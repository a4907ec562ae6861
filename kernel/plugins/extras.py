"""Extras: what pip installs only on request, as for most plugins.

An entry point may name extras of its own distribution, as in ``notes = "acme.plugin:Notes [notes]"``. A
plugin whose extras are missing is not imported: it is "not installed", with the command that installs it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distribution
from importlib.util import find_spec

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kernel.errors import StartupError
from kernel.version import DISTRIBUTION

_NAMED = 3


class Extras:
    """The extras of one distribution, read from its metadata when they are first asked for."""

    def __init__(self, dist: Distribution) -> None:
        self._dist = dist

    def remedy(self, extras: Collection[str]) -> str | None:
        """How to install what is missing for these extras; None if nothing is."""
        if not extras:
            return None
        missing = sorted({name for name in self._packages(extras, frozenset()) if not _is_there(name)})
        if not missing:
            return None
        named = ", ".join(missing[:_NAMED])
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        return f"{_install_line(self._name, extras)} installs it (missing: {named}{more})"

    @cached_property
    def _name(self) -> str:
        return str(self._dist.metadata["Name"])

    @cached_property
    def _requirements(self) -> list[Requirement]:
        """Those that depend on an extra."""
        reqs = [Requirement(line) for line in self._dist.requires or ()]
        return [req for req in reqs if req.marker is not None and not req.marker.evaluate({"extra": ""})]

    def _packages(self, extras: Collection[str], visited: frozenset[str]) -> Iterator[str]:
        """The packages that these extras add. One of them may stand for others: ``acme[all]``."""
        for req in self._requirements:
            if not any(req.marker is not None and req.marker.evaluate({"extra": extra}) for extra in extras):
                continue
            if canonicalize_name(req.name) == canonicalize_name(self._name):
                yield from self._packages(req.extras - visited, visited | req.extras)
            else:
                yield req.name


def extras_of(point: EntryPoint) -> list[str]:
    """The extras that an entry point names. Python 3.11's own `EntryPoint.extras` splits names at hyphens."""
    named = point.value.partition("[")[2].partition("]")[0]
    return [name for part in named.split(",") if (name := part.strip())]


def require(variable: str, extra: str, module: str) -> None:
    """Raise StartupError if a setting needs a module that an extra of the platform brings."""
    if find_spec(module) is None:
        line = _install_line(DISTRIBUTION, [extra])
        raise StartupError(f"{variable} needs the package {module}, which is not installed: {line}")


def _install_line(name: str, extras: Collection[str]) -> str:
    return f"pip install '{name}[{','.join(sorted(extras))}]'"


def _is_there(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
