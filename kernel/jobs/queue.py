"""Enqueueing: the job's record and its place in the queue are written in the caller's transaction.

The queue is DBOS's, whose tables live in the same database: a job exists exactly when the change that
asked for it is committed.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING

from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncConnection

from kernel.db.engine import Unit
from kernel.db.tables import JobRecord
from kernel.jobs.declarations import JobRef, Lane

if TYPE_CHECKING:
    from dbos import DBOSClient, EnqueueOptions

QUEUES: dict[Lane, str] = {
    "quick": "platform-quick",
    "standard": "platform",
    "large": "platform-large",
}
WORKFLOW = "platform_job"


def dbos_url(sqlalchemy_url: str) -> str:
    """The database address in the form that DBOS takes."""
    return (
        make_url(sqlalchemy_url)
        .set(drivername="sqlite" if sqlalchemy_url.startswith("sqlite") else "postgresql")
        .render_as_string(hide_password=False)
    )


async def migrate_queue(sqlalchemy_url: str) -> None:
    """Make or update the queue's own tables."""
    from dbos import DBOS

    await asyncio.to_thread(DBOS.migrate, dbos_url(sqlalchemy_url))


class JobQueue:
    """Puts jobs into the queue. Needs no worker in this process."""

    def __init__(self, sqlalchemy_url: str) -> None:
        self._url = sqlalchemy_url
        self._client: DBOSClient | None = None

    async def enqueue(
        self,
        unit: Unit,
        job: JobRef,
        payload: BaseModel,
        job_id: str | None = None,
        lane: Lane | None = None,
    ) -> str:
        """Write a job in the unit's transaction; the same id twice is one job."""
        job_id = job_id or uuid.uuid4().hex
        known = await unit.session.scalar(select(JobRecord.id).where(JobRecord.id == job_id))
        if known is not None:
            return job_id
        unit.session.add(JobRecord(id=job_id, name=job.name, payload=payload.model_dump(mode="json")))
        await unit.session.flush()
        await self._place(await unit.session.connection(), job_id, QUEUES[lane or job.lane])
        return job_id

    async def _place(self, connection: AsyncConnection, job_id: str, queue: str) -> None:
        client = await self._connected()
        options: EnqueueOptions = {"queue_name": queue, "workflow_name": WORKFLOW, "workflow_id": job_id}
        await connection.run_sync(lambda sync: client.enqueue_in_transaction(sync, options, job_id))

    async def _connected(self) -> DBOSClient:
        """The client, made at the first job: its library is not imported before something needs it."""
        if self._client is None:
            self._client = await asyncio.to_thread(self._make)
        return self._client

    def _make(self) -> DBOSClient:
        from dbos import DBOSClient

        return DBOSClient(system_database_url=dbos_url(self._url), lazy=True)

    async def close(self) -> None:
        """Close the client's connections."""
        if self._client is not None:
            await asyncio.to_thread(self._client.destroy)
