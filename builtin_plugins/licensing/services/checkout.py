"""Buying a tier: an order, the provider's address, and its notices, which may come twice or out of order."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from kernel.sdk import Caller, NotFound, Platform, Unit, audit, contracts, utc_now

from ..errors import NoCheckout, PluginUnknown
from ..models import License, Notice, Order
from ..schemas import Checkout
from .keys import make_key
from .licenses import LOCK, grant
from .plugins import listings

# A notice only moves an order upwards: "paid" that arrives after "refunded" came too late.
RANKS = {"pending": 0, "cancelled": 1, "paid": 2, "refunded": 3}


async def start(caller: Caller, plugin_id: str, tier: str) -> Checkout:
    """An order of the caller, and where to pay. Raises PluginUnknown, NoCheckout."""
    platform = caller.platform
    listing = await platform.database.read(_offered, platform, plugin_id)
    if not platform.hooks.implementations(contracts.start_checkout):
        raise NoCheckout()
    order = Order(id=str(uuid.uuid4()), subject=caller.principal.subject, plugin_id=listing.id, tier=tier)
    told = contracts.CheckoutOrder(order.id, order.subject, listing.id, listing.name, tier)
    await platform.database.write(_add, order)
    url = await platform.hooks.ask(contracts.start_checkout, platform=platform, order=told)
    if url is None:
        raise NoCheckout()
    return Checkout(checkout_url=url, tier=tier)


def _offered(session: Session, platform: Platform, plugin_id: str) -> contracts.ListingRef:
    found = listings(platform, session, [plugin_id]).get(plugin_id)
    if found is None or not found.approved or found.id != plugin_id:
        raise PluginUnknown()
    return found


def _add(unit: Unit, order: Order) -> None:
    unit.session.add(order)


async def take_notice(platform: Platform, provider: str, headers: Mapping[str, str], body: bytes) -> str:
    """Do what a provider's notice says, once; answers the order's state now.

    Raises NotFound for an unknown provider or order, and what the provider's plugin raises.
    """
    notice = await platform.hooks.ask(
        contracts.read_checkout_notice, platform=platform, provider=provider, headers=headers, body=body
    )
    if notice is None:
        raise NotFound("There is no such payment provider")
    return await platform.database.write(_settle, platform, provider, notice)


def _settle(unit: Unit, platform: Platform, provider: str, notice: contracts.CheckoutNotice) -> str:
    unit.lock(LOCK)
    order: Order | None = unit.session.get(Order, notice.order_id)
    if order is None:
        raise NotFound("There is no such order")
    seen = unit.session.get(Notice, (provider, notice.event_id))
    if seen is None:
        unit.session.add(Notice(provider=provider, event_id=notice.event_id, order_id=order.id))
    if seen is not None or RANKS[notice.state] <= RANKS[order.state]:
        return str(order.state)
    before, order.state, order.changed_at = order.state, notice.state, utc_now()
    if notice.state == "paid":
        _grant(unit, platform, order)
    elif notice.state == "refunded":
        _withdraw(unit, order)
    audit(
        unit,
        f"license.order_{notice.state}",
        "license_order",
        order.id,
        before={"state": before},
        after={"state": notice.state, "tier": order.tier, "provider": provider},
    )
    return str(order.state)


def _grant(unit: Unit, platform: Platform, order: Order) -> None:
    fields = {
        "user_id": order.subject,
        "organization_id": None,
        "plugin_id": order.plugin_id,
        "tier": order.tier,
        "seats": None,
        "activated_by": f"order:{order.id}",
    }
    holder = License.user_id == order.subject
    # Nobody is there to be shown the key; the buyer asks for one when it is needed.
    grant(unit, platform, holder=holder, fields=fields, key=make_key())


def _withdraw(unit: Unit, order: Order) -> None:
    """End the licence that this order paid for; one that was activated anew since stays."""
    mine = License.activated_by == f"order:{order.id}"
    found = unit.session.scalar(select(License).where(mine))
    if found is not None:
        found.active = False
