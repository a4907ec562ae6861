"""Indexes in files: opened at the next start if they are right, and rid of what is deleted."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest
import tantivy
from sqlalchemy import delete, func, select

from builtin_plugins.vectors.api import IndexFolders, Point, Query
from builtin_plugins.vectors.index_manifest import FILE, read_manifest, write_manifest
from builtin_plugins.vectors.index_saving import WORTH_SAVING
from builtin_plugins.vectors.index_tidying import IndexTidying
from builtin_plugins.vectors.indexes import TEXT
from builtin_plugins.vectors.models import SavedIndexRecord
from builtin_plugins.vectors.store import SqlVectorStore
from kernel.db.engine import Database, Unit

SIZE = WORTH_SAVING + 100
VECTOR = np.array([0.9, 0.1, 0.2, 0.3], np.float32)
SECRET = "xylophonist"
SECRET_VECTOR = np.array([0.85, 0.2, 0.3, 0.4], np.float32)


def vector_of(text: str) -> np.ndarray:
    return SECRET_VECTOR if text == SECRET else VECTOR


def points(count: int, group: str, text: str) -> list[Point]:
    return [Point(f"{group}-{at}", group, at, f"{text} w{at}w", vector_of(text)) for at in range(count)]


async def fill(database: Database, store: SqlVectorStore, *groups: list[Point], gone: str = "") -> None:
    def write(unit: Unit) -> None:
        store.ensure(unit, "c", 4, "e")
        if gone:
            store.remove_group(unit, "c", gone)
        for group in groups:
            store.stage(unit, "c", group)
            store.publish(unit, "c", group[0].group)

    await database.write(write)


async def asked(store: SqlVectorStore, words: str, k: int = 10) -> list[tuple[str, float | None]]:
    hits = await store.search("c", Query(VECTOR, k, text=words))
    return [(hit.point.id, hit.words) for hit in hits if hit.words]


async def near(store: SqlVectorStore, vector: np.ndarray, k: int) -> dict[str, float]:
    return {hit.point.id: hit.cosine for hit in await store.search("c", Query(vector, k))}


def opened(database: Database, home: Path) -> SqlVectorStore:
    return SqlVectorStore(database, folders=IndexFolders(home, 0.0))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
async def saved(database: Database, home: Path) -> AsyncIterator[Path]:
    """The folder of an index that an ended process saved."""
    store = opened(database, home)
    await fill(database, store, points(SIZE, "g", "zebra"), points(3, "secret", SECRET))
    await asked(store, "zebra")
    await store.settled()
    await store.close()
    (folder,) = (home / "vectors" / "saved" / "1").glob("text-*")
    yield folder


def set_back(unit: Unit) -> None:
    """Make the database one that never saved an index."""
    unit.session.execute(delete(SavedIndexRecord))


def exist(*paths: Path) -> list[bool]:
    return [path.exists() for path in paths]


def working(home: Path, kind: str = "text") -> list[Path]:
    return list((home / "vectors" / "working").glob(f"*/*-{kind}-*"))


def inodes(folder: Path) -> set[int]:
    return {file.stat().st_ino for file in folder.iterdir() if file.suffix in (".idx", ".faiss")}


def vectors_beside(saved: Path) -> Path:
    """The folder of the saved vectors."""
    (folder,) = saved.parent.glob("dense-*")
    return folder


async def test_groups_are_saved_before_a_search_needs_them(
    database: Database, home: Path, saved: Path
) -> None:
    (folder,) = saved.parent.glob("groups-*")
    store = opened(database, home)
    hits = await store.search("c", Query(VECTOR, 10, groups=["secret"]))
    assert {hit.point.group for hit in hits} == {"secret"} and len(hits) == 3
    await store.settled()
    assert list(saved.parent.glob("groups-*")) == [folder]
    await store.close()


async def test_a_restart_opens_what_was_saved_and_catches_up(
    database: Database, home: Path, saved: Path
) -> None:
    plain = SqlVectorStore(database)
    store = opened(database, home)
    await fill(database, store, points(5, "late", "zebra stripes"), gone="secret")
    for words in ("stripes", "w7w", SECRET):
        found, expected = dict(await asked(store, words)), dict(await asked(plain, words))
        assert found == pytest.approx(expected, rel=0.01)
    for vector in (VECTOR, SECRET_VECTOR):
        assert await near(store, vector, SIZE + 9) == pytest.approx(await near(plain, vector, SIZE + 9))
    for kind, folder in (("text", saved), ("dense", vectors_beside(saved))):
        (mine,) = working(home, kind)
        assert inodes(folder) <= inodes(mine), "the files are the saved ones, mapped by all processes"
    await store.close()
    assert working(home, "*") == []
    await plain.close()


async def test_files_are_private(saved: Path, home: Path) -> None:
    assert [path for path in (home / "vectors", saved.parent, saved) if path.stat().st_mode & 0o077] == []


def _truncate(folder: Path) -> None:
    file = next(folder.glob("*.idx"))
    os.truncate(file, file.stat().st_size // 2)


def _flip(folder: Path) -> None:
    file = next(folder.glob("*.term"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def _tear(folder: Path) -> None:
    (folder / FILE).write_text((folder / FILE).read_text()[:-20])


def _changed(**values: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        manifest = read_manifest(folder)
        assert manifest is not None
        write_manifest(folder, manifest.model_copy(update=values))

    return change


@pytest.mark.parametrize(
    "damage",
    [
        _truncate,
        _flip,
        _tear,
        lambda folder: next(folder.glob("*.pos")).unlink(),
        lambda folder: (folder / FILE).unlink(),
        _changed(format=0),
        _changed(software="tantivy 0.1"),
        _changed(engine="another"),
        _changed(token="0" * 32),
        _changed(version=1),
        _changed(version=99),
    ],
)
async def test_files_that_are_not_right_are_built_again(
    database: Database, home: Path, saved: Path, damage: Callable[[Path], None]
) -> None:
    before = inodes(saved)
    damage(saved)
    store = opened(database, home)
    assert [found for found, _ in await asked(store, SECRET)] == ["secret-0", "secret-1", "secret-2"]
    assert len(await asked(store, "zebra", SIZE + 10)) == SIZE
    (mine,) = working(home)
    assert not inodes(mine) & before
    await store.close()


def _cut_vectors(folder: Path) -> None:
    os.truncate(folder / "000001.faiss", 5000)


def _flip_vectors(folder: Path) -> None:
    content = bytearray((folder / "000001.faiss").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "000001.faiss").write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        _cut_vectors,
        _flip_vectors,
        _tear,
        lambda folder: (folder / "000001.labels.npy").unlink(),
        _changed(software="faiss 0.1"),
        _changed(version=99),
    ],
)
async def test_vectors_that_are_not_right_are_loaded_again(
    database: Database, home: Path, saved: Path, damage: Callable[[Path], None]
) -> None:
    folder = vectors_beside(saved)
    before = inodes(folder)
    damage(folder)
    store = opened(database, home)
    assert set(await near(store, SECRET_VECTOR, 3)) == {"secret-0", "secret-1", "secret-2"}
    assert len(await near(store, VECTOR, SIZE + 10)) == SIZE + 3
    (mine,) = working(home, "dense")
    assert not inodes(mine) & before
    await store.close()


async def test_a_database_that_was_set_back_is_noticed(database: Database, home: Path, saved: Path) -> None:
    """Its versions are the same again, but what they mean is not: the token that was saved is missing."""
    await database.write(set_back)
    store = opened(database, home)
    before = inodes(saved)
    assert len(await asked(store, SECRET)) == 3
    (mine,) = working(home)
    assert not inodes(mine) & before
    await store.settled()
    assert exist(saved) == [False]
    await store.close()


async def test_files_of_another_database_are_removed(database: Database, home: Path, saved: Path) -> None:
    await database.write(set_back)
    store = opened(database, home)
    assert store.folders is not None
    await IndexTidying(store, database, store.folders).tidy()
    assert exist(saved) == [False]
    await store.close()


def holds(home: Path, word: str) -> list[Path]:
    """The folders whose files have a term, or its points' vector, also of points that are removed."""
    folders = [file.parent for file in (home / "vectors").rglob("meta.json")]
    texts = [one for one in folders if tantivy.Index.open(str(one)).searcher().doc_freq("text", word)]
    vector = vector_of(word).astype(np.float16).tobytes()
    return texts + [
        file.parent for file in (home / "vectors").rglob("*.faiss") if vector in file.read_bytes()
    ]


