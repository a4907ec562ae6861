"""B22: the first search after a restart, with and without saved indexes, and the memory that it takes.

python -m tests.benchmarks.restarts [PASSAGES ...]
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from builtin_plugins.vectors.api import IndexFolders, Point, Query
from builtin_plugins.vectors.store import SqlVectorStore
from kernel.db.engine import Database, Unit
from kernel.settings.loading import KernelSettings
from kernel.testing.databases import copy_sqlite
from tests.benchmarks.table import Row, print_table
from tests.builtin_plugins.vectors.vector_tables import make_tables

SIZES = (10_000, 100_000)
DIMENSION = 384
PER_GROUP = 500
WORDS = 150
VOCABULARY = 50_000
BUDGET = 0.5
_PRIVATE = ("Private_Clean:", "Private_Dirty:")
_OWN = ("Anonymous:",)


def _database(home: Path) -> Database:
    return Database(KernelSettings(home=home, database_url=None).sqlalchemy_url)


async def fill(home: Path, size: int) -> None:
    """Passages of words with Zipf's frequencies and random vectors."""
    database = _database(home)
    await make_tables(database)
    store, chance = SqlVectorStore(database), np.random.default_rng(1)
    words = np.array([f"{'bcdfg'[at % 5]}{at:x}a" for at in range(VOCABULARY)])
    weights = 1 / np.arange(1, VOCABULARY + 1)
    for number in range(size // PER_GROUP):
        texts = chance.choice(words, (PER_GROUP, WORDS), p=weights / weights.sum())
        vectors = chance.normal(size=(PER_GROUP, DIMENSION)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        group = f"g{number}"
        points = [
            Point(f"{group}-{at}", group, at, " ".join(text), vector)
            for at, (text, vector) in enumerate(zip(texts, vectors, strict=True))
        ]

        def publish(unit: Unit, group: str = group, points: list[Point] = points) -> None:
            store.ensure(unit, "c", DIMENSION, "e")
            store.stage(unit, "c", points)
            store.publish(unit, "c", group)

        await database.write(publish)
    await database.close()


async def search(home: Path, *, saving: bool) -> dict[str, float]:
    """The seconds of the first search of this process and of the second, and its memory in MB.

    `private` includes mapped files as long as no other process maps them; `own` doesn't.
    """
    database = _database(home)
    store = SqlVectorStore(database, folders=IndexFolders(home) if saving else None)
    query = Query(np.eye(1, DIMENSION, dtype=np.float32)[0], 10, text="b5a c1a")
    figures = {}
    for name in ("first", "second"):
        began = time.perf_counter()
        await store.search("c", query)
        figures[name] = time.perf_counter() - began
    figures["private"], figures["own"] = _memory_mb(_PRIVATE), _memory_mb(_OWN)
    await store.settled()
    await store.close()
    await database.close()
    return figures


def _memory_mb(kinds: tuple[str, ...]) -> float:
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(kinds)) / 1000


def _in_new_process(home: Path, *, saving: bool) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.restarts", "--search", str(home), str(int(saving))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def measure(size: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        copy_sqlite(home, ("vectors",))
        asyncio.run(fill(home, size))
        rounds = {
            "built in memory": _in_new_process(home, saving=False),
            "built and saved": _in_new_process(home, saving=True),
            "opened": _in_new_process(home, saving=True),
        }
    return [
        Row(
            "B22",
            f"first search, {size:,} passages, indexes {name}",
            f"{one['first']:.2f} s, then {one['second'] * 1000:.0f} ms; {one['own']:.0f} MB of its own, "
            f"{one['private']:.0f} with files",
            f"<= {BUDGET} s" if name == "opened" else "",
            name != "opened" or one["first"] <= BUDGET,
        )
        for name, one in rounds.items()
    ]


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--search"]:
        print(json.dumps(asyncio.run(search(Path(arguments[1]), saving=arguments[2] == "1"))))
        return
    print_table([row for size in map(int, arguments or SIZES) for row in measure(int(size))])


if __name__ == "__main__":
    main(sys.argv[1:])
