"""The first half of a run: list the source, and note what is new, has changed, was moved, or is gone.

A pass that is interrupted starts over: only what a whole pass has seen counts as there. Nothing is deleted
because of a listing that was cut off, nor, without a person's word, if much is missing.
"""

from __future__ import annotations

import uuid
from collections import defaultdict, deque
from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.orm import Session

from builtin_plugins.sources.filters import SourceFilters, media_type_of
from builtin_plugins.sources.models import ItemRecord, RunRecord, SourceRecord
from builtin_plugins.sources.protocol import (
    DocumentSource,
    GoneItem,
    ListingEnd,
    ListingIncomplete,
    SourceItem,
    SourceMisplaced,
)
from builtin_plugins.sources.services.rights.granting import change_readers
from builtin_plugins.sources.services.rights.readers import pack
from builtin_plugins.sources.services.states import SourceEnded
from builtin_plugins.sources.services.texts import brief, digest_of, storable
from builtin_plugins.sources.settings import SourcesSettings
from kernel.sdk import Platform, Progress, Unit
from kernel.sdk.http import clean_name

_BATCH: Final = 200
_LONGEST_PATH: Final = 1000
_MOVED: Final = (
    "digest",
    "identity",
    "path",
    "name",
    "listed_etag",
    "modified_at",
    "link",
    "details",
    "granted_by",
)


def gone_items(run: RunRecord) -> ColumnElement[bool]:
    """The condition for items that the run's listing found to be gone, or that a filter now leaves out."""
    mine = ItemRecord.source_id == run.source_id
    if run.is_partial:
        return mine & ItemRecord.is_gone
    unlisted = or_(ItemRecord.listed_by.is_(None), ItemRecord.listed_by != run.listing)
    return mine & or_(ItemRecord.is_gone, unlisted)


