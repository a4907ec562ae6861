"""Licenses and purchases: types that plugins exchange (`kernel.contracts`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class LicenseVerdict:
    """Whether a license covers a use, the tier required and the tier held; `reason` only for a refusal."""

    allowed: bool
    tier_required: str
    user_tier: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CheckoutOrder:
    """A tier of a plugin to buy. `plugin` is the listing's id."""

    id: str
    subject: str
    plugin: str
    plugin_name: str
    tier: str


@dataclass(frozen=True, slots=True)
class CheckoutNotice:
    """A provider's notice about an order. `event_id` is the provider's, the same in a repeated notice."""

    order_id: str
    event_id: str
    state: Literal["paid", "cancelled", "refunded"]


@dataclass(frozen=True, slots=True)
class CheckoutPage:
    """Where a buyer pays, and the provider (at most 50 characters), whose notices alone settle the order."""

    provider: str
    url: str
