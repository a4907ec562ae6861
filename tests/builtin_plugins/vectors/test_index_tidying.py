"""What was deleted leaves the files of search indexes, whatever stands in the way."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from builtin_plugins.vectors.api import IndexFolders, VectorSettings, index_folders
from builtin_plugins.vectors.index_manifest import read_manifest, write_manifest
from builtin_plugins.vectors.index_tidying import IndexTidying
from builtin_plugins.vectors.store import SqlVectorStore
from kernel.db.engine import Database, Unit
from kernel.sdk import StoreNeeds
from kernel.settings.loading import KernelSettings
from tests.builtin_plugins.vectors.test_saved_indexes import (
    SECRET,
    SIZE,
    WatchedStore,
    asked,
    exist,
    fill,
    holds,
    home,
    opened,
    points,
    saved,
)

__all__ = ["home", "saved"]


async def tidy(store: SqlVectorStore, database: Database, clear_within: float = 0.0) -> None:
    assert store.folders is not None
    store.folders.clear_within = clear_within
    await IndexTidying(store, database, store.folders).tidy()


@pytest.mark.parametrize("loaded", [True, False])
async def test_words_leave_the_files_of_a_collection_that_became_small(
    database: Database, home: Path, saved: Path, loaded: bool
) -> None:
    store = opened(database, home)
    if loaded:
        await asked(store, "zebra")
    await fill(database, store, gone="g")
    await tidy(store, database)
    assert not holds(home, "zebra")
    assert len(await asked(store, SECRET)) == 3
    await store.close()


def _block_working(home: Path) -> None:
    for path in (home / "vectors" / "working").iterdir():
        path.unlink()
    (home / "vectors" / "working").rmdir()
    (home / "vectors" / "working").write_text("no room for a folder")


async def test_words_leave_the_files_although_new_ones_cant_be_written(
    database: Database, home: Path, saved: Path
) -> None:
    store = opened(database, home)
    await fill(database, store, gone="secret")
    _block_working(home)
    await tidy(store, database)
    assert not holds(home, SECRET)
    assert len(await asked(store, "zebra", SIZE)) == SIZE
    await store.close()


async def test_a_process_that_cant_link_what_another_saved_lets_go_of_its_files(
    databases: tuple[Database, Database], home: Path, saved: Path
) -> None:
    first, second = (opened(database, home) for database in databases)
    for store in (first, second):
        await asked(store, "zebra")
    await fill(databases[0], first, gone="secret")
    await tidy(first, databases[0])
    (folder,) = saved.parent.glob("text-*")
    damaged = next(folder.glob("*.idx"))
    damaged.unlink()  # the file of the first process is another link
    damaged.write_text("")
    await tidy(second, databases[1])
    assert not holds(home, SECRET)
    for store in (first, second):
        assert len(await asked(store, "zebra", SIZE)) == SIZE
        await store.close()


def _built_in(folder: Path, seconds: float) -> None:
    """Make an index one that was built before the clock was set back."""
    manifest = read_manifest(folder)
    assert manifest is not None
    built_at = time.time() + seconds
    write_manifest(folder, manifest.model_copy(update={"built_at": built_at}))
    folder.rename(folder.with_name(f"text-{int(built_at * 1000)}-{manifest.token}"))


def _mark(folder: Path, seconds: float) -> None:
    """Make deletions known since so many seconds from now."""
    for kind in ("text", "dense"):
        mark = folder / f"deletions.{kind}"
        mark.touch()
        os.utime(mark, (time.time() + seconds,) * 2)


async def test_a_clock_set_back_neither_hides_nor_keeps_deleted_words(
    database: Database, home: Path, saved: Path
) -> None:
    _built_in(saved, 3000.0)
    store = opened(database, home)
    await asked(store, "zebra")
    await fill(database, store, gone="secret")
    assert await asked(store, SECRET) == []
    await store.settled()
    folders = IndexFolders(home)
    # Text and vectors, each saved and in use; the groups, too, name what was deleted.
    assert len(holds(home, SECRET)) == 4 and folders.older_than(time.time(), {1}, {1}) == 6
    _mark(saved.parent, 3000.0)
    await tidy(store, database, clear_within=3600.0)
    assert not holds(home, SECRET)
    await store.close()


async def test_an_index_built_during_a_deletion_counts_as_older(
    databases: tuple[Database, Database], home: Path
) -> None:
    """Its rows may still be read when the receipt has its time; they are read again after the commit."""
    store, other = opened(databases[0], home), opened(databases[1], home)
    await fill(databases[0], store, points(SIZE, "g", "zebra"), points(3, "secret", SECRET))
    removed, ending = asyncio.Event(), threading.Event()
    loop, moments = asyncio.get_running_loop(), []

    def remove(unit: Unit) -> None:
        store.remove_group(unit, "c", "secret")
        moments.append(time.time())
        loop.call_soon_threadsafe(removed.set)
        ending.wait(20)

    deletion = asyncio.create_task(databases[0].write(remove))
    await removed.wait()
    search = asyncio.create_task(asked(other, "zebra"))
    await asyncio.wait({search}, timeout=1)  # it ends, or waits for the deletion
    ending.set()
    await asyncio.gather(deletion, search)
    await other.settled()
    assert IndexFolders(home).older_than(moments[0], {1}, {1}) >= len(holds(home, SECRET))
    await store.close()
    await other.close()


async def test_unfinished_files_of_a_killed_process_count_as_older(home: Path, saved: Path) -> None:
    folders = IndexFolders(home)
    moment = time.time()
    assert folders.older_than(0.0, {1}, {1}) == 0
    folders.new_saved(1)
    assert folders.older_than(0.0, {1}, {1}) == 1
    assert folders.older_than(moment, {2}, {1, 2}) == 0


class LateStore(SqlVectorStore):
    """While it renews the first collection, another process saves the second."""

    meanwhile: Callable[[], object]

    async def renew(self, collection: str, kind: str) -> None:
        await super().renew(collection, kind)
        await self.meanwhile()  # type: ignore[misc]


async def test_what_is_saved_while_others_are_tidied_stays(
    databases: tuple[Database, Database], home: Path, saved: Path
) -> None:
    store = LateStore(databases[0], folders=IndexFolders(home, 0.0))
    other = opened(databases[1], home)
    (saved.parent.parent / "2").mkdir()

    def write(unit: Unit) -> None:
        other.ensure(unit, "d", 4, "e")
        other.stage(unit, "d", points(SIZE, "h", "lion"))
        other.publish(unit, "d", "h")

    async def meanwhile() -> None:
        await databases[1].write(write)
        await other.renew("d", "text")

    store.meanwhile = meanwhile
    await databases[1].write(lambda unit: other.ensure(unit, "d", 4, "e"))
    await fill(databases[0], store, gone="secret")
    await tidy(store, databases[0])
    assert len(list((saved.parent.parent / "2").glob("text-*"))) == 1
    for each in (store, other):
        await each.close()


async def test_a_start_completes_what_is_due(database: Database, home: Path, saved: Path) -> None:
    store = WatchedStore(database, home)
    assert store.folders is not None
    store.folders.clear_within = 3600.0
    await fill(database, store, gone="secret")
    _mark(saved.parent, -3600.0)
    await store.start()
    async with asyncio.timeout(20):
        await store.renewed.wait()
    assert not holds(home, SECRET)
    await store.close()


async def test_folders_that_can_be_written_again_are_used(database: Database, home: Path) -> None:
    (home / "vectors").write_text("not a folder")
    store = opened(database, home)
    assert store.folders is not None
    await fill(database, store, points(SIZE, "g", "zebra"))
    await asked(store, "zebra")
    assert store.folders.fault is not None
    (home / "vectors").unlink()
    await tidy(store, database)
    assert store.folders.fault is None
    await fill(database, store, points(1, "late", "lion"))
    await asked(store, "lion")
    await store.settled()
    assert store.folders.saved(1, "text") is not None
    await store.close()


async def test_what_is_not_saved_is_saved_later(database: Database, home: Path, saved: Path) -> None:
    store = opened(database, home)
    await asked(store, "zebra")
    shutil.rmtree(saved)
    (saved.parent / "deletions.text").touch()
    await tidy(store, database)
    assert store.folders is not None and store.folders.saved(1, "text") is not None
    await store.close()


async def test_nothing_is_left_when_saving_is_turned_off(database: Database, home: Path, saved: Path) -> None:
    left = home / "vectors" / "working" / "7" / "1-text-1-0123456789abcdef0123456789abcdef"
    left.mkdir(parents=True)
    left.parent.with_suffix(".lock").touch()
    kernel = KernelSettings(home=home, database_url=None)
    off = VectorSettings.model_validate({"PLATFORM_VECTORS_SAVE_INDEXES": False})
    needs = SimpleNamespace(settings=kernel, settings_of=lambda _: off)
    assert index_folders(cast(StoreNeeds, needs)) is None
    assert exist(left, saved) == [False, False]
