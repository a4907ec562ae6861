"""Indexes of large collections are saved before anybody searches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from builtin_plugins.vectors.api import IndexFolders, Point, Query
from builtin_plugins.vectors.index_building import IndexBuilding
from builtin_plugins.vectors.index_manifest import read_manifest, write_manifest
from builtin_plugins.vectors.index_saving import WORTH_SAVING
from builtin_plugins.vectors.indexes import CollectionIndexes
from builtin_plugins.vectors.models import CollectionRecord
from builtin_plugins.vectors.store import SqlVectorStore
from kernel.db.engine import Database, Unit

VECTOR = np.array([0.6, 0.8], np.float32)
KINDS = ("dense", "text", "groups")


def saved(home: Path) -> dict[str, Path]:
    """The folders of what is saved of the first collection, by kind."""
    return {path.name.partition("-")[0]: path for path in (home / "vectors" / "saved" / "1").glob("*-*")}


def working(home: Path) -> list[Path]:
    return list((home / "vectors" / "working").glob("*/*-*"))


async def fill(database: Database, home: Path, group: str, count: int, dimension: int = 2) -> None:
    store = SqlVectorStore(database, folders=IndexFolders(home))
    vector = VECTOR[:dimension]

    def write(unit: Unit) -> None:
        store.ensure(unit, "c", dimension, "e")
        points = [Point(f"{group}-{at}", group, at, f"zebra {group}", vector) for at in range(count)]
        store.stage(unit, "c", points)
        store.publish(unit, "c", group)

    await database.write(write)
    await store.close()


@pytest.fixture
def building(database: Database, tmp_path: Path) -> Iterator[IndexBuilding]:
    """Of a process that searches nothing."""
    folders = IndexFolders(tmp_path)

    def indexes_of(record: CollectionRecord) -> CollectionIndexes:
        return CollectionIndexes(record.dimension, 200_000, folders)

    yield IndexBuilding(database, folders, KINDS, indexes_of, quiet=0.05)
    folders.close()


async def test_a_first_search_opens_what_was_built_without_one(
    database: Database, tmp_path: Path, building: IndexBuilding
) -> None:
    await fill(database, tmp_path, "one", WORTH_SAVING)
    await building.build("c")
    before = saved(tmp_path)
    assert set(before) == set(KINDS)
    assert not working(tmp_path), "what is deleted later would stay in these files"
    store = SqlVectorStore(database, folders=IndexFolders(tmp_path))
    hits = await store.search("c", Query(VECTOR, 5, text="zebra", groups=["one"]))
    assert len(hits) == 5
    for kind, folder in before.items():
        (own,) = (path for path in working(tmp_path) if f"-{kind}-" in path.name)
        files = [{file.stat().st_ino for file in one.iterdir()} for one in (folder, own)]
        assert files[0] & files[1], f"the {kind} index was built again"
    await store.close()


@pytest.mark.parametrize(("more", "is_replaced"), [(10, False), (1100, True)])
async def test_what_is_saved_is_replaced_after_many_changes(
    database: Database, tmp_path: Path, building: IndexBuilding, more: int, is_replaced: bool
) -> None:
    await fill(database, tmp_path, "one", WORTH_SAVING)
    await building.build("c")
    before = saved(tmp_path)
    await fill(database, tmp_path, "two", more)
    await building.build("c")
    after = saved(tmp_path)
    assert [before[kind] != after[kind] for kind in KINDS] == [is_replaced] * 3
    store = SqlVectorStore(database, folders=IndexFolders(tmp_path))
    hits = await store.search("c", Query(VECTOR, 5, text="two", groups=["two"]))
    assert len(hits) == 5
    await store.close()


async def test_small_collections_are_left_alone(
    database: Database, tmp_path: Path, building: IndexBuilding
) -> None:
    await fill(database, tmp_path, "one", WORTH_SAVING - 1)
    await building.build("c")
    assert saved(tmp_path) == {} and not working(tmp_path)


async def test_a_collection_without_vectors_has_the_other_indexes(
    database: Database, tmp_path: Path, building: IndexBuilding
) -> None:
    await fill(database, tmp_path, "one", WORTH_SAVING, dimension=0)
    await building.build("c")
    assert set(saved(tmp_path)) == {"text", "groups"}


async def test_what_other_software_saved_is_built_again_at_the_start(
    database: Database, tmp_path: Path, building: IndexBuilding
) -> None:
    await fill(database, tmp_path, "one", WORTH_SAVING)
    await building.build("c")
    before = saved(tmp_path)
    manifest = read_manifest(before["text"])
    assert manifest is not None
    write_manifest(before["text"], manifest.model_copy(update={"software": "tantivy 0.1"}))
    await asyncio.wait_for(until_others(tmp_path, building, before, {"text"}), 60)


async def test_what_nobody_saved_is_built_after_a_start(
    database: Database, tmp_path: Path, building: IndexBuilding
) -> None:
    await fill(database, tmp_path, "one", WORTH_SAVING)
    await asyncio.wait_for(until_others(tmp_path, building, {}, set(KINDS)), 60)


async def test_a_changed_collection_is_looked_at_once_it_is_quiet(
    database: Database, tmp_path: Path, building: IndexBuilding
) -> None:
    await fill(database, tmp_path, "one", WORTH_SAVING)
    await building.build("c")
    before = saved(tmp_path)
    await fill(database, tmp_path, "two", 1100)
    await building.note_change("c")
    await asyncio.wait_for(until_others(tmp_path, building, before, set(KINDS)), 60)


async def until_others(home: Path, building: IndexBuilding, before: dict[str, Path], kinds: set[str]) -> None:
    """Run until what is saved of these kinds, and only of these, is another one."""
    running = asyncio.create_task(building.run())
    try:
        while {kind for kind, folder in saved(home).items() if before.get(kind) != folder} != kinds:  # noqa: ASYNC110 - files
            await asyncio.sleep(0.05)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
