"""B24: one large collection: searches with and without a filter, what they find, and memory.

    python -m tests.benchmarks.large_collection [PASSAGES]                 FAISS and tantivy, in files
    python -m tests.benchmarks.large_collection [PASSAGES] --milvus URI    a Milvus server

With `--keep FOLDER`, what was filled stays there, and is used again.

The vectors are synthetic: groups of near ones, as of texts about the same thing. The words are those of the
guides in docs/, in their order, with some rare ones among them. Ten passages make a document; a filter leaves
every tenth document. It is a query, as those of knowledge bases are; `shared` is one by permissions, whose
scores tell nothing of other documents: the first time, the texts with a common word are counted. `new filter`
has another key each time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from sqlalchemy import Integer, String, column, insert, literal, select, table, text
from sqlalchemy.orm import Session

from builtin_plugins.vectors.api import GroupQuery, IndexFolders, Point, Query, SqlVectorStore
from kernel.db import migrate
from kernel.db.engine import Database, Unit
from kernel.settings.loading import KernelSettings
from kernel.testing.databases import copy_sqlite
from tests.benchmarks.table import Row, print_table
from tests.builtin_plugins.vectors.vector_tables import make_tables

DIMENSION: Final = 384
SUBJECTS: Final = 5_000
PER_DOCUMENT: Final = 10
BATCH: Final = 1_000
WORDS: Final = 150
RARE: Final = 200_000
TRIES: Final = 200
K: Final = 10
DOCS: Final = Path(__file__).parents[2] / "docs"


def database_in(home: Path) -> Database:
    return Database(KernelSettings(home=home, database_url=None).sqlalchemy_url)


def vectors_of(chance: np.random.Generator, count: int) -> np.ndarray:
    """Unit vectors float32 [count, 384] around the same centres each time."""
    centres = np.random.default_rng(0).normal(size=(SUBJECTS, DIMENSION)).astype(np.float32)
    near = centres[chance.integers(0, SUBJECTS, count)]
    found = near + 0.8 * chance.normal(size=near.shape).astype(np.float32)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)


def prose() -> np.ndarray:
    texts = (file.read_text(encoding="utf-8") for file in sorted(DOCS.rglob("*.md")))
    return np.array([word for text in texts for word in text.split() if word.isalpha()])


def texts_of(chance: np.random.Generator, words: np.ndarray, count: int) -> Iterator[str]:
    starts = chance.integers(0, len(words) - WORDS, count)
    for start in starts.tolist():
        text = words[start : start + WORDS].tolist()
        for rare in (chance.zipf(1.2, 8) % RARE).tolist():
            text[rare % WORDS] = f"{'bcdfg'[rare % 5]}{rare:x}a"
        yield " ".join(text)


def document(number: int) -> str:
    return f"{number:036d}"


async def with_documents(home: Path, size: int) -> None:
    database = database_in(home)
    await database.write(lambda unit: write_documents(unit.session, size))
    await database.close()


async def opened(home: Path, milvus: str | None) -> tuple[Database, SqlVectorStore]:
    database = database_in(home)
    if milvus is None:
        return database, SqlVectorStore(database, folders=IndexFolders(home))
    from builtin_plugins.milvus.engine import MilvusEngine
    from builtin_plugins.milvus.identity import identity_of
    from builtin_plugins.milvus.plugin import MilvusPlugin
    from builtin_plugins.milvus.settings import MilvusSettings
    from builtin_plugins.milvus.store import MilvusStore

    await migrate.upgrade(database, migrate.Owner("milvus", MilvusPlugin().register_tables()), {})
    settings = MilvusSettings(uri=milvus, timeout_seconds=60)
    return database, MilvusStore(database, MilvusEngine(settings, await identity_of(database)))


async def fill(home: Path, size: int, milvus: str | None) -> None:
    """Write the rows, and the indexes from them."""
    await make_tables(database_in(home))
    database, store = await opened(home, milvus)
    chance, words = np.random.default_rng(1), prose()
    for batch in range(0, size, BATCH):
        texts, vectors = texts_of(chance, words, BATCH), vectors_of(chance, BATCH)
        points = [
            Point(f"p{at}", document(at // PER_DOCUMENT), at % PER_DOCUMENT, text, vector)
            for at, (text, vector) in enumerate(zip(texts, vectors, strict=True), batch)
        ]

        def publish(unit: Unit, points: list[Point] = points) -> None:
            store.ensure(unit, "c", DIMENSION, "e")
            store.stage(unit, "c", points)
            store.publish(unit, "c", *{point.group for point in points})

        await database.write(publish)
        np.asarray(vectors, np.float16).tofile(home / f"{batch:09d}.vectors")
    began = time.perf_counter()
    if milvus is None:
        await store.search("c", Query(vectors_of(chance, 1)[0], K, text="release"))
        await store.settled()
        await store.search("c", Query(vectors_of(chance, 1)[0], K, text="release"))
        await store.settled()
    else:
        await store.following.fill()  # type: ignore[attr-defined]
    print(f"indexes: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    await store.close()
    await database.close()


def exact(home: Path, questions: np.ndarray, step: int) -> list[set[str]]:
    """The nearest points of each question among every `step`th document."""
    best: list[list[tuple[float, str]]] = [[] for _ in questions]
    for file in sorted(home.glob("*.vectors")):
        vectors = np.fromfile(file, np.float16).reshape(-1, DIMENSION).astype(np.float32)
        numbers = np.arange(int(file.stem), int(file.stem) + len(vectors))
        kept = (numbers // PER_DOCUMENT) % step == 0
        scores = questions @ vectors[kept].T
        for one, row in zip(best, scores, strict=True):
            top = np.argpartition(-row, K)[:K]
            one.extend((float(row[at]), f"p{numbers[kept][at]}") for at in top)
            one.sort(reverse=True)
            del one[K:]
    return [{name for _, name in one} for one in best]


def memory(kind: str) -> float:
    """The memory of this process in MB, of a kind that the kernel names."""
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return sum(int(one.split()[1]) for one in lines if one.startswith(f"{kind}:")) / 1000


_TENTH = table("bench_document", column("id", String), column("number", Integer))


def every_tenth(key: str = "tenth", *, isolated: bool = False) -> GroupQuery:
    names = select(_TENTH.c.id).where(_TENTH.c.number % 10 == 0)
    return GroupQuery(names, key, select(literal(1)), isolated=isolated)


def write_documents(session: Session, size: int) -> None:
    """The table that the filter asks."""
    session.execute(text("CREATE TABLE IF NOT EXISTS bench_document (id TEXT PRIMARY KEY, number INTEGER)"))
    session.execute(text("DELETE FROM bench_document"))
    rows = [{"id": document(number), "number": number} for number in range(size // PER_DOCUMENT)]
    session.execute(insert(_TENTH), rows)


async def search_first(home: Path, size: int, milvus: str | None) -> dict[str, float]:
    """Search among a tenth of the documents, as the first search after a start."""
    chance = np.random.default_rng(2)
    question = Query(vectors_of(chance, 1)[0], K, text="release", groups=every_tenth())
    began = time.perf_counter()
    database, store = await opened(home, milvus)
    await store.search("c", question)
    seconds = time.perf_counter() - began
    await store.close()
    await database.close()
    return {"first, filtered": seconds}


async def search(home: Path, size: int, milvus: str | None) -> dict[str, float]:
    chance, words = np.random.default_rng(2), prose()
    questions = vectors_of(chance, TRIES)
    figures: dict[str, float] = {}
    began = time.perf_counter()
    database, store = await opened(home, milvus)
    await store.search("c", Query(questions[0], K, text="release"))
    figures["first"] = time.perf_counter() - began
    kinds: Sequence[tuple[str, Callable[[int], GroupQuery | None], int]] = (
        ("all", lambda _number: None, 1),
        ("filtered", lambda _number: every_tenth(), 10),
        ("shared", lambda _number: every_tenth("shared", isolated=True), 10),
        ("shared, again", lambda _number: every_tenth("shared", isolated=True), 10),
        ("new filter", lambda number: every_tenth(f"{number}"), 10),
    )
    asked = [" ".join(words[at : at + 6]) for at in chance.integers(0, len(words) - 6, TRIES)]
    for kind, groups, step in kinds:
        for with_words in (False, True):
            seconds, processor, found = [], [], []
            for number, (question, phrase) in enumerate(zip(questions, asked, strict=True)):
                query = Query(question, K, text=phrase if with_words else None, groups=groups(number))
                began, used = time.perf_counter(), time.process_time()
                hits = await store.search("c", query)
                seconds.append(time.perf_counter() - began)
                processor.append(time.process_time() - used)
                found.append({hit.point.id for hit in hits})
            leg = f"{kind}, {'words and vectors' if with_words else 'vectors'}"
            figures[f"{leg}, p50"] = float(np.quantile(seconds[5:], 0.5)) * 1000
            figures[f"{leg}, p99"] = float(np.quantile(seconds[5:], 0.99)) * 1000
            figures[f"{leg}, processor"] = float(np.quantile(processor[5:], 0.5)) * 1000
            if not with_words:
                wanted = exact(home, questions, step)
                shares = [len(one & other) / K for one, other in zip(found, wanted, strict=True)]
                figures[f"{leg}, recall"] = float(np.mean(shares))
    figures["own MB"] = memory("Anonymous")
    figures["with mapped files, MB"] = memory("Rss")
    await store.close()
    await database.close()
    return figures


def in_new_process(step: str, home: Path, size: int, milvus: str | None) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.large_collection", str(size), step, str(home)]
    command += ["--milvus", milvus] if milvus else []
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout))


def measure(home: Path, size: int, milvus: str | None) -> dict[str, float]:
    filled = home / "filled"
    if not filled.exists():
        copy_sqlite(home, ("vectors",))
        in_new_process("--fill", home, size, milvus)
        filled.touch()
    asyncio.run(with_documents(home, size))
    figures = in_new_process("--search", home, size, milvus) | in_new_process("--first", home, size, milvus)
    files = [file for file in (home / "vectors").rglob("*") if file.is_file()]
    figures["index files, MB"] = sum(file.stat().st_size for file in files) / 1e6
    figures["database, MB"] = (home / "platform.db").stat().st_size / 1e6
    return figures


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("size", type=int, nargs="?", default=100_000)
    options.add_argument("--milvus")
    options.add_argument("--fill", type=Path)
    options.add_argument("--search", type=Path)
    options.add_argument("--first", type=Path)
    options.add_argument("--keep", type=Path)
    given = options.parse_args()
    if given.fill:
        asyncio.run(fill(given.fill, given.size, given.milvus))
        print("{}")
    elif given.search:
        print(json.dumps(asyncio.run(search(given.search, given.size, given.milvus))))
    elif given.first:
        print(json.dumps(asyncio.run(search_first(given.first, given.size, given.milvus))))
    else:
        with tempfile.TemporaryDirectory() as folder:
            home = given.keep or Path(folder)
            home.mkdir(exist_ok=True, parents=True)
            figures = measure(home, given.size, given.milvus)
        rows = [
            Row("B24", f"{given.size:,}, {name}", f"{one:.3f}", "", met=True) for name, one in figures.items()
        ]
        print_table(rows)


if __name__ == "__main__":
    main()
