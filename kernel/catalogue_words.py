"""What plugins exchange about the catalog of plugins: listings and what they need (`kernel.contracts`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListingRef:
    """A listing of the catalog of plugins; `approved` ones are open to everybody.

    `plugins` are the names of installed plugins that came with its package, if they are called otherwise.
    """

    id: str
    name: str
    display_name: str
    approved: bool
    version: str | None = None
    package: str | None = None
    version_range: str | None = None
    tier: str = "community"
    plugins: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Its own name, and those of its plugins."""
        return (self.name, *self.plugins)


@dataclass(frozen=True, slots=True)
class Dependency:
    """A plugin of the catalog that another one requires, `depth` steps away."""

    plugin_id: str
    name: str
    depth: int


@dataclass(frozen=True, slots=True)
class DependencyVerdict:
    """Whether all that a plugin requires fits together (`verdict` is ``resolved``), and if not, why.

    `conflicts` are (name, reason) of plugins that must not be installed with it.
    """

    verdict: str
    failures: tuple[str, ...]
    requires: tuple[Dependency, ...]
    conflicts: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class InstalledTogether:
    """A plugin that accounts have along with others: `accounts` of the `of` that have one of those."""

    plugin_id: str
    name: str
    accounts: int
    of: int
