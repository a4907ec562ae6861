"""Orders that nobody paid expire. A payment that arrives later counts all the same."""

from __future__ import annotations

import logging
from datetime import timedelta

from sqlalchemy import update

from kernel.sdk import Job, NoPayload, Platform, Unit

from ..models import Order
from ..settings import LicensingSettings
from .licenses import LOCK

log = logging.getLogger("platform.licensing")


async def expire_orders(platform: Platform, _payload: NoPayload) -> None:
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


EXPIRE_ORDERS = Job("licensing.expire_orders", NoPayload, expire_orders, schedule="20 3 * * *", lane="quick")
