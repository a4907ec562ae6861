"""A run, as a job: list, then apply. A killed worker continues where the rows say."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any, Final

from pydantic import BaseModel
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from builtin_plugins.rag import api as rag
from builtin_plugins.sources.models import RunRecord, SourceRecord
from builtin_plugins.sources.protocol import (
    CredentialRefused,
    DocumentSource,
    SourceFault,
    SourceThrottled,
    SourceUnreachable,
)
from builtin_plugins.sources.services.applying import RunExecution
from builtin_plugins.sources.services.listing import ListingPass
from builtin_plugins.sources.services.opening import open_source
from builtin_plugins.sources.services.rehearsal import Rehearsal
from builtin_plugins.sources.services.rights.refreshing import read_rights
from builtin_plugins.sources.services.states import ACTIVE, RunState, SourceEnded, Trigger
from kernel.sdk import JobFailed, LongJob, Platform, Progress, Scope, Unavailable, Unit, utc_now

_LONGEST_WAIT: Final = 30.0
"""Seconds that a run waits in its place; for longer, it gives the place back."""
_MOST_WAITS: Final = 20


class SourceRunPayload(BaseModel):
    """The run."""

    run_id: str


async def run(platform: Platform, payload: SourceRunPayload, progress: Progress) -> str | None:
    """Bring the knowledge base in step with the source; returns the run's path."""
    for _ in range(_MOST_WAITS):
        pair = await platform.database.write(_take_up, platform, payload.run_id)
        if pair is None:
            return None
        source, record = pair
        try:
            await _attempt(platform, source, record, progress)
        except SourceEnded:
            await platform.database.write(end_run, record.id, "cancelled", None)
        except SourceThrottled as throttled:
            if throttled.seconds > _LONGEST_WAIT:
                await platform.database.write(_rest, record.id, throttled)
                return None
            progress.report(message="Waiting, as the source asked")
            await asyncio.sleep(throttled.seconds)
            continue
        except SourceUnreachable as fault:
            raise Unavailable(str(fault)) from None
        except SourceFault as fault:
            state: RunState = "credential_refused" if isinstance(fault, CredentialRefused) else "failed"
            await platform.database.write(end_run, record.id, state, str(fault))
            raise JobFailed(str(fault)) from None
        return f"/v1/rag/sources/{source.id}/runs"
    await platform.database.write(_rest, payload.run_id, SourceThrottled(_LONGEST_WAIT))
    return None


def _take_up(unit: Unit, platform: Platform, run_id: str) -> tuple[SourceRecord, RunRecord] | None:
    record: RunRecord | None = unit.session.get(RunRecord, run_id, with_for_update=True)
    if record is None or record.state not in ACTIVE:
        return None
    source: SourceRecord | None = unit.session.get(SourceRecord, record.source_id)
    if source is None or source.leaving is not None or not _has_base(platform, unit.session, source):
        end_run(unit, run_id, "cancelled", None)
        return None
    record.state, record.resume_at = "running", None
    unit.session.flush()
    return source, record


def _has_base(platform: Platform, session: Session, source: SourceRecord) -> bool:
    """Whether its knowledge base is there, rather than in the trash, where nothing is changed."""
    owned = platform.hooks.ask_now(
        rag.owns_knowledge_base,
        platform=platform,
        session=session,
        scope=Scope(None, everything=True),
        knowledge_base_id=source.knowledge_base_id,
    )
    return owned is not None


async def _attempt(
    platform: Platform,
    source: SourceRecord,
    record: RunRecord,
    progress: Progress,
) -> None:
    async with open_source(platform, source) as opened:
        if record.is_dry:
            plan = await Rehearsal(source).run(platform, opened)
            await platform.database.write(_note_plan, record.id, plan)
            return
        await _keep_in_step(platform, source, record, progress, opened)


async def _keep_in_step(
    platform: Platform, source: SourceRecord, record: RunRecord, progress: Progress, opened: DocumentSource
) -> None:
    if record.phase == "listing":
        await ListingPass(platform, source, record, progress).run(opened)
    current = await platform.database.read(lambda session: session.get(RunRecord, record.id))
    if current is None or current.state == "needs_confirmation":
        return
    if source.is_guarded:
        await read_rights(platform, source, opened, current.listing)
    await RunExecution(platform, source, current, progress).run(opened)
    await platform.database.write(_complete, record.id)


