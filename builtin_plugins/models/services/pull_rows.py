"""The rows of pulls: which wait, which run, how they ended. Only pulls that may run now have a job."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

from pydantic import BaseModel
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.models.models import Pull
from kernel.sdk import LongJob, Unit, utc_now

CHANGED: Final = "models.pulls"
UNDER_WAY: Final = ("queued", "running")
_LOCK: Final = "models_pulls"


def request(unit: Unit, model: str, runtime: str, account_id: int | None) -> Pull:
    """A pull of the model: the current one, or a new one at the end of the queue."""
    unit.lock(_LOCK)
    same = select(Pull).where(Pull.model == model, Pull.runtime == runtime, Pull.status.in_(UNDER_WAY))
    pull = unit.session.scalar(same)
    if pull is None:
        pull = Pull(id=str(uuid.uuid4()), model=model, runtime=runtime, requested_by=account_id)
        unit.session.add(pull)
        unit.session.flush()
        unit.notify(CHANGED, pull.id)
    return pull


def start_next(unit: Unit, limit: int, job: LongJob[Any], payload: Callable[..., BaseModel]) -> None:
    """Give jobs to the longest-waiting pulls, as far as there is room."""
    unit.lock(_LOCK)
    running = unit.session.scalar(select(func.count()).where(Pull.status == "running")) or 0
    waiting = select(Pull).where(Pull.status == "queued").order_by(Pull.created_at, Pull.id)
    for row in unit.session.scalars(waiting.limit(max(0, limit - running))).all():
        row.status = "running"
        arguments = payload(pull_id=row.id, model=row.model, runtime=row.runtime)
        unit.enqueue(job, arguments, job_id=row.id, owner_id=row.requested_by)
        unit.notify(CHANGED, row.id)


def end(unit: Unit, pull_id: str, status: str, error: str | None) -> None:
    """Record how a pull ended; the first result stands."""
    unit.lock(_LOCK)
    row = unit.session.get(Pull, pull_id)
    if row is not None and row.status in UNDER_WAY:
        row.status, row.error, row.ended_at = status, error, utc_now()
        unit.notify(CHANGED, pull_id)


def cancel_waiting(unit: Unit, pull_id: str) -> str | None:
    """Cancel a pull that has no job yet; returns its previous status, None for an unknown pull."""
    unit.lock(_LOCK)
    row = unit.session.get(Pull, pull_id)
    if row is None:
        return None
    before: str = row.status
    if before == "queued":
        end(unit, pull_id, "cancelled", None)
    return before


def find(session: Session, pull_id: str) -> Pull | None:
    """One pull."""
    return session.get(Pull, pull_id)


def page(session: Session, limit: int, offset: int) -> tuple[Sequence[Pull], int]:
    """The newest first, and how many there are."""
    total = session.scalar(select(func.count()).select_from(Pull)) or 0
    newest = select(Pull).order_by(Pull.created_at.desc(), Pull.id)
    return session.scalars(newest.limit(limit).offset(offset)).all(), total
