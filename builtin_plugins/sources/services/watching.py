"""Watching sources that say themselves when something has changed there.

Of the processes of a platform, one watches a source: whoever holds it, for a while, in the source's row. What
changed while nobody did is found by the run that each watch begins with. Schedules go on beside it.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.orm import Session

from builtin_plugins.sources.kinds import SOURCE_KINDS
from builtin_plugins.sources.models import SourceRecord
from builtin_plugins.sources.protocol import SourceFault, SourceSetup
from builtin_plugins.sources.services.credentials import read_credential
from builtin_plugins.sources.services.rights.refreshing import USUAL_SECONDS, begin_refresh, hold_source
from builtin_plugins.sources.services.running import start_run
from kernel.sdk import Platform, PlatformError, ResourceKey, Unit, lasting, utc_now

_LOOK_SECONDS: Final = 10.0
_HELD: Final = timedelta(seconds=45)
_AGAIN: Final = 60.0
"""Seconds after which a watch that has ended with a fault is tried again."""
_PAUSE, _LONGEST_PAUSE = 2.0, 30.0
"""Seconds between two runs because of changes: more and more, while changes go on and on."""


class SourceWatches:
    """The watches of this process."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._me = str(uuid.uuid4())
        self._tasks: dict[str, tuple[str, asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)  # a command of the terminal has ended by then
            await self.look()

    async def look(self) -> Sequence[str]:
        """Begin and end watches as the sources' rows say; returns the ids of those that are watched here."""
        kinds = [name for name, kind in self._platform.resource(SOURCE_KINDS).all.items() if kind.watch]
        if not kinds:
            return []
        rows: Sequence[SourceRecord] = ()
        are_there = await self._platform.database.read(_are_there, kinds)
        if are_there:
            rows = await self._platform.database.write(_hold, kinds, self._me)
        rows_by_id = {row.id: row for row in rows}
        for source_id, (state, task) in list(self._tasks.items()):
            if source_id not in rows_by_id or state != _watched_state(rows_by_id[source_id]):
                del self._tasks[source_id]
                await _end(task)
        for source_id, row in rows_by_id.items():
            if source_id not in self._tasks:
                work = partial(self._watch, row)
                task = lasting(f"changes at source {source_id}", work, pause=_AGAIN)
                self._tasks[source_id] = (_watched_state(row), task)
        return list(rows_by_id)

    async def close(self) -> None:
        """End all watches, and let another process have them at once."""
        tasks, self._tasks = self._tasks, {}
        for _, task in tasks.values():
            await _end(task)
        if tasks:
            await self._platform.database.write(_release, self._me)

    async def _watch(self, row: SourceRecord) -> None:
        while True:
            try:
                await self._follow(row)
                problem = "It stopped reporting changes"
            except (SourceFault, PlatformError) as fault:
                problem = str(fault)
            await self._platform.database.write(_note_problem, row.id, self._me, problem)
            await asyncio.sleep(_AGAIN)

    async def _follow(self, row: SourceRecord) -> None:
        """Until the source stops reporting changes. Raises SourceFault, PlatformError."""
        kind = self._platform.resource(SOURCE_KINDS).of(row.kind)
        if kind.watch is None:
            return
        secret = await read_credential(self._platform, row)
        settings = kind.settings.model_validate(row.settings)
        setup = SourceSetup(self._platform, row.id, settings, secret)
        pause, before = _PAUSE, time.monotonic()
        async with aclosing(kind.watch(setup)) as changes:
            async for _ in changes:
                is_quiet = time.monotonic() - before > 2 * pause
                pause = _PAUSE if is_quiet else min(2 * pause, _LONGEST_PAUSE)
                before = time.monotonic()
                await self._platform.database.write(_note_change, row.id, self._me)
                await asyncio.sleep(pause)


def _watched_state(row: SourceRecord) -> str:
    """What a watch depends on."""
    return json.dumps([row.kind, row.settings, row.account_id], sort_keys=True)


def _watchable(kinds: Sequence[str]) -> ColumnElement[bool]:
    """The condition for sources whose changes count at once: not those that run by hand alone."""
    follows = SourceRecord.schedule.is_not(None) | SourceRecord.is_guarded
    return SourceRecord.kind.in_(kinds) & SourceRecord.leaving.is_(None) & follows


def _are_there(session: Session, kinds: Sequence[str]) -> bool:
    return session.scalar(select(SourceRecord.id).where(_watchable(kinds)).limit(1)) is not None


def _hold(unit: Unit, kinds: Sequence[str], me: str) -> Sequence[SourceRecord]:
    """Those that are mine now: nobody else's."""
    now = unit.now()
    free = or_(SourceRecord.watcher.is_(None), SourceRecord.watcher == me, SourceRecord.watched_until < now)
    mine = select(SourceRecord).where(_watchable(kinds), free).order_by(SourceRecord.id)
    rows = unit.session.scalars(mine.with_for_update()).all()
    for row in rows:
        if row.watcher != me or row.watched_until is None or row.watched_until < now + _HELD / 2:
            row.watcher, row.watched_until = me, now + _HELD
    return rows


def _release(unit: Unit, me: str) -> None:
    for row in unit.session.scalars(select(SourceRecord).where(SourceRecord.watcher == me).with_for_update()):
        row.watcher, row.watched_until = None, None


def _held_by(unit: Unit, source_id: str, me: str) -> SourceRecord | None:
    row = hold_source(unit, source_id)
    return row if row is not None and row.watcher == me else None


def _note_problem(unit: Unit, source_id: str, me: str, problem: str) -> None:
    row = _held_by(unit, source_id, me)
    if row is not None:
        row.watch_problem = problem


def _note_change(unit: Unit, source_id: str, me: str) -> None:
    row = _held_by(unit, source_id, me)
    if row is None:
        return
    row.watch_problem = None
    if row.schedule is not None:
        row.pushed_at = utc_now()
        start_run(unit, row, "push")
    if row.is_guarded and not _is_being_read(row, unit.now()):
        begin_refresh(unit, row)


def _is_being_read(row: SourceRecord, now: datetime) -> bool:
    """Whether its permissions are being read: with a change every moment, no reading would ever end."""
    soon = now + timedelta(seconds=max(row.rights_seconds or 0, USUAL_SECONDS))
    due = row.rights_due_at
    return due is not None and due > now and (row.rights_pass is not None or due > soon)


def is_watched(row: SourceRecord) -> bool:
    """Whether changes there are noticed at once."""
    return row.watched_until is not None and row.watched_until > utc_now() and row.watch_problem is None


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


SOURCE_WATCHES: ResourceKey[SourceWatches] = ResourceKey("watches of sources")


@asynccontextmanager
async def open_watches(platform: Platform) -> AsyncIterator[SourceWatches]:
    """The resource `SOURCE_WATCHES`."""
    watches = SourceWatches(platform)
    task = lasting("watches of sources", watches.run)
    try:
        yield watches
    finally:
        await _end(task)
        await watches.close()
