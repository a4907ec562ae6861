"""Brings the engine to the state of the rows, in steps that may end at any moment.

A step tells the engine to what version it leads, writes and deletes points there, and says that it is done.
What the engine says is believed only if this database has given the versions the same marks: after a restore
of either, the engine is filled again from the rows.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, tuple_
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from builtin_plugins.milvus.engine import (
    COLLECTION,
    GROUP,
    LABEL,
    SAMPLE,
    SAMPLES,
    VECTOR,
    WEIGHTS,
    ContentMissing,
    EngineAway,
    MilvusEngine,
)
from builtin_plugins.milvus.positions import (
    HIGHEST,
    EngineState,
    Position,
    count_published,
    forget_all_marks,
    known_position,
    lacking,
    marks_of,
    put_mark,
    searched_collections,
)
from builtin_plugins.milvus.turns import turn
from builtin_plugins.milvus.weights import FORM, weights_of
from builtin_plugins.vectors.api import (
    DROPPED,
    CollectionRecord,
    PointRecord,
    TombstoneRecord,
    term_reader,
    text_in_language,
    text_software,
)
from kernel.sdk import Database, Unavailable

if TYPE_CHECKING:
    from builtin_plugins.vectors.api import TermReader

log = logging.getLogger("platform.milvus")

_STEP = 1_000  # points
_WAITED_FOR = 3_000  # points that a search waits for
_INTERVAL, _COMPACT_INTERVAL = 30.0, 3600.0  # seconds


class EngineBehind(Unavailable):
    """The engine is being filled, and a search would miss too much."""

    code = "search_engine_filling"

    def __init__(self, missing: int) -> None:
        super().__init__(f"The search engine is being filled: at least {missing} passages are missing so far")


@dataclass(frozen=True)
class Changes:
    """What a step brings: a snapshot of the collection, and the next deletions and rows."""

    record: CollectionRecord
    mark: str | None
    gone: Sequence[int]
    rows: Sequence[Any]


class Following:
    """Fills the engine, for searches that wait for it and in the background."""

    def __init__(self, database: Database, engine: MilvusEngine) -> None:
        self._database = database
        self.engine = engine
        self._change = asyncio.Event()
        self._turns: dict[int, asyncio.Lock] = {}
        self._has_removed = True  # perhaps, before this process was started
        self._compacted = time.monotonic()

    @cached_property
    def reader(self) -> TermReader:
        """What reads texts as terms; loaded in a thread."""
        return term_reader()

    @cached_property
    def form(self) -> str:
        """All that the engine's content depends on, besides the rows."""
        import hashlib

        return hashlib.sha256(f"{FORM}, {text_software()}".encode()).hexdigest()[:32]

    def wake(self) -> None:
        """Follow what was just committed."""
        self._change.set()

    async def reach(self, record: CollectionRecord) -> Position:
        """The engine's position, at least at the version of `record`. Raises EngineAway, EngineBehind."""
        position = await self._position(record.id, exact=False)
        if position is not None and position.is_at(record.version):
            return position
        async with self._turns.setdefault(record.id, asyncio.Lock()), turn(self._database, record.id):
            position = await self._position(record.id, exact=True)
            missing = await self._database.read(_missing, record.id, position)
            if missing > _WAITED_FOR:
                self.wake()
                raise EngineBehind(missing)
            while position is None or not position.is_at(record.version):
                position = await self._step(record.id, position)
                if position is None:  # dropped in the meantime
                    raise EngineBehind(0)
        return position

    async def total(self) -> int:
        """How many points the engine should have."""
        return await self._database.read(count_published)

    async def clear(self) -> None:
        """Remove all that the engine has of this database."""
        await self.engine.run(self.engine.drop_all)
        await self._database.write(forget_all_marks)

    async def forget(self, collection_id: int) -> None:
        """Remove what the engine has of a collection."""
        async with turn(self._database, collection_id):
            await self.engine.run(self.engine.clear, collection_id)

    async def fill(self, progress: Callable[[int], None] = lambda _: None) -> None:
        """Bring the engine to the present state; `progress` gets the number of points of each step.

        Raises EngineAway.
        """
        form = await asyncio.to_thread(lambda: self.form)
        states = await self.engine.run(self.engine.states)  # first: a state is younger than its collection
        versions = await self._database.read(searched_collections)
        for collection_id in states.keys() - versions.keys():
            await self.forget(collection_id)
        for collection_id in await self._database.read(lacking, states, form):
            while await self._fill_some(collection_id, versions.get(collection_id, 0)):
                progress(_STEP)

    async def _fill_some(self, collection_id: int, version: int) -> bool:
        """Take a step towards a version; returns whether there was one to take."""
        async with turn(self._database, collection_id):
            position = await self._position(collection_id, exact=True)
            if position is not None and position.is_at(version):
                return False
            return await self._step(collection_id, position) is not None

    async def waiting(self) -> int:
        """Of how many collections the engine lacks so much that a search does not wait. Raises EngineAway."""
        form = await asyncio.to_thread(lambda: self.form)
        states = await self.engine.run(self.engine.states)
        return await self._database.read(_waiting, states, form)

    async def run(self) -> None:
        """Follow changes as they come, for ever."""
        while True:
            self._change.clear()
            try:
                await self.fill()
            except EngineAway:
                pass  # it has been logged; `/health` says so
            except (SQLAlchemyError, OSError, ContentMissing) as error:
                log.warning("the search engine can't be filled at the moment: %s", type(error).__name__)
            else:
                await self._compact()
            with suppress(TimeoutError):
                async with asyncio.timeout(_INTERVAL):
                    await self._change.wait()

    async def _compact(self) -> None:
        """Have deleted points removed from the engine's files; at most once an hour."""
        if not self._has_removed or time.monotonic() - self._compacted < _COMPACT_INTERVAL:
            return
        self._has_removed, self._compacted = False, time.monotonic()
        with suppress(EngineAway, ContentMissing):
            await self.engine.run(self.engine.compact)

    async def _position(self, collection_id: int, *, exact: bool) -> Position | None:
        form = await asyncio.to_thread(lambda: self.form)
        state = await self.engine.run(lambda: self.engine.state(collection_id, exact=exact))
        return await self._database.read(known_position, collection_id, state, form)

    async def _step(self, collection_id: int, base: Position | None) -> Position | None:
        """Bring the engine one step further; the caller has the turn. None: there is no such collection."""
        if base is None:
            log.info("the search engine is filled with collection %d", collection_id)
            await self.engine.run(self.engine.clear, collection_id)
        changes = await self._database.snapshot(_changes, collection_id, base)
        if changes is not None and changes.mark is None:  # another store wrote the version
            await self._database.write(put_mark, changes.record.name)
            changes = await self._database.snapshot(_changes, collection_id, base)
        if changes is None or changes.mark is None:
            return None
        return await self.engine.run(self._carry_out, changes, changes.mark, base)

    def _carry_out(self, changes: Changes, mark: str, base: Position | None) -> Position:
        engine, record = self.engine, changes.record
        rows, languages = self._prepared(changes)
        coming = _after(changes, mark, base, self.form, languages)
        engine.put_state(record.id, EngineState(reached=base, writing=coming))
        engine.put(record.dimension, ())
        if base is not None:  # otherwise the engine has nothing of it
            engine.remove(record.dimension, changes.gone)
        self._has_removed |= bool(changes.gone)
        engine.put(record.dimension, rows)
        if len(rows) == _STEP or len(changes.gone) > _STEP:
            engine.settle(record.dimension)
        reached = coming.model_copy(update={"moment": time.time()})
        engine.put_state(record.id, EngineState(reached=reached))
        return reached

    def _prepared(self, changes: Changes) -> tuple[list[dict[str, Any]], set[str]]:
        """The rows as the engine takes them, and the languages of their texts."""
        import numpy as np

        rows, languages = [], set()
        for row in changes.rows:
            terms, language = self.reader.of_text(text_in_language(row.text, row.payload))
            languages |= {language} if language else set()
            point = {
                LABEL: row.label,
                COLLECTION: changes.record.id,
                GROUP: row.group_key,
                SAMPLE: row.label % SAMPLES,
                WEIGHTS: weights_of(terms),
            }
            if changes.record.dimension:
                point[VECTOR] = np.frombuffer(row.vector, np.float16).astype(np.float32).tolist()
            rows.append(point)
        return rows, languages


