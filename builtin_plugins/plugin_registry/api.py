"""The catalog of plugins, licenses and collected data, as the plugins around the registry exchange them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel.sdk import PROMPTLY, hookspec

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from kernel.sdk import Platform


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
class RequiredPlugin:
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
    requires: tuple[RequiredPlugin, ...]
    conflicts: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class InstalledTogether:
    """A plugin often installed with given ones: `accounts` of the `of` accounts with any of those have it."""

    plugin_id: str
    name: str
    accounts: int
    of: int


@dataclass(frozen=True, slots=True)
class LicenseVerdict:
    """Whether a license covers a use, the tier required and the tier held; `reason` only for a refusal."""

    allowed: bool
    tier_required: str
    user_tier: str
    reason: str | None = None


LISTINGS_CHANGED = "marketplace.listings"  # topic of the notice that a listing changed; its id is the key


@hookspec.all_now
def find_listings(
    platform: Platform, session: Session, plugins: Sequence[str]
) -> Sequence[ListingRef] | None:
    """The listings, approved or not, whose id or name is among `plugins`, or one of whose plugins is."""


@hookspec.first_now
def find_requirements(
    platform: Platform, session: Session, plugin_id: str
) -> Sequence[RequiredPlugin] | None:
    """All that a plugin requires, directly or through others, nearest first. A plain function."""


@hookspec.first_now
def find_dependents(platform: Platform, session: Session, plugin_id: str) -> Sequence[RequiredPlugin] | None:
    """All plugins that require this one, directly or through others, nearest first. A plain function."""


@hookspec.first_now
def judge_dependencies(platform: Platform, session: Session, plugin_id: str) -> DependencyVerdict | None:
    """What the dependency graph says about a plugin of the catalog. A plain function."""


@hookspec.first_now
def find_installed_together(
    platform: Platform, session: Session, plugins: Sequence[str], limit: int
) -> Sequence[InstalledTogether] | None:
    """What else accounts with one of these plugins have, most frequent first. A plain function."""


@hookspec.first(seconds=PROMPTLY)
def check_license(
    platform: Platform, subject: str, plugin: str, required: str, used: bool
) -> LicenseVerdict | None:
    """Whether `subject` (a token's `sub`) may use a feature of a plugin that requires the tier `required`.

    `plugin` is its name; a tier that an administrator requires for the whole plugin counts too. `used` counts
    one use of the license. Without an answer, everybody has the tier ``community``.
    """


@hookspec.all(failing="skip")
def collect_data(platform: Platform) -> Mapping[str, Any] | None:
    """Collect the plugin's data from its sources now; returns a report, as JSON.

    The registry asks one plugin at a time, in a worker, on request and every hour. The report is stored and
    shown to signed-in accounts. It must be safe to repeat. Raise a PlatformError for a
    failure that people should read. An implementation may be a plain function that blocks.
    """


@hookspec.all(failing="skip")
def analyze_data(platform: Platform) -> Mapping[str, Any] | None:
    """The plugin's analysis of its data, as JSON; shown verbatim to signed-in accounts.

    Asked of one plugin at a time, while a client waits. It may be a plain function that blocks.
    """