async def test_deleted_words_leave_the_files_of_all_processes(
    databases: tuple[Database, Database], home: Path, saved: Path
) -> None:
    stores = [opened(database, home) for database in databases]
    for store in stores:
        assert len(await asked(store, SECRET)) == 3
    deleted_at = time.time()
    await fill(databases[0], stores[0], gone="secret")
    assert [await asked(store, SECRET) for store in stores] == [[], []]
    folders = stores[0].folders
    assert folders is not None
    for store in stores:
        await store.settled()
    # Three indexes: the saved one, and that of each process.
    assert holds(home, SECRET) and folders.older_than(deleted_at, {1}, {1}) == 9
    for store, database in zip(stores, databases, strict=True):
        await IndexTidying(store, database, folders).tidy()
    assert not holds(home, SECRET) and folders.older_than(deleted_at, {1}, {1}) == 0
    for store in stores:
        assert len(await asked(store, "zebra", SIZE + 10)) == SIZE
        await store.close()
    for kind in ("text", "dense", "groups"):
        assert len(list(saved.parent.glob(f"{kind}-*"))) == 1


async def test_words_deleted_while_no_index_is_open_leave_the_files(
    database: Database, home: Path, saved: Path
) -> None:
    store = opened(database, home)
    await fill(database, store, gone="secret")
    assert store.folders is not None and holds(home, SECRET)
    await IndexTidying(store, database, store.folders).tidy()
    assert not holds(home, SECRET) and store.folders.saved(1, "text") is not None
    await store.close()


