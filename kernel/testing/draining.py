"""Running jobs in a test, without a worker."""

from __future__ import annotations

import asyncio
from typing import cast

from sqlalchemy import select

from kernel.db.base import shared_now
from kernel.db.engine import Unit
from kernel.db.tables import JobRecord
from kernel.jobs import queue
from kernel.jobs.attempts import JobRunner, batching_kinds
from kernel.jobs.kinds import CANCEL, Lane
from kernel.jobs.turns import Taker
from kernel.platform import Platform

LONGEST_PAUSE = 0.02


async def run_job(runner: JobRunner, job_id: str) -> bool:
    """Make one attempt of a job; False if there is nothing left to do, or another worker has it."""
    records = await runner.write(queue.claim_all, runner.worker, [job_id])
    for record in records:
        await runner.attempt(record)
    return bool(records)


async def drain(platform: Platform) -> int:
    """Run all queued jobs here and now, those that were interrupted too; returns how many places they took.

    Like a worker, but one at a time, the lane with the oldest job first; a job that rests is soon due.
    """
    runner, ran = JobRunner(platform), 0
    taker = Taker(runner.worker, batching_kinds(platform), platform.settings.worker_concurrency)
    await runner.write(queue.release, [runner.worker])
    with platform.notices.listening(CANCEL, runner.cancel):
        while next_lane := await runner.write(_oldest_lane):
            lane, pause = next_lane
            await asyncio.sleep(pause)
            batches, _ = await runner.write(taker.take, [lane])
            if not batches:  # what waits is held back
                break
            await runner.run_batch(batches[0])
            ran += 1
    return ran


def _oldest_lane(unit: Unit) -> tuple[Lane, float] | None:
    """The lane of the job that is to run next, and for how many seconds it rests."""
    session = unit.session
    order = (JobRecord.not_before.asc().nulls_first(), JobRecord.created_at, JobRecord.id)
    record = session.scalar(select(JobRecord).where(JobRecord.status == "queued").order_by(*order).limit(1))
    if record is None:
        return None
    now, seconds = shared_now(session), 0.0
    if record.not_before is not None and record.not_before > now:
        seconds = min(LONGEST_PAUSE, (record.not_before - now).total_seconds())
        record.not_before = now
    return cast(Lane, record.lane), seconds
