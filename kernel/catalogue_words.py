"""What plugins exchange about the catalog of plugins: listings and what they need (`kernel.contracts`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListingRef:
    """A listing of the catalog of plugins; `approved` ones are open to everybody."""

    id: str
    name: str
    display_name: str
    approved: bool
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Dependency:
    """A plugin of the catalog that another one requires, `depth` steps away."""

    plugin_id: str
    name: str
    depth: int


@dataclass(frozen=True, slots=True)
class InstalledTogether:
    """A plugin that accounts have beside others: `accounts` of the `of` that have one of those."""

    plugin_id: str
    name: str
    accounts: int
    of: int
