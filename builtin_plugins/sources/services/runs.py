"""Runs and items of a source: begin, confirm, list; where a document comes from; what the clock triggers."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from builtin_plugins.sources.access import source_sight_of
from builtin_plugins.sources.errors import NothingToConfirm, OriginNotFound
from builtin_plugins.sources.models import ItemRecord, RunRecord, SourceRecord
from builtin_plugins.sources.schedules import next_run
from builtin_plugins.sources.schemas import OriginOut, SourceItemOut, SourceItemQuery, SourceRunOut
from builtin_plugins.sources.services.removal import REMOVE_SOURCE, SourceRemovalPayload
from builtin_plugins.sources.services.rights.refreshing import begin_refreshes
from builtin_plugins.sources.services.running import queue_run, start_run
from builtin_plugins.sources.services.sources import run_out, runs_out
from builtin_plugins.sources.services.states import ACTIVE
from builtin_plugins.sources.settings import SourcesSettings
from kernel.sdk import Caller, Job, NoPayload, Page, PageQuery, Platform, Unit, audit, utc_now


async def begin(caller: Caller, source_id: str, *, dry: bool) -> SourceRunOut:
    """Begin a run, or show the one under way. Raises SourceNotFound, NotSourceOwner, SourceLeaving."""
    sight = await source_sight_of(caller)

    def write(unit: Unit) -> SourceRunOut:
        row = sight.source(unit.session, source_id, to_change=True)
        return run_out(start_run(unit, row, "hand", dry=dry, by=caller.id))

    return await caller.platform.database.write(write)


async def confirm(caller: Caller, source_id: str) -> SourceRunOut:
    """Confirm a waiting run: it reads the listing again and deletes no more than was confirmed.

    Raises SourceNotFound, NotSourceOwner, SourceLeaving, NothingToConfirm.
    """
    sight = await source_sight_of(caller)

    def write(unit: Unit) -> SourceRunOut:
        row = sight.source(unit.session, source_id, to_change=True)
        asking = (RunRecord.source_id == row.id) & (RunRecord.state == "needs_confirmation")
        run = unit.session.scalar(select(RunRecord).where(asking).with_for_update())
        if run is None:
            raise NothingToConfirm()
        run.confirmed, run.phase, run.started_at = run.gone, "listing", utc_now()
        queue_run(unit, row, run, caller.id)
        after = {"missing": run.gone, "run_id": run.id}
        audit(unit, "source.confirmed", "source", row.id, after=after, origin=caller.origin)
        return run_out(run)

    return await caller.platform.database.write(write)


async def list_runs(caller: Caller, source_id: str, query: PageQuery) -> Page[SourceRunOut]:
    """The runs of a source, newest first. Raises SourceNotFound, NotSourceOwner."""
    sight = await source_sight_of(caller)

    def read(session: Session) -> Page[SourceRunOut]:
        mine = RunRecord.source_id == sight.source(session, source_id).id
        ordered = select(RunRecord).where(mine).order_by(RunRecord.started_at.desc(), RunRecord.id)
        rows = session.scalars(ordered.limit(query.limit).offset(query.offset)).all()
        total = session.scalar(select(func.count()).select_from(RunRecord).where(mine)) or 0
        return Page(items=runs_out(rows), total=total, limit=query.limit, offset=query.offset)

    return await caller.platform.database.read(read)


async def list_items(caller: Caller, source_id: str, query: SourceItemQuery) -> Page[SourceItemOut]:
    """The items of a source by path. Raises SourceNotFound, NotSourceOwner."""
    sight = await source_sight_of(caller)

    def read(session: Session) -> Page[SourceItemOut]:
        source = sight.source(session, source_id)
        mine = ItemRecord.source_id == source.id
        if source.is_guarded:  # also for the owner: the names of what one may not read
            mine &= ItemRecord.document_id.in_(sight.documents)
        if query.state is not None:
            mine &= ItemRecord.state == query.state
        ordered = select(ItemRecord).where(mine).order_by(ItemRecord.path, ItemRecord.id)
        rows = session.scalars(ordered.limit(query.limit).offset(query.offset)).all()
        total = session.scalar(select(func.count()).select_from(ItemRecord).where(mine)) or 0
        items = [
            SourceItemOut.model_validate({name: getattr(row, name) for name in SourceItemOut.model_fields})
            for row in rows
        ]
        return Page(items=items, total=total, limit=query.limit, offset=query.offset)

    return await caller.platform.database.read(read)


async def origin_of(caller: Caller, base: str, document_id: str) -> OriginOut:
    """Where a document comes from, for everybody who may read it.

    Raises SourcedBaseNotFound, OriginNotFound.
    """
    sight = await source_sight_of(caller)

    def read(session: Session) -> OriginOut:
        sight.require_visible(session, base)
        of = (ItemRecord.document_id == document_id) & (SourceRecord.knowledge_base_id == base)
        query = select(ItemRecord, SourceRecord).join(SourceRecord, SourceRecord.id == ItemRecord.source_id)
        row = session.execute(query.where(of, ItemRecord.document_id.in_(sight.documents))).first()
        if row is None:
            raise OriginNotFound()
        item, source = row
        return OriginOut(
            source=source.name,
            source_id=source.id,
            kind=source.kind,
            path=item.path,
            link=item.link,
            version=item.etag,
            modified_at=item.modified_at,
            details=item.details,
        )

    return await caller.platform.database.read(read)


async def tick(platform: Platform, _payload: NoPayload) -> None:
    """Once a minute: begin what is due, continue the runs that waited, forget old ones."""
    await platform.database.write(_begin_due, platform)


def _begin_due(unit: Unit, platform: Platform) -> None:
    now = unit.now()
    begin_refreshes(unit)
    due = select(SourceRecord).where(SourceRecord.next_at <= now)
    for row in unit.session.scalars(due.order_by(SourceRecord.id).with_for_update()):
        if row.leaving is not None:
            row.next_at = None
            unit.enqueue(REMOVE_SOURCE, SourceRemovalPayload(source_id=row.id))
            continue
        row.next_at = next_run(platform, row.schedule, now)
        start_run(unit, row, "schedule")
    rested = select(RunRecord).where(RunRecord.state == "waiting", RunRecord.resume_at <= now)
    for run in unit.session.scalars(rested.order_by(RunRecord.id).with_for_update()):
        source = unit.session.get(SourceRecord, run.source_id)
        if source is not None:
            queue_run(unit, source, run)
    old = now - timedelta(days=platform.settings_of(SourcesSettings).sources_run_days)
    ended = RunRecord.state.not_in(ACTIVE) & (RunRecord.finished_at < old)
    unit.session.execute(delete(RunRecord).where(ended))


TICK = Job("sources.tick", NoPayload, tick, schedule="* * * * *", lane="quick")
