"""Groups in files say what groups in memory say, whatever was changed, saved and opened."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from builtin_plugins.vectors.api import Query
from builtin_plugins.vectors.group_files import FiledGroupIndex
from builtin_plugins.vectors.groups import GroupIndex
from builtin_plugins.vectors.indexes import GROUPS
from kernel.db.engine import Database
from tests.builtin_plugins.vectors.test_index_tidying import tidy
from tests.builtin_plugins.vectors.test_saved_indexes import (
    VECTOR,
    fill,
    home,
    opened,
    points,
    saved,
    working,
)

__all__ = ["home", "saved"]

NAMES = [*(f"{number:036d}" for number in range(40)), "é", "ée", "z" * 64, ""]


def group_of(label: int) -> str:
    return NAMES[label * 7 % len(NAMES)]


def folder_in(path: Path, number: int) -> Path:
    folder = path / str(number)
    folder.mkdir()
    return folder


@pytest.mark.parametrize("seed", range(4))
def test_files_say_what_memory_says(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    plain, index = GroupIndex(), FiledGroupIndex(folder_in(tmp_path, 0))
    first = list(range(0, 300, 2))
    index.begin_loading()
    for one in (plain, index):
        one.add(first, [group_of(label) for label in first])
    index.end_loading()
    for step in range(1, 60):
        labels = chance.sample(range(400), chance.choice([1, 40]))
        match chance.choice(["add", "remove", "reopen"]):
            case "add":
                for one in (plain, index):
                    one.add(labels, [group_of(label) for label in labels])
            case "remove":
                for one in (plain, index):
                    one.remove(labels)
            case _:
                folder = folder_in(tmp_path, step)
                index.link_to(folder)
                index = FiledGroupIndex(folder, index.parameters)
        asked = {*chance.sample(NAMES, chance.choice([0, 1, 9])), "unknown"}
        assert sorted(index.labels_of(asked)) == sorted(plain.labels_of(asked))
        assert index.count == plain.count


def test_what_was_removed_is_not_in_new_files(tmp_path: Path) -> None:
    index = FiledGroupIndex(folder_in(tmp_path, 0))
    index.begin_loading()
    index.add(np.arange(4), ["kept", "gone", "kept", "gone"])
    index.end_loading()
    index.remove([1, 3, 9])
    assert (index.deleted, index.stale) == (2, 0.5)
    folder = folder_in(tmp_path, 1)
    index.link_to(folder)
    assert [file.name for file in folder.iterdir() if b"gone" in file.read_bytes()] == []


async def test_a_filter_after_a_restart_opens_what_was_saved(
    database: Database, home: Path, saved: Path
) -> None:
    store = opened(database, home)
    query = Query(VECTOR, 9, groups=["secret", "late"])
    assert len(await store.search("c", query)) == 3
    await store.settled()
    await store.close()
    (folder,) = saved.parent.glob(f"{GROUPS}-*")
    store = opened(database, home)
    await fill(database, store, points(2, "late", "zebra"))
    assert len(await store.search("c", query)) == 5
    (mine,) = working(home, GROUPS)
    assert (folder / "names.npy").samefile(mine / "names.npy")
    await fill(database, store, gone="secret")
    assert {hit.point.group for hit in await store.search("c", query)} == {"late"}
    await tidy(store, database)
    files = list((home / "vectors").rglob("names.npy"))
    assert files
    assert [file for file in files if b"secret" in file.read_bytes()] == []
    assert {hit.point.group for hit in await store.search("c", query)} == {"late"}
    await store.close()
