"""How Milvus follows the rows: killed at any moment, emptied, set back, and with what another store wrote."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from pymilvus import MilvusClient

from builtin_plugins.milvus.engine import EngineAway, MilvusEngine
from builtin_plugins.milvus.following import EngineBehind
from builtin_plugins.milvus.positions import EngineState
from builtin_plugins.milvus.store import MilvusStore
from builtin_plugins.vectors.api import Hit, Point, Query, SqlVectorStore, WordQuery
from builtin_plugins.vectors.conformance import COLLECTION, DIMENSION, ENGINE, Stores, direction, ids, thing
from kernel.db.engine import Database, Unit
from tests.builtin_plugins.milvus.conftest import IDENTITY
from tests.builtin_plugins.milvus.milvus_server import MilvusLite, running_lite

NEAR = Query(direction(0.0), 10)
MORE_THAN_NAMED = 16_400  # one answer of Milvus has up to 16,384 rows


async def write(database: Database, store: SqlVectorStore, *points: Point) -> None:
    def publish(unit: Unit) -> None:
        store.ensure(unit, COLLECTION, DIMENSION, ENGINE)
        store.stage(unit, COLLECTION, points)
        store.publish(unit, COLLECTION, *sorted({point.group for point in points}))

    await database.write(publish)


def crowd(count: int, group: str) -> list[Point]:
    return [Point(f"{group}-{at}", group, at, f"crowd {at}", direction(at / 1e6)) for at in range(count)]


async def filled(store: MilvusStore) -> int:
    await store.following.fill()
    return await asyncio.to_thread(store.following.engine.count, "label >= 0")


async def found_again(store: MilvusStore) -> list[Hit]:
    """What a client finds that tries again until the engine answers and is full."""
    async with asyncio.timeout(120):
        while True:
            with suppress(EngineAway, EngineBehind):
                return await store.search(COLLECTION, NEAR)
            with suppress(EngineAway):
                await store.following.fill()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[MilvusLite]:
    """An engine that a test may kill."""
    with running_lite(tmp_path / "lite") as server:
        yield server


@pytest.fixture
async def store(own_server: MilvusLite, database: Database) -> AsyncIterator[MilvusStore]:
    store = MilvusStore(database, MilvusEngine(own_server.settings, IDENTITY))
    yield store
    await store.close()


@pytest.mark.long
async def test_the_engine_is_killed_and_comes_back(
    own_server: MilvusLite, database: Database, store: MilvusStore
) -> None:
    """Searches fail while it is gone, writing does not; afterwards it has what changed meanwhile."""
    await write(database, store, thing(1), thing(2, "two"))
    assert ids(await store.search(COLLECTION, NEAR)) == ["one-1", "two-2"]
    own_server.kill()
    with pytest.raises(EngineAway):
        await store.search(COLLECTION, NEAR)
    await database.write(store.remove_group, COLLECTION, "one")
    await write(database, store, thing(3, "three", text="zebra"))
    await own_server.again()
    assert ids(await found_again(store)) == ["two-2", "three-3"]
    assert ids(await store.search(COLLECTION, Query(direction(0.3), 1, text="zebra"))) == ["three-3"]
    assert await filled(store) == 2


@pytest.mark.long
async def test_the_engine_is_killed_while_it_is_filled(
    own_server: MilvusLite, database: Database, store: MilvusStore
) -> None:
    """Whatever it had by then, it ends up with each point once, and none that was deleted."""
    await write(database, store, *crowd(5000, "one"), *crowd(100, "two"))
    filling = asyncio.create_task(store.following.fill())
    await asyncio.wait([filling], timeout=1.5)
    own_server.kill()
    if not filling.done():
        with pytest.raises(EngineAway):
            await filling
    await database.write(store.remove_group, COLLECTION, "two")
    await own_server.again()
    await found_again(store)
    assert await filled(store) == 5000
    assert len(await store.search(COLLECTION, NEAR)) == 10


async def test_searches_of_what_is_hardly_filled_are_refused(database: Database, stores: Stores) -> None:
    """Instead of an answer without most passages; it is complete after the filling."""
    store = stores[0]
    assert isinstance(store, MilvusStore)
    await write(database, store, *crowd(3500, "one"))
    with pytest.raises(EngineBehind):
        await store.search(COLLECTION, NEAR)
    assert await store.following.waiting() == 1
    assert await filled(store) == 3500
    assert await store.following.waiting() == 0
    assert len(await store.search(COLLECTION, NEAR)) == 10


async def test_points_of_another_store_are_taken_over(database: Database, stores: Stores) -> None:
    """Also what it publishes and removes after the engine was filled the first time."""
    store, faiss = stores[0], SqlVectorStore(database)
    assert isinstance(store, MilvusStore)
    await write(database, faiss, thing(1), thing(2, "two"))
    assert await filled(store) == 2
    await write(database, faiss, thing(3, "three"))
    await database.write(faiss.remove_group, COLLECTION, "one")
    assert ids(await store.search(COLLECTION, NEAR)) == ["two-2", "three-3"]
    assert await filled(store) == 2
    await faiss.close()


async def test_a_database_that_was_set_back(database: Database, stores: Stores) -> None:
    """The engine has a version of the same number, but of another past: it is filled again."""
    store = stores[0]
    assert isinstance(store, MilvusStore)
    await write(database, store, thing(1), thing(2, "two"))
    assert len(await store.search(COLLECTION, NEAR)) == 2
    record = await database.read(store.require_collection, COLLECTION)
    engine = store.following.engine
    state = await asyncio.to_thread(lambda: engine.state(record.id, exact=True))
    assert state is not None and state.reached is not None
    later = state.reached.model_copy(update={"mark": "of another"})
    stray = {"label": 10**6, "collection": record.id, "owner": "gone", "sample": 0, "weights": {0: 1.0}}
    vector = direction(0.0).tolist()

    def set_forward() -> None:
        engine.put(DIMENSION, [{**stray, "vector": vector}])
        engine.put_state(record.id, EngineState(reached=later))

    await asyncio.to_thread(set_forward)
    assert ids(await store.search(COLLECTION, NEAR)) == ["one-1", "two-2"]
    assert await asyncio.to_thread(engine.count, 'owner == "gone"') == 0


async def test_an_emptied_engine_is_filled_again(database: Database, stores: Stores) -> None:
    """By whatever process: those that had searched it find all again."""
    store, other = stores
    assert isinstance(store, MilvusStore) and isinstance(other, MilvusStore)
    await write(database, store, thing(1), thing(2, "two"))
    for one in stores:
        assert len(await one.search(COLLECTION, NEAR)) == 2
    await other.following.clear()
    for one in stores:
        assert len(await one.search(COLLECTION, NEAR)) == 2


async def test_what_is_dropped_leaves_the_engine(database: Database, stores: Stores) -> None:
    """With all its points, and the marks of its versions."""
    store = stores[0]
    assert isinstance(store, MilvusStore)
    await write(database, store, thing(1), thing(2, "two"))
    assert await filled(store) == 2
    await database.write(store.drop, COLLECTION)
    await store.settled()
    assert await filled(store) == 0
    assert await asyncio.to_thread(store.following.engine.states) == {}


async def test_what_is_deleted_leaves_the_engine(database: Database, stores: Stores) -> None:
    """A store that serves follows by itself, without any search."""
    store = stores[0]
    assert isinstance(store, MilvusStore)
    await write(database, store, thing(1), thing(2, "two"))
    engine = store.following.engine
    assert await filled(store) == 2
    await store.start()
    await database.write(store.remove_group, COLLECTION, "one")
    async with asyncio.timeout(20):
        while await asyncio.to_thread(engine.count, 'owner == "one"'):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)


async def test_more_collections_than_one_answer_names(
    own_server: MilvusLite, database: Database, store: MilvusStore
) -> None:
    """What the engine has of dropped ones is found and removed, however many others there are."""
    engine = store.following.engine
    await asyncio.to_thread(engine.put_state, 1, EngineState())
    client = MilvusClient(own_server.settings.uri)
    states = [
        {"id": at, "reached": "", "writing": "", "vector": [1.0, 0.0]} for at in range(2, MORE_THAN_NAMED + 1)
    ]
    await asyncio.to_thread(client.upsert, f"platform_{IDENTITY}_state", states)
    assert len(await asyncio.to_thread(engine.states)) == MORE_THAN_NAMED
    client.close()


NAMES = [
    *('a"b', "a\\b", 'x" or owner != "', "line\nbreak", "\u2028", "{x}", "'", "\\n", "100 %"),
    *("ü" * 64, "漢" * 64, "🚢" * 64),
]


async def test_names_of_groups_are_no_part_of_a_condition(database: Database, stores: Stores) -> None:
    """Whatever they contain, each question is limited to those that it names."""
    points = [Point(f"p{at}", name, 0, "crowd", direction(0.0)) for at, name in enumerate(NAMES)]
    await write(database, stores[0], *points)
    for at, name in enumerate(NAMES):
        near = await stores[1].search(COLLECTION, Query(direction(0.0), 50, groups=[name]))
        worded = await stores[1].search_words(COLLECTION, WordQuery("crowd", 50, groups=[name]))
        assert ids(near) == ids(worded) == [f"p{at}"]


async def test_words_in_languages(database: Database, stores: Stores) -> None:
    """Stemmed like the language of the text; a question finds them in each."""
    vector = np.eye(1, DIMENSION, dtype=np.float32)[0]
    await write(
        database,
        stores[0],
        Point("de", "de", 0, "Die Häuser am Hafen", vector, {"language": "de"}),
        Point("en", "en", 0, "The houses of the harbour", vector, {"language": "en"}),
    )
    for words, best in (("Haus", "de"), ("Häusern", "de"), ("house", "en")):
        hits = await stores[1].search(COLLECTION, Query(vector, 1, text=words))
        assert (ids(hits), bool(hits[0].words)) == ([best], True)


async def test_frequent_words_are_counted_from_a_sample(database: Database, stores: Stores) -> None:
    """A word that nearly every text has weighs less than one of two thirds, and a rare one most."""
    store, vector = stores[0], np.eye(1, DIMENSION, dtype=np.float32)[0]
    assert isinstance(store, MilvusStore)
    texts = [
        " ".join(["everywhere"] + ["often"] * (at % 3 > 0) + ["rarely"] * (at == 7)) for at in range(2200)
    ]
    await write(database, store, *(Point(f"p{at}", "one", at, text, vector) for at, text in enumerate(texts)))
    await store.following.fill()
    shares = [
        (await store.search(COLLECTION, Query(vector, 3, text=f"{word} unheard")))[0].words
        for word in ("everywhere", "often", "rarely")
    ]
    assert shares == sorted(shares, key=lambda share: share or 0.0) and len(set(shares)) == 3
