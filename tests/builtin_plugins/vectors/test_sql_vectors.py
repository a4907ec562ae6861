"""Points in SQL with FAISS and BM25 in process, on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator

import numpy as np
import pytest

from builtin_plugins.vectors.api import Point, Query
from builtin_plugins.vectors.conformance import Stores, VectorStoreConformance
from builtin_plugins.vectors.store import SqlVectorStore
from kernel.db.engine import Database, Unit


@pytest.fixture
async def stores(databases: tuple[Database, Database]) -> AsyncIterator[Stores]:
    """Two stores on it."""
    pair = SqlVectorStore(databases[0]), SqlVectorStore(databases[1])
    yield pair
    for store in pair:
        await store.close()


class TestSqlVectorStore(VectorStoreConformance):
    """The conformance suite."""


async def test_an_older_reader_leaves_no_gap_in_the_words(database: Database) -> None:
    """A search that began before a publication, and looks up words after it, hides no later point."""
    store, vector = SqlVectorStore(database), np.eye(1, 4, dtype=np.float32)[0]

    async def publish(group: str) -> None:
        def write(unit: Unit) -> None:
            store.ensure(unit, "c", 4, "e")
            store.stage(unit, "c", [Point(group, group, 0, "zebra", vector)])
            store.publish(unit, "c", group)

        await database.write(write)

    await publish("early")
    found = await database.read(store.require_collection, "c")
    await publish("late")
    assert len(await store.search("c", Query(vector, 5))) == 2
    await database.read(lambda session: store.indexes(found).text.catch_up(session, found))
    hits = await store.search("c", Query(np.roll(vector, 1), 5, text="zebra"))
    assert {hit.point.id for hit in hits if hit.score > 0} == {"early", "late"}
    await store.close()
