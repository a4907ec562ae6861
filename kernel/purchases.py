"""Licences and purchases: types that plugins exchange (`kernel.contracts`)."""

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
    """What a provider says about an order. `event_id` is its own, the same when it says it again."""

    order_id: str
    event_id: str
    state: Literal["paid", "cancelled", "refunded"]


@dataclass(frozen=True, slots=True)
class CheckoutPage:
    """Where a buyer pays, and the provider whose notices alone settle the order (50 characters at most)."""

    provider: str
    url: str
