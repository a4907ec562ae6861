"""What a filter costs a search: 100,000 documents of one passage each, filters that leave 1 to 99 % of them.

    python -m tests.benchmarks.filters                       SQLite and FAISS
    python -m tests.benchmarks.filters postgresql://…        PostgreSQL, with pgvector if it is there
    python -m tests.benchmarks.filters --readers …           documents with readers instead of filters
    python -m tests.benchmarks.filters --replaced …          a search of replaced documents, as of a time

With `--readers`, each document has one of 50 groups for readers, and the accounts are in some of them.

Prints the median time of a hybrid search with each filter, and how many times that of one without it is;
each search has its own question. A store keeps what a filter left until something changes, so the first
search with a filter is told, too. Embedding the question is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
from sqlalchemy import insert, update

from builtin_plugins.pgvector.setup import open_vector_store
from builtin_plugins.rag.filters.binding import FilterSource, bind, parse_filter
from builtin_plugins.rag.metadata.kinds import value_of
from builtin_plugins.rag.models import (
    SUPERSEDED,
    Document,
    KnowledgeBase,
    MetadataField,
    MetadataValue,
    earlier_collection,
)
from builtin_plugins.rag.plugin import RagPlugin
from builtin_plugins.rag.questions.history import current_at
from builtin_plugins.rag.rights.audiences import DocumentReaders, set_members, settle_audience
from builtin_plugins.vectors.api import Point, Query, SqlVectorStore, WordQuery
from builtin_plugins.vectors.plugin import VectorsPlugin
from kernel.db import migrate
from kernel.db.engine import Database, Unit
from kernel.sdk import Scope, utc_now
from kernel.settings.loading import KernelSettings

DIMENSION: Final = 384
BASE: Final = "00000000-0000-4000-8000-000000000000"
WORDS: Final = [
    f"{a}{b}{c}" for a in ("ber", "kai", "mol", "tor") for b in "aeiou" for c in ("n", "rt", "st", "l")
]
BATCH: Final = 2000
GROUPS: Final = 50
HOLDER: Final = "benchmark:1"
SERVICE: Final = Scope(None, everything=True)


def filters(count: int) -> Mapping[str, Any]:
    """By what they leave; `rank` is a number of each document's own, from 0 on."""
    wanted: dict[str, Any] = {"1 document": {"type": "eq", "key": "rank", "value": count // 2}}
    wanted["100 documents"] = {"type": "lt", "key": "rank", "value": 100}
    for share in (1, 10, 50, 99):
        wanted[f"{share} %"] = {"type": "lt", "key": "rank", "value": count * share // 100}
    wanted["99 %, by what it leaves out"] = {"type": "ne", "key": "hundredth", "value": "0"}
    wanted["10 %, by a text"] = {"type": "eq", "key": "tenth", "value": "0"}
    wanted["50 %, by size"] = {"type": "lt", "key": "size_bytes", "value": count // 2}
    wanted["5 %, by two"] = {
        "type": "and",
        "filters": [{"tenth": "0"}, {"type": "lt", "key": "rank", "value": count // 2}],
    }
    return wanted


async def fill(database: Database, vectors: SqlVectorStore, count: int) -> None:
    """Documents with three fields, and their passages."""
    chance, texts = np.random.default_rng(0), random.Random(0)

    def begin(unit: Unit) -> None:
        for name, kind in (("rank", "number"), ("tenth", "text"), ("hundredth", "text")):
            unit.session.add(MetadataField(knowledge_base_id=BASE, name=name, kind=kind))
        vectors.ensure(unit, BASE, DIMENSION, "engine")

    def add(unit: Unit, start: int) -> None:
        numbers = range(start, min(count, start + BATCH))
        ids = {number: str(uuid.UUID(int=number * 7919 + 1)) for number in numbers}
        rows = [
            {
                "id": ids[number],
                "knowledge_base_id": BASE,
                "filename": f"{number}.txt",
                "content_type": "text/plain",
                "size_bytes": (number * 7919) % count,
                "sha256": f"{number:064x}",
                "status": "completed",
                "uploaded_at": utc_now(),
            }
            for number in numbers
        ]
        unit.session.execute(insert(Document), rows)
        values = []
        for number in numbers:
            rank = (number * 7919) % count  # neighbors in one field are none in another
            for name, value in (
                ("rank", value_of("number", rank)),
                ("tenth", value_of("text", str(rank % 10))),
                ("hundredth", value_of("text", str(rank % 100))),
            ):
                place = {"document_id": ids[number], "knowledge_base_id": BASE, "field": name}
                values.append({**place, "position": 0, "origin": "hand", **value._asdict()})
        unit.session.execute(insert(MetadataValue), values)
        drawn = chance.normal(size=(len(numbers), DIMENSION)).astype(np.float32)
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        points = [
            Point(ids[number], ids[number], 0, " ".join(texts.choices(WORDS, k=120)), vector)
            for number, vector in zip(numbers, drawn, strict=True)
        ]
        vectors.stage(unit, BASE, points)
        vectors.publish(unit, BASE, *ids.values())

    await database.write(begin)
    for start in range(0, count, BATCH):
        await database.write(add, start)


async def measured(
    database: Database,
    vectors: SqlVectorStore,
    wanted: Any,
    tries: int,
    *,
    hybrid: bool,
    reader: Scope = SERVICE,
) -> tuple[float, float, int]:
    """The median time of a search in milliseconds, that of the first, and how many passages it finds."""
    chance, texts = np.random.default_rng(1), random.Random(1)
    times, found = [], 0
    for _ in range(tries):
        drawn = chance.normal(size=DIMENSION).astype(np.float32)
        vector, text = drawn / np.linalg.norm(drawn), " ".join(texts.choices(WORDS, k=6))
        started = time.perf_counter()
        sent = [] if wanted is None else [FilterSource(parse_filter(wanted, ()))]
        groups = (await database.read(bind, reader, [BASE], sent)).groups(BASE)
        hits = await vectors.search(BASE, Query(vector, 10, text=text if hybrid else None, groups=groups))
        times.append((time.perf_counter() - started) * 1000)
        found = max(found, len(hits))
    return statistics.median(times), times[0], found


async def guard(database: Database, count: int) -> None:
    """Give each document the readers of one of the groups, and each account some of these groups."""

    def write(unit: Unit) -> None:
        unit.session.execute(insert(KnowledgeBase), [base_row()])
        names = [f"{HOLDER}:group:{one}" for one in range(GROUPS)]
        made = [settle_audience(unit, DocumentReaders(HOLDER, [name])) for name in names]
        for number, audience in enumerate(made):
            own = [str(uuid.UUID(int=one * 7919 + 1)) for one in range(number, count, GROUPS)]
            for start in range(0, len(own), BATCH):
                some = Document.id.in_(own[start : start + BATCH])
                unit.session.execute(update(Document).where(some).values(audience_id=audience))
        accounts = {name: [of for of in ACCOUNTS if at < of] for at, name in enumerate(names)}
        set_members(unit, HOLDER, accounts)

    await database.write(write)


ACCOUNTS: Final = (1, 5, 25, 50)
"""Their ids are the numbers of groups that they are in."""


def base_row() -> dict[str, Any]:
    """The knowledge base, which is looked at for documents with readers."""
    texts = {"id": BASE, "name": "", "description": "", "embedding_model": "", "visibility": "shared"}
    return {**texts, "chunk_size": 1000, "chunk_overlap": 0, "created_at": utc_now(), "publishing": "owner"}


async def _with_readers(
    database: Database, vectors: SqlVectorStore, plain: float, tries: int, *, hybrid: bool
) -> None:
    for account in ACCOUNTS:
        took, first, found = await measured(
            database, vectors, None, tries, hybrid=hybrid, reader=Scope(account)
        )
        name = f"{100 * account // GROUPS} % readable"
        print(f"  {name:30} {took:7.1f} ms  {took / plain:5.2f} ×, first {first:6.1f} ms, {found} found")


async def replace_all(database: Database, vectors: SqlVectorStore) -> None:
    """Let each document be replaced, as if by an upload."""

    def write(unit: Unit) -> None:
        now = utc_now()
        values = {"status": SUPERSEDED, "completed_at": now - timedelta(days=1), "superseded_at": now}
        unit.session.execute(update(Document).values(values))
        vectors.rename(unit, BASE, earlier_collection(BASE))

    await database.write(write)


async def look_back(database: Database, vectors: SqlVectorStore, tries: int) -> None:
    """Search the replaced documents as of an hour ago."""
    texts, times = random.Random(1), []
    for _ in range(tries):
        started = time.perf_counter()
        documents = await database.read(bind, SERVICE, [BASE], [])
        groups = current_at(documents, utc_now() - timedelta(hours=1)).groups(BASE)
        query = WordQuery(" ".join(texts.choices(WORDS, k=6)), 40, groups)
        hits = await vectors.search_words(earlier_collection(BASE), query)
        times.append((time.perf_counter() - started) * 1000)
    print(f"as of an hour ago: {statistics.median(times):.1f} ms, first {times[0]:.1f} ms, {len(hits)} found")


async def run(url: str | None, count: int, tries: int, *, readers: bool, replaced: bool) -> None:
    with tempfile.TemporaryDirectory() as home:
        database = Database(KernelSettings(home=Path(home), database_url=url).sqlalchemy_url)
        await migrate.upgrade(database, migrate.kernel_owner(), {})
        for name, plugin in (("vectors", VectorsPlugin()), ("rag", RagPlugin())):
            await migrate.upgrade(database, migrate.Owner(name, plugin.register_tables()), {})
        vectors: SqlVectorStore = (
            SqlVectorStore(database) if url is None else await open_vector_store(database, "auto", apply=True)
        )
        started = time.perf_counter()
        await fill(database, vectors, count)
        await vectors.settled()
        if readers:
            await guard(database, count)
        print(
            f"{type(vectors).__name__}, {count:,} documents, filled in {time.perf_counter() - started:.0f} s"
        )
        if replaced:
            await replace_all(database, vectors)
            await look_back(database, vectors, tries)
        for hybrid in () if replaced else (True, False):
            await measured(database, vectors, {"tenth": "1"}, 1, hybrid=hybrid)  # loads the indexes
            plain, _, _ = await measured(database, vectors, None, tries, hybrid=hybrid)
            print(f"{'hybrid' if hybrid else 'vectors only'}: without a filter {plain:.1f} ms")
            if readers:
                await _with_readers(database, vectors, plain, tries, hybrid=hybrid)
                continue
            for name, wanted in filters(count).items():
                took, first, found = await measured(database, vectors, wanted, tries, hybrid=hybrid)
                print(
                    f"  {name:30} {took:7.1f} ms  {took / plain:5.2f} ×, first {first:6.1f} ms, {found} found"
                )
        await vectors.close()
        await database.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url", nargs="?")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--tries", type=int, default=15)
    parser.add_argument("--readers", action="store_true")
    parser.add_argument("--replaced", action="store_true")
    given = parser.parse_args()
    asyncio.run(run(given.url, given.documents, given.tries, readers=given.readers, replaced=given.replaced))
