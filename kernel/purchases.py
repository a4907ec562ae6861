"""Plugins as products: listings, licences, purchases; words of `kernel.contracts`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class LicenseVerdict:
    """Whether a licence covers a use, which tier it needs and which there is; `reason` only for a no."""

    allowed: bool
    tier_required: str
    user_tier: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CheckoutOrder:
    """What somebody wants to buy: a tier of a plugin. `plugin` is the listing's id."""

    id: str
    subject: str
    plugin: str
    plugin_name: str
    tier: str


@dataclass(frozen=True, slots=True)
class CheckoutNotice:
    """What a provider says of an order. `event_id` is its own, the same when it says it again."""

    order_id: str
    event_id: str
    state: Literal["paid", "cancelled", "refunded"]


@dataclass(frozen=True, slots=True)
class ListingRef:
    """A listing of the catalog of plugins; `approved` ones are open to everybody."""

    id: str
    name: str
    display_name: str
    approved: bool
    version: str | None = None


@dataclass(frozen=True, slots=True)
class CheckoutPage:
    """Where a buyer pays, and the provider whose notices alone settle the order (50 characters at most)."""

    provider: str
    url: str


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