class ListingPass:
    """One listing of a source for a run."""

    def __init__(self, platform: Platform, source: SourceRecord, run: RunRecord, progress: Progress) -> None:
        self._platform = platform
        self._source = source
        self._run = run
        self._progress = progress
        self._pass = str(uuid.uuid4())
        self._filters = SourceFilters.model_validate(source.filters)
        self._settings = platform.settings_of(SourcesSettings)

    async def run(self, opened: DocumentSource) -> None:
        """List everything, then decide what goes. Raises SourceFault, SourceEnded."""
        await self._platform.database.write(self._begin)
        end, batch = None, list[SourceItem | GoneItem]()
        async with aclosing(opened.documents(self._source.cursor)) as listing:
            async for entry in listing:
                if isinstance(entry, ListingEnd):
                    end = entry
                    break
                batch.append(entry)
                if len(batch) == _BATCH:
                    await self._note(batch)
                    batch.clear()
        if end is None:
            raise ListingIncomplete("The listing was cut off before its end; nothing was deleted")
        await self._note(batch)
        await self._platform.database.write(self._finish, end)

    def _begin(self, unit: Unit) -> None:
        run = hold_run(unit, self._run.id)
        run.listing, run.phase, run.found, run.moved = self._pass, "listing", 0, 0
        mine = ItemRecord.source_id == self._source.id
        unit.session.execute(update(ItemRecord).where(mine, ItemRecord.is_gone).values(is_gone=False))
        again = update(ItemRecord).where(mine, ItemRecord.state == "failed")
        unit.session.execute(again.values(state="waiting", reason=None))

    async def _note(self, batch: Sequence[SourceItem | GoneItem]) -> None:
        count = await self._platform.database.write(self._write, batch)
        self._progress.report(count, unit="items", message="Listing")

    def _write(self, unit: Unit, batch: Sequence[SourceItem | GoneItem]) -> int:
        run, now = hold_run(unit, self._run.id), unit.now()
        granted, guarded_rows = dict[str, str](), list[ItemRecord]()
        listed = {digest_of(one.identity): one for one in batch}
        mine = (ItemRecord.source_id == self._source.id) & ItemRecord.digest.in_(listed)
        rows = {row.digest: row for row in unit.session.scalars(select(ItemRecord).where(mine))}
        for digest, item in listed.items():
            row = rows.get(digest)
            if isinstance(item, GoneItem):
                if row is not None:
                    row.is_gone, row.listed_by = True, None
                continue
            if row is None:
                row = ItemRecord(
                    id=str(uuid.uuid4()), source_id=run.source_id, digest=digest, state="waiting", path=""
                )
                unit.session.add(row)
            run.found += row.listed_by != self._pass
            if row.document_id and row.path != storable(item.path)[:_LONGEST_PATH]:
                run.moved += 1
                row.stored_name = ""  # so that it is renamed and described again
            describe(row, item)
            row.listed_by = self._pass
            if item.grant is not None and self._source.is_guarded:
                granted[row.id], row.granted_by = pack(item.grant), self._pass
                guarded_rows.append(row)
            self._judge(row, self._filters.refusal(item, now) or item.unavailable)
        if guarded_rows:
            unit.session.flush()
            change_readers(unit, self._platform, self._source, guarded_rows, granted)
        if run.found > self._settings.sources_items:
            most = self._settings.sources_items
            raise SourceMisplaced(f"There are more than {most} items; narrow the source down")
        return int(run.found)

    @staticmethod
    def _judge(row: ItemRecord, refusal: str | None) -> None:
        if refusal is None and len(row.identity) > _LONGEST_PATH * 4:
            refusal = "its identity is too long"
        if refusal is not None:
            row.state, row.reason, row.etag = "skipped", refusal[:500], None
            row.is_gone = row.document_id is not None
        elif row.etag != row.listed_etag:
            row.state, row.reason, row.is_gone = "waiting", None, False
        else:
            row.is_gone = False

    def _finish(self, unit: Unit, end: ListingEnd) -> None:
        run = hold_run(unit, self._run.id)
        run.is_partial, run.cursor = end.only_changes, None
        current = unit.session.get(SourceRecord, run.source_id)
        listed = (self._source.settings, self._source.filters)
        if current is not None and (current.settings, current.filters) == listed:
            run.cursor = end.cursor
        unit.session.flush()
        self._pair_moved(unit, run)
        out = (ItemRecord.listed_by == self._pass) & (ItemRecord.state == "skipped")
        run.skipped = unit.session.scalar(select(func.count()).select_from(ItemRecord).where(out)) or 0
        document_count, gone = self._count(unit.session, run)
        few, share = self._settings.sources_missing_few, self._settings.sources_missing_percent
        if run.found == 0 and not end.only_changes:
            few = 0  # an empty folder is what a disk that is not connected leaves
        if gone > max(few, run.confirmed) and gone * 100 > share * document_count:
            run.state, run.gone = "needs_confirmation", gone
        else:
            run.phase, run.gone = "applying", 0

    @staticmethod
    def _count(session: Session, run: RunRecord) -> tuple[int, int]:
        """How many items have documents, and how many of these are gone."""
        stored = (ItemRecord.source_id == run.source_id) & ItemRecord.document_id.is_not(None)
        document_count = session.scalar(select(func.count()).select_from(ItemRecord).where(stored)) or 0
        missing = select(func.count()).select_from(ItemRecord).where(stored, gone_items(run))
        return document_count, session.scalar(missing) or 0

    def _pair_moved(self, unit: Unit, run: RunRecord) -> None:
        """Let new items that have the content of gone ones take their documents: they were moved."""
        session = unit.session
        keys = select(ItemRecord.fingerprint, ItemRecord.id).order_by(ItemRecord.id)
        keys = keys.where(ItemRecord.source_id == run.source_id, ItemRecord.fingerprint.is_not(None))
        is_new = ItemRecord.listed_by == self._pass
        is_new &= (ItemRecord.state == "waiting") & ItemRecord.etag.is_(None)
        fresh = defaultdict[str | None, deque[str]](deque)
        for key, item_id in session.execute(keys.where(is_new)):
            fresh[key].append(item_id)
        # A gone item that a filter leaves out is listed: it was not moved.
        unlisted = or_(ItemRecord.listed_by.is_(None), ItemRecord.listed_by != self._pass)
        had = gone_items(run) & unlisted & ItemRecord.document_id.is_not(None)
        for key, item_id in session.execute(keys.where(had)).all() if fresh else ():
            if fresh[key]:
                old, new = (session.get_one(ItemRecord, one) for one in (item_id, fresh[key].popleft()))
                session.delete(new)
                session.flush()
                self._move(unit, old, new)
                run.moved += 1
        session.flush()

    def _move(self, unit: Unit, old: ItemRecord, fresh: ItemRecord) -> None:
        for name in _MOVED:
            setattr(old, name, getattr(fresh, name))
        old.etag, old.state, old.reason = fresh.listed_etag, "stored", None
        old.listed_by, old.is_gone, old.stored_name = self._pass, False, ""
        if self._source.is_guarded:
            change_readers(unit, self._platform, self._source, [old], {old.id: fresh.readers or pack(None)})


def describe(row: ItemRecord, item: SourceItem) -> None:
    """Write what a listing says about an item into its row."""
    row.identity, row.path = storable(item.identity), storable(item.path)[:_LONGEST_PATH]
    row.name = clean_name(storable(item.name))
    row.listed_etag, row.fingerprint = brief(item.etag) or "", brief(item.fingerprint)
    row.size_bytes, row.modified_at, row.link = item.size, item.modified, item.link and storable(item.link)
    row.media_type = brief(media_type_of(item))
    row.details = {storable(name): storable(value) for name, value in item.details.items()}


def hold_run(unit: Unit, run_id: str) -> RunRecord:
    """The run, locked. Raises SourceEnded once it or its source is to go on no longer."""
    run: RunRecord | None = unit.session.get(RunRecord, run_id, with_for_update=True, populate_existing=True)
    source = None if run is None else unit.session.get(SourceRecord, run.source_id, populate_existing=True)
    if run is None or source is None or source.leaving is not None or run.state != "running":
        raise SourceEnded
    return run
