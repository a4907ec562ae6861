"""Processes wake each other: by named pipes beside SQLite, by notifications on PostgreSQL."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from kernel.db.engine import Database
from kernel.db.wakeups import Pipes
from kernel.testing import Start


@pytest_asyncio.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """Pipes never ask it."""
    database = Database(f"sqlite+aiosqlite:///{tmp_path}/test.db")
    yield database
    await database.close()


async def test_a_pipe_wakes_the_others(database: Database, tmp_path: Path) -> None:
    """A notice wakes every other process, but not its sender."""
    first, second, third = (Pipes(tmp_path / "run") for _ in range(3))
    woken = {pipes: asyncio.Event() for pipes in (first, second, third)}
    for pipes, event in woken.items():
        await pipes.start(database, event.set)
    first.tell()
    async with asyncio.timeout(30):
        await asyncio.gather(woken[second].wait(), woken[third].wait())
    assert not woken[first].is_set()
    for pipes in woken:
        await pipes.stop()
    assert list((tmp_path / "run").iterdir()) == []


async def test_a_pipe_left_behind_is_removed(database: Database, tmp_path: Path) -> None:
    """A killed process leaves its pipe; the next sender removes it."""
    left = tmp_path / "wake-of-a-killed-process"
    os.mkfifo(left)
    Pipes(tmp_path).tell()
    assert not left.exists()


async def test_a_pipe_that_is_full(database: Database, tmp_path: Path) -> None:
    """A busy process holds up no sender, and is woken once for all notices."""
    busy, woken = Pipes(tmp_path), asyncio.Event()
    await busy.start(database, woken.set)
    [pipe] = tmp_path.glob("wake-*")  # noqa: ASYNC240
    writing = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while os.write(writing, bytes(65_536)):
            pass
    os.close(writing)
    Pipes(tmp_path).tell()
    async with asyncio.timeout(30):
        await woken.wait()
    await busy.stop()


async def test_no_pipe_can_be_made(database: Database, tmp_path: Path) -> None:
    """Then it is looked regularly, as often as before there were any."""
    (tmp_path / "file").write_text("in the way")
    pipes = Pipes(tmp_path / "file")
    await pipes.start(database, lambda: None)
    assert pipes.patience < 1
    await pipes.stop()


@pytest.mark.parametrize("lost", [False, True])
async def test_a_notice_reaches_the_other_process(
    start_platform: Start, database_url: str | None, lost: bool
) -> None:
    """At once; and when the wake-up is lost, with the next look."""
    extra = {"DATABASE_URL": database_url}
    first = await start_platform(env=extra)
    second = await start_platform(env=extra)
    heard = asyncio.Event()
    second.platform.notices.listen("test", lambda key: heard.set() if key == "key" else None)
    if lost and database_url is None:
        for pipe in (first.platform.settings.home / "run").glob("wake-*"):
            pipe.unlink()
    async with asyncio.timeout(30):
        await first.platform.database.write(lambda unit: unit.notify("test", "key"))
        await heard.wait()