def _after_position(position: Position | None) -> Any:
    place = (0, HIGHEST) if position is None else (position.at_version, position.at_label)
    return tuple_(PointRecord.version, PointRecord.label) > tuple_(*place)


def _missing(session: Session, collection_id: int, position: Position | None) -> int:
    """How many points the engine lacks; not counted on above what a search waits for."""
    lacked = (
        select(PointRecord.label)
        .where(PointRecord.collection_id == collection_id, _after_position(position))
        .limit(_WAITED_FOR + 1)
    )
    return int(session.scalar(select(func.count()).select_from(lacked.subquery())) or 0)


def _waiting(session: Session, states: Mapping[int, EngineState], form: str) -> int:
    behind = {
        one: known_position(session, one, states.get(one), form) for one in lacking(session, states, form)
    }
    return sum(_missing(session, one, position) > _WAITED_FOR for one, position in behind.items())


def _changes(session: Session, collection_id: int, base: Position | None) -> Changes | None:
    record = session.get(CollectionRecord, collection_id)
    if record is None or record.name.startswith(DROPPED):
        return None
    gone: Sequence[int] = ()
    if base is not None:
        gone = session.scalars(
            select(TombstoneRecord.label).where(
                TombstoneRecord.collection_id == collection_id, TombstoneRecord.version > base.version
            )
        ).all()
    query = (
        select(
            PointRecord.label,
            PointRecord.version,
            PointRecord.group_key,
            PointRecord.text,
            PointRecord.payload,
            PointRecord.vector,
        )
        .where(
            PointRecord.collection_id == collection_id,
            PointRecord.version <= record.version,
            _after_position(base),
        )
        .order_by(PointRecord.version, PointRecord.label)
        .limit(_STEP)
    )
    mark = marks_of(session, collection_id, [record.version]).get(record.version)
    changes = Changes(record, mark, gone, session.execute(query).all())
    session.expunge_all()
    return changes


def _after(changes: Changes, mark: str, base: Position | None, form: str, languages: set[str]) -> Position:
    """The position after the changes."""
    record, rows = changes.record, changes.rows
    last = (record.version, HIGHEST) if len(rows) < _STEP else (rows[-1].version, rows[-1].label)
    return Position(
        version=record.version,
        mark=mark,
        name=record.name,
        dimension=record.dimension,
        form=form,
        at_version=last[0],
        at_label=last[1],
        languages=sorted(languages.union(() if base is None else base.languages)),
        moment=time.time(),
    )
