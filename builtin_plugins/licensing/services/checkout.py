"""Buying a tier: an order, the provider's address, and its notices, which may be repeated or out of order."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.licensing import api
from builtin_plugins.plugin_registry import api as plugin_registry
from kernel.sdk import Caller, NotFound, OutgoingError, Platform, Unit, audit

from ..errors import BetterLicense, NoCheckout, PluginUnknown, ProviderAway, TooManyOrders
from ..models import License, Order, ProviderNotice
from ..schemas import Checkout
from ..tiers import covers
from .keys import make_key
from .licenses import LOCK, YEAR, add_license, is_valid
from .plugins import listings

# A notice only moves an order forward: a "paid" after "refunded" is outdated.
RANKS = {"pending": 0, "expired": 1, "cancelled": 2, "paid": 3, "refunded": 4}
MOST_PENDING = 20

# What an order changes of a license, and what a refund brings back.
_CHANGED = ("tier", "valid_from", "valid_until", "trial_expires_at", "active", "activated_by")


async def start(caller: Caller, plugin_id: str, tier: str) -> Checkout:
    """Order for the caller; returns where to pay.

    Raises PluginUnknown, BetterLicense, TooManyOrders, NoCheckout, ProviderAway.
    """
    platform = caller.platform
    listing = await platform.database.read(_offered, caller, plugin_id, tier)
    if not platform.hooks.implementations(api.start_checkout):
        raise NoCheckout()
    order = Order(id=str(uuid.uuid4()), subject=caller.principal.subject, plugin_id=listing.id, tier=tier)
    checkout_order = api.CheckoutOrder(order.id, order.subject, listing.id, listing.name, tier)
    await platform.database.write(_add, order)
    page = await _open_page(platform, checkout_order)
    await platform.database.write(_name_provider, checkout_order.id, page.provider)
    return Checkout(checkout_url=page.url, tier=tier)


async def _open_page(platform: Platform, order: api.CheckoutOrder) -> api.CheckoutPage:
    """Let a provider open the order's page; if none does, the order is cancelled.

    Raises NoCheckout, ProviderAway.
    """
    page = None
    try:
        page = await platform.hooks.ask(api.start_checkout, platform=platform, order=order)
    except (OutgoingError, ConnectionError, TimeoutError):
        raise ProviderAway() from None  # the log and /health name the plugin
    finally:
        if page is None:
            await platform.database.write(_cancel, order.id)
    if page is None:
        raise NoCheckout()
    return page


def _offered(session: Session, caller: Caller, plugin_id: str, tier: str) -> plugin_registry.ListingRef:
    listing = listings(caller.platform, session, [plugin_id]).get(plugin_id)
    if listing is None or not listing.approved or listing.id != plugin_id:
        raise PluginUnknown()
    own_license = _own_license(session, caller.principal.subject, plugin_id, is_valid(session))
    if own_license is not None and not covers(tier, own_license.tier):
        raise BetterLicense()
    return listing


def _own_license(session: Session, subject: str, plugin_id: str, *which: Any) -> License | None:
    mine = select(License).where(License.user_id == subject, License.plugin_id == plugin_id, *which)
    return session.scalar(mine)


def _add(unit: Unit, order: Order) -> None:
    unit.lock(LOCK)
    mine = select(func.count()).where(Order.subject == order.subject, Order.state == "pending")
    if (unit.session.scalar(mine) or 0) >= MOST_PENDING:
        raise TooManyOrders()
    order.created_at = order.changed_at = unit.now()
    unit.session.add(order)


def _cancel(unit: Unit, order_id: str) -> None:
    """Cancel the order unless a notice about it has arrived."""
    unit.lock(LOCK)
    order = unit.session.get_one(Order, order_id)
    if order.state == "pending":
        order.state, order.changed_at = "cancelled", unit.now()


def _name_provider(unit: Unit, order_id: str, provider: str) -> None:
    unit.session.get_one(Order, order_id).provider = provider


async def take_notice(platform: Platform, provider: str, headers: Mapping[str, str], body: bytes) -> str:
    """Process a provider's notice, once; returns the order's new state.

    Raises NotFound for an unknown provider or order, and what the provider's plugin raises.
    """
    notice = await platform.hooks.ask(
        api.read_checkout_notice, platform=platform, provider=provider, headers=headers, body=body
    )
    if notice is None:
        raise NotFound("There is no such payment provider")
    return await platform.database.write(_settle, platform, provider, notice)


def _settle(unit: Unit, platform: Platform, provider: str, notice: api.CheckoutNotice) -> str:
    unit.lock(LOCK)
    order: Order | None = unit.session.get(Order, notice.order_id)
    if order is None or order.provider not in (None, provider):
        raise NotFound("There is no such order")
    earlier = unit.session.get(ProviderNotice, (provider, notice.event_id))
    if earlier is None:
        unit.session.add(ProviderNotice(provider=provider, event_id=notice.event_id, order_id=order.id))
    if earlier is not None or RANKS[notice.state] <= RANKS[order.state]:
        return str(order.state)
    before, order.state, order.changed_at = order.state, notice.state, unit.now()
    order.provider = provider
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
    """Give the buyer the tier for a year; what is left of the same tier is added to it.

    A license keeps its key. A better one, activated since the order began, stays as it is.
    """
    now = unit.now()
    row = _own_license(unit.session, order.subject, order.plugin_id)
    start = now
    if row is None:
        # The key can't be shown to anybody now; the buyer requests one when needed.
        row = add_license(unit, platform, make_key(), user_id=order.subject, plugin_id=order.plugin_id)
    elif row.active and row.valid_until > now:
        if not covers(order.tier, row.tier):
            return
        order.replaced = _state_of(row)
        start = row.valid_until if row.tier == order.tier else now
    row.tier, row.active, row.activated_by = order.tier, True, _marked(order)
    row.valid_from, row.valid_until, row.trial_expires_at = now, start + YEAR, None


def _withdraw(unit: Unit, order: Order) -> None:
    """Undo this order: restore what it replaced. Anything activated since stays."""
    row = _own_license(unit.session, order.subject, order.plugin_id)
    if row is None:
        return
    orders = _paid_for(unit.session, row)
    if orders[:1] == [order]:
        _restore(row, _not_refunded(unit.session, order.replaced))
    elif order in orders and order.tier == row.tier:
        row.valid_until -= YEAR


def _paid_for(session: Session, row: License) -> list[Order]:
    """The orders that a license is built on, the latest first."""
    orders: list[Order] = []
    by: str | None = row.activated_by
    while order := _order_of(session, by):
        orders.append(order)
        by = None if order.replaced is None else order.replaced["activated_by"]
    return orders


def _restore(row: License, state: dict[str, Any] | None) -> None:
    if state is None:
        row.active = False
        return
    for name, value in state.items():
        setattr(row, name, _moment(value) if name in _TIMES else value)


def _not_refunded(session: Session, state: dict[str, Any] | None) -> dict[str, Any] | None:
    """A license's earlier state, or the one before it where a refunded order had paid for that."""
    while state is not None:
        order = _order_of(session, state["activated_by"])
        if order is None or order.state != "refunded":
            return state
        state = order.replaced
    return None


_MARK = "order:"
_TIMES = ("valid_from", "valid_until", "trial_expires_at")


def _marked(order: Order) -> str:
    return f"{_MARK}{order.id}"


def _order_of(session: Session, activated_by: str | None) -> Order | None:
    """The order that activated a license; None where a person did."""
    if activated_by is None or not activated_by.startswith(_MARK):
        return None
    return session.get(Order, activated_by.removeprefix(_MARK))


def _state_of(row: License) -> dict[str, Any]:
    """What an order is about to change, as JSON can hold it."""
    values = {name: getattr(row, name) for name in _CHANGED}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()
    }


def _moment(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)