def _note_plan(unit: Unit, run_id: str, plan: dict[str, Any]) -> None:
    record = unit.session.get(RunRecord, run_id, with_for_update=True)
    if record is not None and record.state in ACTIVE:
        for name in ("found", "added", "changed", "moved", "gone", "skipped"):
            setattr(record, name, plan[name])
        record.plan = plan["paths"]
        record.state, record.finished_at = "done", utc_now()


def _complete(unit: Unit, run_id: str) -> None:
    """The next listing begins where this one ended, now that all of it is here."""
    record = unit.session.get(RunRecord, run_id, with_for_update=True)
    if record is None or record.state not in ACTIVE:
        return
    record.state, record.error, record.finished_at = "done", None, utc_now()
    source = unit.session.get(SourceRecord, record.source_id, with_for_update=True)
    if source is not None:
        source.cursor, source.problem = record.cursor, None
        record.cursor = None  # it may be large
        _follow(unit, source, record)


def _follow(unit: Unit, source: SourceRecord, record: RunRecord) -> None:
    """Begin another run if somebody has pushed since this one began."""
    if source.pushed_at is not None and source.pushed_at > record.started_at and source.leaving is None:
        start_run(unit, source, "push")


def end_run(unit: Unit, run_id: str, state: RunState, error: str | None) -> None:
    """Record how a run ended, unless it has ended already."""
    record = unit.session.get(RunRecord, run_id, with_for_update=True)
    if record is None or record.state not in ACTIVE:
        return
    record.state, record.error, record.finished_at = state, error, utc_now()
    source = unit.session.get(SourceRecord, record.source_id, with_for_update=True)
    if source is not None and error is not None and not record.is_dry:
        source.problem = error
        if state == "failed":
            unit.session.flush()
            _follow(unit, source, record)


def _rest(unit: Unit, run_id: str, throttled: SourceThrottled) -> None:
    record = unit.session.get(RunRecord, run_id, with_for_update=True)
    if record is not None and record.state in ACTIVE:
        record.state, record.error = "waiting", str(throttled)
        record.resume_at = unit.now() + timedelta(seconds=throttled.seconds)


def start_run(
    unit: Unit, source: SourceRecord, trigger: Trigger, *, dry: bool = False, by: int | None = None
) -> RunRecord:
    """Begin a run in this unit, which has locked the source; the one under way, if there is one.

    A dry run changes nothing, so that both kinds may be under way.
    """
    mine = RunRecord.source_id == source.id
    under_way = mine & RunRecord.state.in_(ACTIVE) & RunRecord.is_dry.is_(dry)
    active: RunRecord | None = unit.session.scalar(select(RunRecord).where(under_way))
    if active is not None:
        return active
    if not dry:
        asking = select(RunRecord).where(mine, RunRecord.state == "needs_confirmation")
        for earlier in unit.session.scalars(asking):
            earlier.state, earlier.finished_at = "superseded", utc_now()
    made = RunRecord(
        id=str(uuid.uuid4()),
        source_id=source.id,
        trigger=trigger,
        is_dry=dry,
        state="queued",
        phase="listing",
        started_at=utc_now(),
    )
    unit.session.add(made)
    unit.session.flush()
    queue_run(unit, source, made, by)
    return made


def forget_cursors(unit: Unit, source: SourceRecord) -> None:
    """After a change of the source: what runs under way have listed is no beginning for the next one."""
    mine = (RunRecord.source_id == source.id) & RunRecord.state.in_(ACTIVE)
    unit.session.execute(update(RunRecord).where(mine).values(cursor=None))


def queue_run(unit: Unit, source: SourceRecord, record: RunRecord, by: int | None = None) -> None:
    """Let a worker take a run up, for the first time or again."""
    record.state = "queued"
    payload = SourceRunPayload(run_id=record.id)
    record.job_id = unit.enqueue(RUN_SOURCE, payload, owner_id=by, subject=source.knowledge_base_id)


async def give_up(platform: Platform, payload: SourceRunPayload, reason: str) -> None:
    """Record that the job was given up; the next run starts afresh."""
    await platform.database.write(end_run, payload.run_id, "failed", reason)


async def cancelled(platform: Platform, payload: SourceRunPayload) -> None:
    """Record that the job was cancelled."""
    await platform.database.write(end_run, payload.run_id, "cancelled", None)


RUN_SOURCE = LongJob(
    "sources.run",
    SourceRunPayload,
    run,
    title="Keep a knowledge base in step with a source",
    on_give_up=give_up,
    on_cancel=cancelled,
    visible=rag.seen_bases,
    retries=6,
    lane="large",
)