class WatchedStore(SqlVectorStore):
    """Says when it has built an index again."""

    async def renew(self, collection: str, kind: str) -> None:
        await super().renew(collection, kind)
        if kind == TEXT:
            self.renewed.set()

    def __init__(self, database: Database, home: Path) -> None:
        super().__init__(database, folders=IndexFolders(home, 0.0))
        self.renewed = asyncio.Event()


async def test_a_deletion_is_completed_by_itself(database: Database, home: Path, saved: Path) -> None:
    store = WatchedStore(database, home)
    await fill(database, store, gone="secret")
    await store.start()
    async with asyncio.timeout(20):
        await store.renewed.wait()
    assert not holds(home, SECRET)
    await store.close()


async def test_a_dropped_collection_leaves_no_files(database: Database, home: Path, saved: Path) -> None:
    store = opened(database, home)
    await asked(store, "zebra")
    await database.write(store.drop, "c")
    assert exist(saved) == [False]
    await store.purge()
    rows = select(func.count()).select_from(SavedIndexRecord)
    assert await database.read(lambda session: session.scalar(rows)) == 0
    await store.close()
    assert working(home) == []


async def test_without_a_writable_folder_searches_are_right_and_the_fault_is_named(
    database: Database, home: Path
) -> None:
    (home / "vectors").write_text("not a folder")
    store = opened(database, home)
    await fill(database, store, points(SIZE, "g", "zebra"))
    assert len(await asked(store, "zebra", SIZE)) == SIZE
    await store.settled()
    assert store.folders is not None and store.folders.fault is not None
    await store.close()


