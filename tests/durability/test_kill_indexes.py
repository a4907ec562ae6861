"""A process that changes, saves and clears search indexes is killed: the next one finds what the rows say."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from builtin_plugins.vectors.api import IndexFolders, Point, Query
from builtin_plugins.vectors.index_tidying import IndexTidying
from builtin_plugins.vectors.store import SqlVectorStore
from kernel.db.engine import Database, Unit
from kernel.settings.loading import KernelSettings
from kernel.testing.databases import copy_sqlite
from tests.builtin_plugins.vectors.vector_tables import make_tables

pytestmark = [pytest.mark.durability, pytest.mark.long]

VECTOR = np.eye(1, 4, dtype=np.float32)[0]
PER_GROUP = 1100
KILLS = 12


async def open_store(home: Path, *, saving: bool = True) -> tuple[Database, SqlVectorStore]:
    database = Database(KernelSettings(home=home, database_url=None).sqlalchemy_url)
    await make_tables(database)
    folders = IndexFolders(home, 0.0) if saving else None
    return database, SqlVectorStore(database, folders=folders)


async def work(home: Path) -> None:
    """Replace groups of points, search and tidy up until killed."""
    database, store = await open_store(home)
    await store.start()
    assert store.folders is not None
    tidying = IndexTidying(store, database, store.folders)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    number = 0
    while True:
        number += 1
        group = f"g{number % 4}"
        vectors = np.random.default_rng(number).normal(size=(PER_GROUP, 4)).astype(np.float32)
        points = [
            Point(f"{group}-{at}", group, at, f"zebra n{number} w{at}", vectors[at])
            for at in range(PER_GROUP)
        ]

        def replace(unit: Unit, group: str = group, points: list[Point] = points) -> None:
            store.ensure(unit, "c", 4, "e")
            store.remove_group(unit, "c", group)
            store.stage(unit, "c", points)
            store.publish(unit, "c", group)

        await database.write(replace)
        await store.search("c", Query(VECTOR, 5, text="zebra"))
        await tidying.tidy()


async def found(home: Path, *, saving: bool) -> tuple[set[str], dict[str, float]]:
    """The texts with a word, and all texts with the cosines of their vectors."""
    database, store = await open_store(home, saving=saving)
    worded = await store.search("c", Query(VECTOR, 10_000, text="zebra"))
    near = await store.search("c", Query(VECTOR, 10_000))
    await store.close()
    await database.close()
    return {hit.point.text for hit in worded if hit.words}, {hit.point.text: hit.cosine for hit in near}


async def test_kills_leave_indexes_that_say_what_the_rows_say(tmp_path: Path) -> None:
    copy_sqlite(tmp_path, ("vectors",))
    chance = random.Random(3)
    opened = set[str]()
    for _ in range(KILLS):
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", __name__, str(tmp_path), stdout=asyncio.subprocess.PIPE
        )
        assert child.stdout is not None
        async with asyncio.timeout(30):
            await child.stdout.readline()
        await asyncio.sleep(chance.uniform(0.2, 2.0))  # the random moment itself
        child.send_signal(signal.SIGKILL)
        await child.wait()
        saved = (tmp_path / "vectors" / "saved").glob("*/*-*-*")
        opened |= {folder.name.partition("-")[0] for folder in saved}
        (texts, near), expected = await found(tmp_path, saving=True), await found(tmp_path, saving=False)
        assert texts == expected[0] and near == pytest.approx(expected[1], abs=1e-5)
    assert opened >= {"text", "dense"}, "not everything was saved in any round"


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1])))
