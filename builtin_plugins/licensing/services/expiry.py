"""Orders that nobody paid expire. A payment that arrives later counts all the same."""

from __future__ import annotations

import logging
from datetime import timedelta

from pydantic import BaseModel
from sqlalchemy import update

from kernel.sdk import Job, Platform, Unit

from ..models import Order
from ..settings import LicensingSettings
from .licenses import LOCK

log = logging.getLogger("platform.licensing")


class ExpireOrders(BaseModel):
    """An empty payload: the schedule starts it."""


async def expire_orders(platform: Platform, _payload: ExpireOrders) -> None:
    """Once a day: mark orders as expired that were not paid within `order_days`."""
    days = platform.settings_of(LicensingSettings).order_days
    expired = await platform.database.write(_expire, timedelta(days=days))
    log.info("%d orders expired because they were not paid within %d days", expired, days)


def _expire(unit: Unit, life: timedelta) -> int:
    unit.lock(LOCK)
    now = unit.now()
    unpaid = update(Order).where(Order.state == "pending", Order.created_at < now - life)
    expired = unit.session.scalars(unpaid.values(state="expired", changed_at=now).returning(Order.id))
    return len(expired.all())


EXPIRE_ORDERS = Job(
    "licensing.expire_orders", ExpireOrders, expire_orders, schedule="20 3 * * *", lane="quick"
)
