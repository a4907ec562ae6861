"""Several jobs of one kind handled together: their payloads, and which of them are done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from sqlalchemy import bindparam, or_, select, update

from kernel.db.engine import Unit
from kernel.db.tables import JobRecord
from kernel.jobs.kinds import UNDER_WAY
from kernel.jobs.queue import tell

P = TypeVar("P", bound=BaseModel)

_ENDED: dict[str, Any] = {"status": "done", "payload": {}, "worker": None, "error": None, "message": ""}
_DONE = (
    update(JobRecord)
    .where(JobRecord.id == bindparam("job_id"), or_(*(JobRecord.status == one for one in UNDER_WAY)))
    .values(**_ENDED, finished_at=bindparam("finished"), result=bindparam("outcome"))
)


class Together(Generic[P]):
    """Jobs that are handled together. `payloads` holds their payloads by job id.

    `done(job_id)` marks one as complete; `close(unit, results)` records that, with each job's result, in the
    same transaction as the handler's own rows. Jobs that are not done are run again, one by one.
    """

    def __init__(self, kind: type[P], records: Sequence[JobRecord]) -> None:
        self._records = {record.id: record for record in records}
        self._done: dict[str, str | None] = {}
        self.payloads: Mapping[str, P] = {
            record.id: payload for record in records if (payload := _payload(kind, record)) is not None
        }

    def done(self, job_id: str, result: str | None = None) -> None:
        """Mark this job as complete; recorded once the handler returns. `result`: what it created."""
        self._done[job_id] = result

    def cancelled(self, unit: Unit) -> set[str]:
        """The cancelled ones, to be left out. Until the commit, no others can be cancelled."""
        query = select(JobRecord.id, JobRecord.cancel_requested_at).where(JobRecord.id.in_(self._records))
        rows = unit.session.execute(query.order_by(JobRecord.id).with_for_update())
        return {row.id for row in rows if row.cancel_requested_at is not None}

    def close(self, unit: Unit, results: Mapping[str, str | None]) -> None:
        """Record in the unit that these jobs are complete, with their results."""
        if not results:
            return
        now = unit.now()
        rows = [{"job_id": key, "outcome": result, "finished": now} for key, result in results.items()]
        unit.session.connection().execute(_DONE, rows)
        for job_id in results:
            tell(unit, self._records[job_id])

    def close_done(self, unit: Unit) -> None:
        """Record the jobs marked by `done`."""
        self.close(unit, self._done)


def _payload(kind: type[P], record: JobRecord) -> P | None:
    """The payload; None if it doesn't fit or the job was cancelled: run by itself, it reports that."""
    if record.cancel_requested_at is not None:
        return None
    try:
        return kind.model_validate(record.payload)
    except ValidationError:
        return None
