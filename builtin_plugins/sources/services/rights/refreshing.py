"""Reading the permissions at a source: in each run, and on their own between runs. No content is read.

A later reading takes the place of one that is under way, so that what is stored last was also read last.
Those that can't be read for too long count no longer: then nobody may read the documents.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, cast

from pydantic import BaseModel
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from builtin_plugins.sources.models import ItemRecord, SourceRecord
from builtin_plugins.sources.protocol import (
    DocumentSource,
    GuardedSource,
    SourceDirectory,
    SourceFault,
    SourceGrant,
    SourceThrottled,
    SourceUnreachable,
)
from builtin_plugins.sources.services.opening import item_of, open_source
from builtin_plugins.sources.services.rights.directory import store_directory
from builtin_plugins.sources.services.rights.granting import change_readers, close_source, follow_accounts
from builtin_plugins.sources.services.rights.readers import pack
from builtin_plugins.sources.settings import SourcesSettings
from kernel.sdk import Job, JobFailed, NoPayload, Platform, Unit

_BATCH: Final = 500
_TRIES: Final = 5
USUAL_SECONDS: Final = 30
_LONGEST: Final = timedelta(minutes=10)
"""For how long a reading may take before another one begins."""


class RightsSuperseded(Exception):
    """Another reading of the permissions has begun since, or the source is being removed."""


class SourceRightsPayload(BaseModel):
    """The source whose permissions are to be read."""

    source_id: str


class RightsPass:
    """One reading of the permissions at a source. `listing` has said some of them itself."""

    def __init__(self, platform: Platform, source: SourceRecord, listing: str | None = None) -> None:
        self._platform = platform
        self._source_id = source.id
        self._listing = listing
        self._pass = str(uuid.uuid4())
        self._is_whole = True

    async def run(self, opened: GuardedSource) -> int:
        """Returns of how many items the readers have changed. Raises SourceFault, RightsSuperseded."""
        write = self._platform.database.write
        last_mark, began = await write(self._begin)
        mark = await opened.rights_mark()
        self._is_whole = mark is None or mark != last_mark
        if self._is_whole:
            await write(self._store, await opened.directory())
        changed, after = 0, ""
        while rows := await self._platform.database.read(self._some, after):
            after = rows[-1].id
            grants = await opened.grants([item_of(row) for row in rows])
            changed += await write(self._note, [row.id for row in rows], grants)
        await write(self._complete, mark, began)
        return changed

    def _begin(self, unit: Unit) -> tuple[str | None, datetime]:
        source = hold_source(unit, self._source_id)
        if source is None or not source.is_guarded:
            raise RightsSuperseded
        source.rights_pass, source.rights_due_at = self._pass, unit.now() + _LONGEST
        return source.rights_mark, unit.now()

    def _hold(self, unit: Unit) -> SourceRecord:
        source = hold_source(unit, self._source_id)
        if source is None or source.rights_pass != self._pass:
            raise RightsSuperseded
        return source

    def _store(self, unit: Unit, directory: SourceDirectory) -> None:
        """What is stored from now on is not what the mark stood for, even if the reading is cut off."""
        source = self._hold(unit)
        source.rights_mark = None
        follow_accounts(unit, self._platform, source, store_directory(unit, source, directory))

    def _some(self, session: Session, after: str) -> Sequence[ItemRecord]:
        mine = (ItemRecord.source_id == self._source_id) & (ItemRecord.id > after)
        if not self._is_whole:
            mine &= ItemRecord.readers.is_(None)
        elif self._listing is not None:
            mine &= or_(ItemRecord.granted_by.is_(None), ItemRecord.granted_by != self._listing)
        query = select(ItemRecord).where(mine).order_by(ItemRecord.id)
        return session.scalars(query.limit(_BATCH)).all()

    def _note(self, unit: Unit, ids: Sequence[str], grants: Mapping[str, SourceGrant]) -> int:
        source = self._hold(unit)
        query = select(ItemRecord).where(ItemRecord.id.in_(ids)).order_by(ItemRecord.id)
        rows = unit.session.scalars(query.with_for_update()).all()
        readers = {row.id: pack(grants.get(row.identity)) for row in rows}
        return change_readers(unit, self._platform, source, rows, readers)

    def _complete(self, unit: Unit, mark: str | None, began: datetime) -> None:
        """What a listing has said may be older than what was stored meanwhile: the next reading is whole."""
        source = self._hold(unit)
        source.rights_at, source.rights_problem, source.is_closed = began, None, False
        source.rights_mark = mark if self._listing is None else None
        source.rights_pass = None
        interval, took = timedelta(seconds=source.rights_seconds or USUAL_SECONDS), unit.now() - began
        source.rights_due_at = max(began + interval, unit.now() + took)  # at most half of the time is reading


def hold_source(unit: Unit, source_id: str) -> SourceRecord | None:
    """The source, locked; None once it is being removed."""
    source: SourceRecord | None = unit.session.get(
        SourceRecord, source_id, with_for_update=True, populate_existing=True
    )
    return None if source is None or source.leaving is not None else source


async def read_rights(
    platform: Platform, source: SourceRecord, opened: DocumentSource, listing: str | None
) -> None:
    """Within a run, before anything is fetched: what is new is read by nobody until its readers are known.

    Raises SourceFault.
    """
    for _ in range(_TRIES):
        try:
            await RightsPass(platform, source, listing).run(cast("GuardedSource", opened))
        except RightsSuperseded:
            continue
        return
    raise SourceUnreachable("Its permissions are being read again and again; nothing was fetched")


async def refresh(platform: Platform, payload: SourceRightsPayload) -> None:
    """Follow what has changed of accounts here and of permissions there."""
    source = await platform.database.write(_take_up, platform, payload.source_id)
    if source is None:
        return
    try:
        async with open_source(platform, source) as opened:
            await RightsPass(platform, source).run(cast("GuardedSource", opened))
    except RightsSuperseded:
        return
    except SourceFault as fault:
        await platform.database.write(_note_fault, source.id, fault)
        raise JobFailed(str(fault)) from None


def _take_up(unit: Unit, platform: Platform, source_id: str) -> SourceRecord | None:
    source = hold_source(unit, source_id)
    if source is None or not source.is_guarded:
        return None
    follow_accounts(unit, platform, source)
    hours = platform.settings_of(SourcesSettings).sources_rights_hours
    oldest = unit.now() - timedelta(hours=hours)
    if source.rights_at is not None and source.rights_at < oldest and not source.is_closed:
        close_source(unit, platform, source)
    return source


def _note_fault(unit: Unit, source_id: str, fault: SourceFault) -> None:
    """What was read before counts on, for a while."""
    source = hold_source(unit, source_id)
    if source is None:
        return
    source.rights_problem = str(fault)
    seconds = float(source.rights_seconds or USUAL_SECONDS)
    if isinstance(fault, SourceThrottled):
        seconds = max(seconds, fault.seconds)
    source.rights_due_at = unit.now() + timedelta(seconds=seconds)


def begin_refreshes(unit: Unit) -> None:
    """Let a worker read the permissions of each source where that is due."""
    now = unit.now()
    due = SourceRecord.is_guarded & (SourceRecord.rights_due_at <= now) & SourceRecord.leaving.is_(None)
    for source in unit.session.scalars(
        select(SourceRecord).where(due).order_by(SourceRecord.id).with_for_update()
    ):
        begin_refresh(unit, source)


def begin_refresh(unit: Unit, source: SourceRecord) -> None:
    """The same for one source, now."""
    source.rights_due_at = unit.now() + _LONGEST
    unit.enqueue(REFRESH_RIGHTS, SourceRightsPayload(source_id=source.id))


async def follow_all(platform: Platform, _payload: NoPayload) -> None:
    """After a change of accounts: match the people and groups at each source with them again."""
    ids = await platform.database.read(_guarded_ids)
    for source_id in ids:
        await platform.database.write(_follow, platform, source_id)


def _guarded_ids(session: Session) -> Sequence[str]:
    mine = select(SourceRecord.id).where(SourceRecord.is_guarded).order_by(SourceRecord.id)
    return session.scalars(mine).all()


def _follow(unit: Unit, platform: Platform, source_id: str) -> None:
    source = hold_source(unit, source_id)
    if source is not None and source.is_guarded:
        follow_accounts(unit, platform, source)


def note_account(unit: Unit) -> None:
    """An account changes in this unit."""
    if unit.session.scalar(select(SourceRecord.id).where(SourceRecord.is_guarded).limit(1)) is not None:
        unit.enqueue(FOLLOW_ACCOUNTS, NoPayload())


REFRESH_RIGHTS = Job("sources.rights", SourceRightsPayload, refresh, lane="quick", retries=0)
FOLLOW_ACCOUNTS = Job("sources.accounts", NoPayload, follow_all, lane="quick")
