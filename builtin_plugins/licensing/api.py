"""Purchases: what licensing asks of a payment provider's plugin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kernel.sdk import hookspec

if TYPE_CHECKING:
    from kernel.sdk import Platform


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


@hookspec.first
def start_checkout(platform: Platform, order: CheckoutOrder) -> CheckoutPage | None:
    """Where the buyer pays for `order`; None if the provider is not configured.

    The provider must send its notices to ``POST /v1/marketplace/checkout/{provider}/notices``, with the
    `provider` of the page, which `read_checkout_notice` knows.
    """


@hookspec.first
def read_checkout_notice(
    platform: Platform, provider: str, headers: Mapping[str, str], body: bytes
) -> CheckoutNotice | None:
    """The content of a provider's notice, with its signature checked; None for another provider.

    Header names are in lower case. Raise Unauthorized for a wrong or missing signature, BadRequest for one
    that can't be read. Notices may come twice and out of order.
    """
