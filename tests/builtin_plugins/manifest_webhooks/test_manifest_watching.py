"""Watching a folder of manifests."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path, PosixPath

import pytest
import watchfiles

from builtin_plugins.manifest_webhooks.folder_watch import FolderChanges, scan, watch

LIMIT = 2.0


class Heard:
    """Collects reports, and lets a test wait for one."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[FolderChanges] = asyncio.Queue()

    async def __call__(self, changes: FolderChanges) -> None:
        await self.queue.put(changes)

    async def until(self, condition: Callable[[FolderChanges], bool]) -> FolderChanges:
        async with asyncio.timeout(LIMIT):
            while not condition(changes := await self.queue.get()):
                pass
            return changes


@asynccontextmanager
async def watched(folder: Path, on_change: Callable[[FolderChanges], object]) -> AsyncIterator[None]:
    """Watch while the block runs, and end the watch afterwards."""
    stop = asyncio.Event()
    task = asyncio.create_task(watch(folder, on_change, stop))  # type: ignore[arg-type]
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(LIMIT):
            await task


async def test_life_of_a_file(tmp_path: Path) -> None:
    """A file that is there, then changed, then removed, is reported each time within two seconds."""
    path, heard = tmp_path / "a.yaml", Heard()
    path.write_text("a", encoding="utf-8")
    async with watched(tmp_path, heard):
        await heard.until(lambda changes: changes.added == {path})
        path.write_text("b", encoding="utf-8")
        await heard.until(lambda changes: changes.changed == {path})
        path.unlink()
        await heard.until(lambda changes: changes.removed == {path} and not changes.files)


async def test_saving_by_rename(tmp_path: Path) -> None:
    """An editor that writes beside and renames over is heard, even with the same size and time."""
    path, heard = tmp_path / "a.yaml", Heard()
    path.write_text("a", encoding="utf-8")
    async with watched(tmp_path, heard):
        await heard.until(lambda changes: path in changes.added)
        before = path.stat()
        (tmp_path / ".a.yaml.swp").write_text("b", encoding="utf-8")
        os.utime(tmp_path / ".a.yaml.swp", ns=(before.st_atime_ns, before.st_mtime_ns))
        (tmp_path / ".a.yaml.swp").rename(path)
        await heard.until(lambda changes: changes.changed == {path})


async def test_saving_by_renaming_away(tmp_path: Path) -> None:
    """Editors that save by renaming the file and writing a new one (vim, Emacs) interrupt nothing."""
    path, away, heard = tmp_path / "a.yaml", tmp_path / "a.yaml~", Heard()

    class Saving(PosixPath):
        """The folder, in which the editor comes to its second step just after somebody looked."""

        def iterdir(self) -> Iterator[Path]:  # type: ignore[override]
            found = [Path(one) for one in super().iterdir()]
            if away.exists():
                away.rename(path)
            return iter(found)

    path.write_text("a", encoding="utf-8")
    async with watched(Saving(tmp_path), heard):
        await heard.until(lambda changes: path in changes.added)
        path.rename(away)
        changes = await heard.until(lambda changes: path in changes.changed | changes.removed)
        assert changes.changed == {path}


async def test_folder_that_comes_and_goes(tmp_path: Path) -> None:
    folder, heard = tmp_path / "manifests", Heard()
    path = folder / "a.yaml"
    async with watched(folder, heard):
        for _ in range(2):
            folder.mkdir()
            path.write_text("a", encoding="utf-8")
            await heard.until(lambda changes: path in changes.files)
            shutil.rmtree(folder)
            await heard.until(lambda changes: not changes.files)


async def test_folder_replaced_by_another(tmp_path: Path) -> None:
    """Another folder renamed into the place is watched from then on, as after a deployment."""
    folder, heard = tmp_path / "manifests", Heard()
    folder.mkdir()
    (tmp_path / "next").mkdir()
    (tmp_path / "next" / "a.yaml").write_text("a", encoding="utf-8")
    async with watched(folder, heard):
        folder.rename(tmp_path / "old")
        (tmp_path / "next").rename(folder)
        await heard.until(lambda changes: folder / "a.yaml" in changes.files)
        (folder / "b.yaml").write_text("b", encoding="utf-8")
        await heard.until(lambda changes: folder / "b.yaml" in changes.files)


async def test_known_files_are_not_reported(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a", encoding="utf-8")
    known, stop, heard = scan(tmp_path), asyncio.Event(), Heard()
    (tmp_path / "b.yaml").write_text("b", encoding="utf-8")
    task = asyncio.create_task(watch(tmp_path, heard, stop, known))
    changes = await heard.until(lambda _: True)
    assert changes.added == {tmp_path / "b.yaml"} and set(changes.files) == {
        tmp_path / "a.yaml",
        tmp_path / "b.yaml",
    }
    stop.set()
    await task


async def test_failing_reload_is_repeated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An error of the callback is logged, does not end the watch, and the change is reported again."""
    (tmp_path / "a.yaml").write_text("a", encoding="utf-8")
    heard, calls = Heard(), 0

    async def fail_once(changes: FolderChanges) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError("the database is away")
        await heard(changes)

    async with watched(tmp_path, fail_once):
        assert (await heard.until(lambda _: True)).added == {tmp_path / "a.yaml"}
    assert "the database is away" in caplog.text


async def test_without_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system has no notices left, a regular look still finds changes in time."""

    def exhausted(*_: object, **__: object) -> None:
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr(watchfiles, "watch", exhausted)
    heard = Heard()
    async with watched(tmp_path, heard):
        (tmp_path / "a.yaml").write_text("a", encoding="utf-8")
        await heard.until(lambda changes: tmp_path / "a.yaml" in changes.added)
        (tmp_path / "a.yaml").unlink()
        await heard.until(lambda changes: not changes.files)


async def test_cancellation_ends_the_watch(tmp_path: Path) -> None:
    heard = Heard()
    (tmp_path / "a.yaml").write_text("a", encoding="utf-8")
    task = asyncio.create_task(watch(tmp_path, heard, asyncio.Event()))
    await heard.until(lambda _: True)
    task.cancel()
    async with asyncio.timeout(LIMIT):
        with pytest.raises(asyncio.CancelledError):
            await task


def test_scan_takes_manifests_only(tmp_path: Path) -> None:
    """Temporary and dotfiles, other types and folders are no manifests. Any link is one, good or bad."""
    folder = tmp_path / "manifests"
    (folder / "..data").mkdir(parents=True)
    (folder / "folder.yaml").mkdir()
    (tmp_path / "outside.yaml").write_text("x", encoding="utf-8")
    for name in (
        "a.yaml",
        "b.yml",
        "c.json",
        ".d.yaml",
        "e.yaml~",
        "f.yaml.swp",
        "#g.yaml#",
        "h.txt",
        "..data/i.yaml",
    ):
        (folder / name).write_text("x", encoding="utf-8")
    (folder / "i.yaml").symlink_to("..data/i.yaml")
    (folder / "j.yaml").symlink_to(tmp_path / "outside.yaml")
    (folder / "k.yaml").symlink_to("missing.yaml")
    (folder / "l.yaml").symlink_to("l.yaml")
    assert sorted(path.name for path in scan(folder)) == [
        *("a.yaml", "b.yml", "c.json", "i.yaml"),
        *("j.yaml", "k.yaml", "l.yaml"),
    ]


def test_scan_without_a_folder(tmp_path: Path) -> None:
    """A missing folder, or a file or a link to itself in its place, holds no manifests."""
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "circle").symlink_to("circle")
    assert scan(tmp_path / "absent") == scan(tmp_path / "file") == scan(tmp_path / "circle") == {}
