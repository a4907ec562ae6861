"""Folders: the suite for all sources, and never a step out of the folder."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from builtin_plugins.source_folder.folder import FolderSource, allowed_folder
from builtin_plugins.sources.api import (
    DocumentSource,
    ItemFault,
    ListingEnd,
    SourceItem,
    SourceMisplaced,
    SourceUnreachable,
)
from builtin_plugins.sources.conformance import SourceConformance, SourceWorld, read_item


class FolderWorld(SourceWorld):
    """A folder on the disk."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[DocumentSource]:
        yield FolderSource(self.root)

    async def put(self, path: str, content: bytes) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)

    async def remove(self, path: str) -> None:
        (self.root / path).unlink()

    async def move(self, old: str, new: str) -> None:
        (self.root / new).parent.mkdir(parents=True, exist_ok=True)
        (self.root / old).rename(self.root / new)

    def cut_off(self) -> AbstractAsyncContextManager[object]:
        """A mount that went away leaves nothing in its place."""
        return self._moved(empty=False)

    def shortened(self) -> AbstractAsyncContextManager[object]:
        """Or an empty folder."""
        return self._moved(empty=True)

    @asynccontextmanager
    async def _moved(self, *, empty: bool) -> AsyncIterator[None]:
        away = self.root.with_name("away")
        self.root.rename(away)
        if empty:
            self.root.mkdir()
        yield
        shutil.rmtree(self.root, ignore_errors=True)
        away.rename(self.root)

    @asynccontextmanager
    async def skewed(self) -> AsyncIterator[None]:
        yield
        for place in self.root.rglob("*"):
            os.utime(place, (1, 1))


class TestFolder(SourceConformance):
    """The suite."""

    @pytest.fixture
    def world(self, tmp_path: Path) -> SourceWorld:
        root = tmp_path / "root"
        root.mkdir()
        return FolderWorld(root)


async def listed(root: Path) -> list[SourceItem]:
    found = [one async for one in FolderSource(root).documents(None)]
    assert isinstance(found.pop(), ListingEnd)
    return [one for one in found if isinstance(one, SourceItem)]


async def test_no_link_leads_out(tmp_path: Path) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret.txt"
    (root / "inside").mkdir(parents=True)
    (root / "inside/a.txt").write_text("inside")
    secret.write_text("outside")
    (root / "out.txt").symlink_to(secret)
    (root / "out").symlink_to(tmp_path)
    (root / "in.txt").symlink_to(root / "inside/a.txt")
    (root / "circle").symlink_to(root)
    os.mkfifo(root / "pipe.txt")
    assert [one.path for one in await listed(root)] == ["in.txt", "inside/a.txt"]
    source = FolderSource(root)
    for path in ("out.txt", "out/secret.txt", "../secret.txt", "pipe.txt"):
        with pytest.raises(ItemFault):
            await read_item(source, SourceItem(path, "", path))
    # Put there between the listing and the reading.
    (root / "inside/a.txt").unlink()
    (root / "inside/a.txt").symlink_to(secret)
    with pytest.raises(ItemFault):
        await read_item(source, SourceItem("inside/a.txt", "", "inside/a.txt"))


async def test_hidden_and_temporary_files_are_left_out(tmp_path: Path) -> None:
    names = (
        ".hidden",
        ".git/config",
        "~$open.docx",
        "draft.txt~",
        "a.tmp",
        "b.part",
        "#c#",
        "d.swp",
        "Thumbs.db",
    )
    for name in (*names, "kept.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [one.path for one in await listed(tmp_path)] == ["kept.txt"]


async def test_a_name_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    [one] = await listed(tmp_path)
    assert one.unavailable
    assert one.identity.isascii()


async def test_odd_files_do_not_end_a_listing(tmp_path: Path) -> None:
    """More folders in each other than a program may call itself, and, where a disk keeps it, a time that no
    calendar has.
    """
    (tmp_path / "late.txt").write_text("x")
    os.utime(tmp_path / "late.txt", (10**12, 10**12))
    deep = tmp_path
    for _ in range(400):
        deep /= "d"
        deep.mkdir()
    (deep / "deep.txt").write_text("x")
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(300)
    try:
        found = await listed(tmp_path)
    finally:
        sys.setrecursionlimit(usual)
    assert [one.name for one in found] == ["deep.txt", "late.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_a_folder_that_cannot_be_read_is_no_empty_one(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(SourceUnreachable):
        await listed(tmp_path)


async def test_only_folders_that_the_operator_allows(tmp_path: Path) -> None:
    allowed, other = tmp_path / "allowed", tmp_path / "allowed-not"
    (allowed / "below").mkdir(parents=True)
    other.mkdir()
    (allowed / "link").symlink_to(other)
    assert allowed_folder(str(allowed / "below"), [str(allowed)]) == allowed / "below"
    for path in (other, allowed / "..", allowed / "link", Path("/"), Path("below"), Path("/a\0b")):
        with pytest.raises(SourceMisplaced):
            allowed_folder(str(path), [str(allowed)])
    with pytest.raises(SourceMisplaced):
        allowed_folder(str(allowed), [])
