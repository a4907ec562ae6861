"""Dropped collections leave the database bit by bit, in whichever process continues with it."""

from __future__ import annotations

import asyncio

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.vectors.api import Point, Query
from builtin_plugins.vectors.models import CollectionRecord, PointRecord, TombstoneRecord
from builtin_plugins.vectors.store import SqlVectorStore
from kernel.db.engine import Database, Unit
from tests.fakes.statements import statements

MANY = 4500  # rows of more than two transactions


VECTOR = np.eye(1, 8, dtype=np.float32)[0]


async def fill(database: Database, store: SqlVectorStore, name: str, count: int, group: str = "g") -> None:
    def write(unit: Unit) -> None:
        store.ensure(unit, name, 8, "e")
        points = [Point(f"{group}-{n}", group, n, "zebra", VECTOR) for n in range(count)]
        store.stage(unit, name, points)
        store.publish(unit, name, group)

    await database.write(write)


def count_rows(session: Session) -> list[int]:
    """Collections, points and tombstones in the database."""
    tables = (CollectionRecord, PointRecord, TombstoneRecord)
    return [session.scalar(select(func.count()).select_from(table)) or 0 for table in tables]


async def test_drop(database: Database) -> None:
    """Gone for everybody with the commit, made again at once, and in the end off the disk."""
    store = SqlVectorStore(database)
    await fill(database, store, "c", MANY)
    await fill(database, store, "kept", 3)
    await database.write(store.remove_group, "kept", "nobody")
    await database.write(store.drop, "c")
    assert await store.count("c") == 0 == await store.staged("c", "g")
    assert await store.search("c", Query(VECTOR, 5, text="zebra")) == []
    await fill(database, store, "c", 2, "new")
    await store.settled()
    assert len(await store.search("c", Query(VECTOR, 50, text="zebra"))) == 2
    assert await database.read(count_rows) == [2, 5, 0]
    await store.close()


async def test_cost_of_the_commit(database: Database) -> None:
    store, sent = SqlVectorStore(database), []

    def drop(unit: Unit) -> None:
        with statements() as seen:
            store.drop(unit, "c")
            sent.append(len(seen))

    for count in (1, MANY):
        await fill(database, store, "c", count)
        await database.write(drop)
        await store.settled()
    assert sent[0] == sent[1]
    await store.close()


async def test_ended_in_the_middle(database: Database) -> None:
    """A process that ended before it had removed all leaves the rest to the next that starts."""
    ended = SqlVectorStore(database)
    await fill(database, ended, "c", MANY)
    await database.write(ended.drop, "c")
    await ended.close()
    assert (await database.read(count_rows))[1] > 0
    later = SqlVectorStore(database)
    assert await later.count("c") == 0
    await later.start()
    await later.settled()
    assert await database.read(count_rows) == [0, 0, 0]
    await later.close()


async def test_dropped_at_the_same_time(database: Database) -> None:
    stores = SqlVectorStore(database), SqlVectorStore(database)
    for number in range(8):
        await fill(database, stores[0], f"c{number}", 500)
    await asyncio.gather(*(database.write(stores[n % 2].drop, f"c{n}") for n in range(8)))
    for store in stores:
        await store.settled()
    assert await database.read(count_rows) == [0, 0, 0]
    for store in stores:
        await store.close()
