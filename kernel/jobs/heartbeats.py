"""Heartbeats: each worker writes its own, and lets the jobs of those run again whose heart stopped.

A heartbeat's time is the database's. How long it has been the same is measured by the observer's own
monotonic clock: a machine whose clock is wrong or gets set neither loses jobs that it is working on nor keeps
them when it is dead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from kernel.db.engine import Unit
from kernel.db.tables import WorkerRecord
from kernel.jobs import queue

SILENT_SECONDS = 30.0
_BLIND_SECONDS = 20.0  # between checks: who could not check has not observed any silence


class Watched:
    """The signs of life of all workers, as observed by one of them."""

    def __init__(self) -> None:
        self._sightings: dict[str, tuple[datetime, float]] = {}
        self._looked_at = float("-inf")

    def silent(self, beats: Mapping[str, datetime], now: float) -> list[str]:
        """The dead workers, given the last beat of each and the observer's time `now`.

        After a gap, such as an outage of the database, all silences start over: the others could not show
        life either, and the first to return must not take over everybody's jobs.
        """
        if now - self._looked_at > _BLIND_SECONDS:
            self._sightings = {name: (beat, now) for name, (beat, _) in self._sightings.items()}
        self._looked_at = now
        self._sightings = {name: self._since(name, beat, now) for name, beat in beats.items()}
        return [name for name, (_, since) in self._sightings.items() if now - since > SILENT_SECONDS]

    def _since(self, name: str, beat: datetime, now: float) -> tuple[datetime, float]:
        sighting = self._sightings.get(name)
        return sighting if sighting is not None and sighting[0] == beat else (beat, now)


def begin(unit: Unit, worker: str, slot: str) -> None:
    """A worker's first heartbeat. Whoever had its slot before is dead, however recently it was seen."""
    worker_ids = unit.session.scalars(select(WorkerRecord.id)).all()
    end(unit, [name for name in worker_ids if name == slot or name.startswith(f"{slot}:")])
    unit.session.add(WorkerRecord(id=worker, seen_at=unit.now()))


def beat(unit: Unit, worker: str) -> bool:
    """A worker's heartbeat; False if another worker has declared it dead and released its jobs."""
    mine = update(WorkerRecord).where(WorkerRecord.id == worker).values(seen_at=unit.now())
    alive = unit.session.scalar(mine.returning(WorkerRecord.id)) is not None
    if not alive:
        unit.session.add(WorkerRecord(id=worker, seen_at=unit.now()))
    return alive


def beats_of_others(session: Session, worker: str) -> dict[str, datetime]:
    """The last heartbeat of each worker but this one."""
    rows = session.execute(select(WorkerRecord.id, WorkerRecord.seen_at).where(WorkerRecord.id != worker))
    return {row.id: row.seen_at for row in rows}


def end(unit: Unit, workers: Collection[str]) -> None:
    """Let the jobs of these workers run again: they are dead, or have stopped."""
    queue.release(unit, workers)
    unit.session.execute(delete(WorkerRecord).where(WorkerRecord.id.in_(workers)))
