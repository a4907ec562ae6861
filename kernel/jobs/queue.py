"""Enqueueing: the job's record and its place in the queue are written in the caller's transaction.

The queue is DBOS's, whose tables live in the same database: a job exists exactly if the change that enqueued
it is committed.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel
from sqlalchemy import bindparam, insert, select
from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session

from kernel.db.connecting import limited
from kernel.db.prepared import Prepared, PreparedInsert
from kernel.db.tables import JobRecord
from kernel.db.units import off_the_loop
from kernel.jobs.gathered import CARRIER, Load, next_carrier, waiting
from kernel.jobs.kinds import UNDER_WAY, JobKind, Lane, Placed, Placing
from kernel.jobs.spans import trace_to_store
from kernel.resource_keys import ResourceKey

if TYPE_CHECKING:
    from dbos import DBOSClient, EnqueueOptions

QUEUES: dict[Lane, str] = {
    "quick": "platform-quick",
    "standard": "platform",
    "large": "platform-large",
}
WORKFLOW = "platform_job"


def dbos_url(sqlalchemy_url: str) -> str:
    """The database address in DBOS's form."""
    address = make_url(sqlalchemy_url)
    if sqlalchemy_url.startswith("sqlite"):
        address = address.set(drivername="sqlite")
    else:
        address = limited(address.set(drivername="postgresql"))
    return address.render_as_string(hide_password=False)


async def migrate_queue(sqlalchemy_url: str) -> None:
    """Create or update the queue's own tables."""
    from dbos import DBOS

    await asyncio.to_thread(DBOS.migrate, dbos_url(sqlalchemy_url))


_JOBS: Any = JobRecord.__table__
_INSERT = PreparedInsert(insert(_JOBS))
"""Saves a quarter of a millisecond per job compared with the ORM."""

_CARRIERS = Prepared(
    select(_JOBS.c.id)
    .where(_JOBS.c.gathered == bindparam("carrier"), _JOBS.c.status == "queued")
    .with_for_update(read=True)
    .limit(1)
)


class JobQueue:
    """Puts jobs into the queue. Needs no worker in this process."""

    def __init__(self, sqlalchemy_url: str) -> None:
        self._url = sqlalchemy_url
        self._client: DBOSClient | None = None

    def enqueue(self, session: Session, job: JobKind, payload: BaseModel, placing: Placing) -> Placed:
        """Write a job in the session's transaction; the same id twice is one job."""
        lane = placing.lane or job.lane
        job_id = placing.job_id or uuid.uuid4().hex
        if placing.job_id is not None and session.get(JobRecord, job_id) is not None:
            return Placed(job_id, lane)
        _INSERT.run(session, _values(job_id, job, payload, placing))
        if placing.gather is not None:
            return Placed(job_id, self.call_carrier(session, job.name, lane))
        self._place(session, job_id, QUEUES[lane])
        return Placed(job_id, lane)

    def call_carrier(self, session: Session, job: str, lane: Lane) -> Lane | None:
        """Make sure that a carrier takes up the gathered jobs; returns the lane to notify, if it made one.

        A waiting carrier sees everything committed before it starts, so one is enough.
        """
        if _CARRIERS.first(session, {"carrier": next_carrier(job, lane)}) is not None:
            return None
        carrier = uuid.uuid4().hex
        load = Load(carrier=carrier, job=job, lane=lane).model_dump()
        gathered = next_carrier(job, lane)
        session.add(JobRecord(id=carrier, name=CARRIER, payload=load, lane=lane, gathered=gathered))
        session.flush()
        self._place(session, carrier, QUEUES[lane])
        return lane

    def place_again(self, session: Session) -> int:
        """Put every unfinished job into its lane again, after a restore; returns how many.

        Under new queue ids: the queue's tables were not restored and may list these jobs as ended.
        """
        turn = uuid.uuid4().hex[:8]
        records = list(session.scalars(select(JobRecord).where(JobRecord.status.in_(UNDER_WAY))))
        for record in records:
            record.status, record.gathered, record.not_before = "queued", None, None
            self._place(session, record.id, QUEUES[cast(Lane, record.lane)], f"{record.id}:{turn}")
        session.flush()
        return len(records)

    def _place(self, session: Session, job_id: str, queue: str, workflow_id: str | None = None) -> None:
        options: EnqueueOptions = {
            "queue_name": queue,
            "workflow_name": WORKFLOW,
            "workflow_id": workflow_id or job_id,
        }
        self._connected().enqueue_in_transaction(session.connection(), options, job_id)

    def _connected(self) -> DBOSClient:
        """The client, made for the first job: its library is imported only when needed."""
        if self._client is None:
            made = off_the_loop(self._make)
            self._client = self._client or made
        return self._client

    def _make(self) -> DBOSClient:
        from dbos import DBOSClient

        return DBOSClient(system_database_url=dbos_url(self._url), lazy=True)

    async def forget(self, job_ids: Sequence[str]) -> None:
        """Remove finished jobs from the queue's own tables."""
        client = await asyncio.to_thread(self._connected)
        await asyncio.to_thread(client.delete_workflows, list(job_ids))

    async def close(self) -> None:
        """Close the client's connections."""
        if self._client is not None:
            await asyncio.to_thread(self._client.destroy)


def _values(job_id: str, job: JobKind, payload: BaseModel, placing: Placing) -> dict[str, object]:
    return {
        "id": job_id,
        "name": job.name,
        "payload": payload.model_dump(mode="json"),
        "lane": placing.lane or job.lane,
        "title": job.title,
        "owner_id": placing.owner_id,
        "subject": placing.subject,
        "gathered": None if placing.gather is None else waiting(job.name, placing.lane or job.lane),
        "share": None if placing.gather is None else placing.gather.share,
        "weight": 1 if placing.gather is None else placing.gather.weight,
        "trace": trace_to_store(),
    }


JOB_QUEUE: ResourceKey[JobQueue] = ResourceKey("job queue")
