"""Types that plugins exchange about the catalog of plugins (`kernel.contracts`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListingRef:
    """A listing in the catalog of plugins; `approved` ones are visible to everybody.

    `plugins` are the installed plugins that came with its package, if their names differ from the listing's.
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
        """The listing's own name, and those of its plugins."""
        return (self.name, *self.plugins)


@dataclass(frozen=True, slots=True)
class Dependency:
    """A plugin of the catalog that another one requires, `depth` steps away."""

    plugin_id: str
    name: str
    depth: int


@dataclass(frozen=True, slots=True)
class DependencyVerdict:
    """Whether a plugin's requirements are compatible (`verdict` is ``resolved``), and if not, why.

    `conflicts` are the (name, reason) pairs of plugins that must not be installed with it.
    """

    verdict: str
    failures: tuple[str, ...]
    requires: tuple[Dependency, ...]
    conflicts: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class InstalledTogether:
    """A plugin often installed with given ones: `accounts` of the `of` accounts with any of those have it."""

    plugin_id: str
    name: str
    accounts: int
    of: int
