"""Figures of an endpoint, per day."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.published_chat.models import Day
from builtin_plugins.published_chat.schemas import DayFigures, Figures
from builtin_plugins.published_chat.services import endpoints
from kernel.sdk import Caller, Scope, scope_of, utc_now

_SUMMED = ("questions", "answered", "refused", "failed", "tokens", "up", "down")


async def read(caller: Caller, endpoint_id: str, days: int) -> Figures:
    """The last days with a question, and their sum. Raises EndpointNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    items = await caller.platform.database.read(_read, scope, endpoint_id, days)
    return Figures(items=items, **{name: sum(getattr(one, name) for one in items) for name in _SUMMED})


def _read(session: Session, scope: Scope, endpoint_id: str, days: int) -> list[DayFigures]:
    endpoints.find(session, scope, endpoint_id)
    first = utc_now().date() - timedelta(days=days - 1)
    rows = session.scalars(
        select(Day).where(Day.endpoint_id == endpoint_id, Day.day >= first).order_by(Day.day.desc())
    )
    return [_figures(row) for row in rows]


def _figures(row: Day) -> DayFigures:
    """Questions neither answered nor refused have failed, were abandoned, or are still running."""
    return DayFigures(
        day=row.day,
        questions=row.questions,
        answered=row.answered,
        refused=row.refused,
        failed=max(0, row.questions - row.answered - row.refused),
        tokens=row.tokens,
        up=row.up,
        down=row.down,
    )