async def test_an_index_whose_folder_disappears_is_built_in_memory(
    database: Database, home: Path, saved: Path
) -> None:
    """As on a disk that became full or unwritable: the change can't be written, and the search is right."""
    store = opened(database, home)
    await asked(store, "zebra")
    (mine,) = working(home)
    shutil.rmtree(mine)
    mine.write_text("")
    await fill(database, store, points(1, "late", "giraffe"), gone="secret")
    assert [found for found, _ in await asked(store, "giraffe")] == ["late-0"]
    assert await asked(store, SECRET) == [] and len(await asked(store, "zebra", SIZE + 9)) == SIZE
    mine.unlink()
    await store.close()


async def test_what_a_killed_process_left_is_removed(database: Database, home: Path, saved: Path) -> None:
    left = home / "vectors" / "working" / "7" / "1-text-1-0123456789abcdef0123456789abcdef"
    left.mkdir(parents=True)
    left.parent.with_suffix(".lock").touch()
    unfinished = saved.with_name("new-1")
    unfinished.mkdir()
    store = opened(database, home)
    assert store.folders is not None
    await IndexTidying(store, database, store.folders).tidy()
    assert exist(left, unfinished, saved) == [False, False, True]
    await store.close()


async def test_a_small_collection_has_no_files(database: Database, home: Path) -> None:
    store = opened(database, home)
    await fill(database, store, points(100, "g", "zebra"))
    assert len(await asked(store, "zebra", 100)) == 100
    await store.settled()
    assert not (home / "vectors").exists()
    await fill(database, store, points(SIZE, "more", "zebra"))
    assert len(await asked(store, "zebra", SIZE + 100)) == SIZE + 100
    await store.settled()
    assert store.folders is not None and store.folders.saved(1, "text") is not None
    await store.close()


async def test_processes_use_what_one_of_them_has_saved(
    databases: tuple[Database, Database], home: Path, saved: Path
) -> None:
    """Each would otherwise have in its own memory what came since its start."""
    stores = [opened(database, home) for database in databases]
    for store in stores:
        await asked(store, "zebra")
    await fill(databases[0], stores[0], points(1100, "late", "lion"))
    for store in stores:
        assert len(await asked(store, "lion", 1200)) == 1100
        await store.settled()
    for kind in ("text", "dense"):
        (folder,) = saved.parent.glob(f"{kind}-*")
        assert all(inodes(folder) <= inodes(mine) for mine in working(home, kind))
    for store in stores:
        assert len(await near(store, VECTOR, SIZE * 2)) == SIZE + 1103
        await store.close()


async def test_an_approximate_index_is_trained_once(databases: tuple[Database, Database], home: Path) -> None:
    vectors = np.random.default_rng(1).normal(size=(SIZE, 4)).astype(np.float32)
    cloud = [Point(f"p{at}", "g", at, "zebra", vector) for at, vector in enumerate(vectors)]
    stores = [SqlVectorStore(one, exact_up_to=1000, folders=IndexFolders(home, 0.0)) for one in databases]
    await fill(databases[0], stores[0], cloud, points(3, "secret", SECRET))
    for store in stores:
        await near(store, VECTOR, 10)
        await store.settled()
    (saved,) = (home / "vectors" / "saved" / "1").glob("dense-*")
    manifest = read_manifest(saved)
    assert manifest is not None and manifest.parameters["form"] == "approximate"
    for mine in working(home, "dense"):
        assert inodes(saved) <= inodes(mine)
    await fill(databases[0], stores[0], gone="secret")
    for store, database in zip(stores, databases, strict=True):
        hits = await near(store, SECRET_VECTOR, SIZE + 9)
        assert len(hits) == SIZE and "secret-0" not in hits
        assert store.folders is not None
        await IndexTidying(store, database, store.folders).tidy()
        (folder,) = (home / "vectors" / "saved" / "1").glob("dense-*")
        renewed = read_manifest(folder)
        assert renewed is not None and renewed.parameters == {"deleted": "0", "form": "approximate"}
    for store in stores:
        await store.close()
