"""Indexes follow the rows: exact under concurrency and cancellation, and looked after in the background."""

from __future__ import annotations

import asyncio
import random

import numpy as np
import pytest
from sqlalchemy.orm import Session

from builtin_plugins.vectors.api import Point, Query
from builtin_plugins.vectors.store import SqlVectorStore
from builtin_plugins.vectors.text import TextIndex
from kernel.db.engine import Database, Unit

DIMENSION = 8


def cloud(count: int, group: str, seed: int = 0, text: str = "zebra") -> list[Point]:
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSION))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = enumerate(vectors.astype(np.float32))
    return [Point(f"{group}-{number}", group, number, f"{text} {number}", row) for number, row in rows]


async def fill(database: Database, store: SqlVectorStore, *groups: list[Point], gone: str = "") -> None:
    def write(unit: Unit) -> None:
        store.ensure(unit, "c", DIMENSION, "e")
        if gone:
            store.remove_group(unit, "c", gone)
        for points in groups:
            store.stage(unit, "c", points)
            store.publish(unit, "c", points[0].group)

    await database.write(write)


def question(seed: int = 0) -> np.ndarray:
    return cloud(1, "q", seed)[0].vector


@pytest.mark.parametrize("words", [None, "zebra"])
async def test_every_search_sees_one_state(database: Database, words: str | None) -> None:
    """While one commit after another replaces a group, each answer is one whole generation."""
    store = SqlVectorStore(database)
    await fill(database, store, cloud(40, "g0"))
    writing = True

    async def write() -> None:
        nonlocal writing
        for number in range(1, 25):
            await fill(database, store, cloud(40, f"g{number}", number), gone=f"g{number - 1}")
        writing = False

    async def search(seed: int) -> None:
        last = -1
        while writing:
            hits = await store.search("c", Query(question(seed), 40, text=words))
            (group,) = {hit.point.group for hit in hits}
            assert len(hits) == 40
            assert int(group[1:]) >= last
            last = int(group[1:])

    async with asyncio.timeout(60):
        await asyncio.gather(write(), *(search(seed) for seed in range(6)))
    await store.close()


async def test_a_cancelled_search_leaves_whole_indexes(database: Database) -> None:
    """However early the caller goes, later searches find all that is there and nothing that is not."""
    store, chance = SqlVectorStore(database), random.Random(1)
    for number in range(12):
        await fill(database, store, cloud(300, f"g{number}", number), gone=f"g{number - 1}" if number else "")
        for _ in range(3):
            searching = asyncio.create_task(store.search("c", Query(question(), 300, text="zebra")))
            await asyncio.sleep(chance.random() * 0.01)
            searching.cancel()
            await asyncio.gather(searching, return_exceptions=True)
        hits = await store.search("c", Query(question(), 400, text="zebra"))
        assert {hit.point.id for hit in hits} == {f"g{number}-{at}" for at in range(300)}
    await store.close()


async def test_many_searches_of_cold_collections_do_not_starve_each_other(database: Database) -> None:
    store = SqlVectorStore(database)

    def write(unit: Unit, name: str) -> None:
        store.ensure(unit, name, DIMENSION, "e")
        store.stage(unit, name, cloud(3, "g"))
        store.publish(unit, name, "g")

    for number in range(40):
        await database.write(write, f"c{number}")
    async with asyncio.timeout(20):
        found = await asyncio.gather(
            *(store.search(f"c{number}", Query(question(), 3, text="zebra")) for number in range(40))
        )
    assert [len(hits) for hits in found] == [3] * 40
    await store.close()


async def test_a_large_collection_gets_an_approximate_index(database: Database) -> None:
    """In the background; answers stay nearly as good, and what is removed afterwards is never found."""
    store = SqlVectorStore(database, exact_up_to=1000)
    few, more = cloud(1000, "few"), cloud(1500, "more", 1)
    await fill(database, store, few)
    await store.search("c", Query(question(), 10))
    await store.settled()
    assert not await approximate(database, store)
    await fill(database, store, more)
    exact = [hit.point.id for hit in await store.search("c", Query(question(), 10))]
    await store.settled()
    assert await approximate(database, store)
    found = [hit.point.id for hit in await store.search("c", Query(question(), 10))]
    assert len(set(found) & set(exact)) >= 8
    await fill(database, store, gone="more")
    hits = await store.search("c", Query(question(), 100))
    assert {hit.point.group for hit in hits} == {"few"}
    hits = await store.search("c", Query(question(), 1000, groups=["few"]))
    assert len(hits) == 1000
    await store.close()


