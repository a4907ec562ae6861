"""The use of a model by day and part of the platform."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.models.models import ModelUse
from builtin_plugins.models.names import canonical
from builtin_plugins.models.schemas import MetricsOut, UseOut
from builtin_plugins.models.services.model_calls import MODELS
from kernel.sdk import Context, utc_now


async def show(ctx: Context, model_id: str, days: int) -> MetricsOut:
    """The counts, including this process's latest calls."""
    await ctx.resource(MODELS).usage.flush()
    since = utc_now().date() - timedelta(days=days - 1)
    rows = await ctx.read(_rows, canonical(model_id), since)
    uses = [_use_out(row) for row in rows]
    return MetricsOut(
        model=canonical(model_id),
        days=uses,
        calls=sum(row.calls for row in uses),
        errors=sum(row.errors for row in uses),
        tokens=sum(row.tokens for row in uses),
    )


def _rows(session: Session, model: str, since: date) -> Sequence[ModelUse]:
    newest = select(ModelUse).where(ModelUse.model == model, ModelUse.day >= since)
    return session.scalars(newest.order_by(ModelUse.day.desc(), ModelUse.part)).all()


def _use_out(row: ModelUse) -> UseOut:
    return UseOut(
        day=row.day,
        part=row.part,
        calls=row.calls,
        errors=row.errors,
        tokens=row.tokens,
        tokens_unknown=row.tokens_unknown,
        mean_ms=round(row.total_ms / row.calls) if row.calls else 0,
        longest_ms=row.longest_ms,
    )