async def approximate(database: Database, store: SqlVectorStore) -> bool:
    def look(session: Session) -> bool:
        found = store.require_collection(session, "c")
        return store.indexes(found).dense.catch_up(session, found).approximate

    return await database.read(look)


async def test_an_index_of_many_removed_words_is_made_anew(database: Database) -> None:
    """Statistics of BM25 forget what was removed; answers are the same meanwhile and afterwards."""
    store = SqlVectorStore(database)
    kept = cloud(100, "kept", text="common zebra")
    await fill(database, store, kept, cloud(200, "gone", 1, text="common apple"))
    query = Query(question(), 100, text="zebra")
    await store.search("c", query)
    old = await words(database, store)
    await fill(database, store, gone="gone")
    during = [hit.point.id for hit in await store.search("c", query)]
    assert old.stale > 0.5
    await store.settled()
    late = cloud(1, "late", 7, text="common zebra")
    await fill(database, store, late)
    after = [hit.point.id for hit in await store.search("c", Query(question(), 101, text="zebra"))]
    new = await words(database, store)
    assert new is not old and new.stale == 0 and new.count == 101
    assert {point.id for point in kept} == set(during) == set(after) - {"late-0"}
    await store.close()


async def words(database: Database, store: SqlVectorStore) -> TextIndex:
    def look(session: Session) -> TextIndex:
        found = store.require_collection(session, "c")
        return store.indexes(found).text.catch_up(session, found)

    return await database.read(look)


async def test_closing_waits_for_nobody_who_left(database: Database) -> None:
    """Searches whose callers went away are over once the store is closed: none uses the database later."""
    store = SqlVectorStore(database)
    await fill(database, store, cloud(2000, "g"))
    searching = asyncio.create_task(store.search("c", Query(question(), 10, text="zebra")))
    await asyncio.sleep(0)
    searching.cancel()
    await asyncio.gather(searching, return_exceptions=True)
    await store.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert not [task for task in others if "search" in repr(task.get_coro())]


async def test_a_filter_may_name_more_groups_than_a_statement_takes(database: Database) -> None:
    store = SqlVectorStore(database)
    await fill(database, store, cloud(3, "one"), cloud(3, "two", 1))
    groups = [f"g{number}" for number in range(40_000)] + ["two"]
    hits = await store.search("c", Query(question(), 10, groups=groups))
    assert {hit.point.group for hit in hits} == {"two"}
    await store.close()


@pytest.mark.parametrize("words", [None, "zebra"])
async def test_more_points_of_one_commit_than_are_read_at_once(database: Database, words: str | None) -> None:
    store = SqlVectorStore(database)
    await fill(database, store, cloud(5_002, "g"))
    hits = await store.search("c", Query(question(), 6_000, text=words))
    assert len({hit.point.id for hit in hits}) == 5_002
    await store.close()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_process_that_slept_past_the_purge_of_tombstones(database: Database) -> None:
    """It can't know what was removed meanwhile: its indexes are made again, and hold nothing that is gone."""
    sleeper, writer = SqlVectorStore(database), SqlVectorStore(database)
    await fill(database, writer, cloud(20, "gone"), cloud(15, "kept", 1))
    query = Query(question(), 10, text="zebra")
    assert {hit.point.group for hit in await sleeper.search("c", query)} >= {"gone"}
    await fill(database, writer, gone="gone")
    await fill(database, writer, *[cloud(1, "again", 2)] * 1001)
    await fill(database, writer, gone="nobody")
    hits = await sleeper.search("c", query)
    assert len(hits) == 10 and not {hit.point.group for hit in hits} & {"gone"}
    await sleeper.close()
    await writer.close()
