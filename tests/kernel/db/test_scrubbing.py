"""Deleted rows leave SQLite's write-ahead log, also when whoever deleted them doesn't wait for that."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from kernel.db.engine import Database


async def test_a_client_that_leaves(tmp_path: Path) -> None:
    """A statement that is cancelled ends as cancelled, not as an unexpected error; the next one works."""
    database = Database(f"sqlite+aiosqlite:///{tmp_path}/test.db")
    loop = asyncio.get_running_loop()

    def leave(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "wal_checkpoint" in statement:
            loop.call_soon(scrubbing.cancel)

    event.listen(Engine, "before_cursor_execute", leave)
    try:
        scrubbing = asyncio.ensure_future(database.scrub())
        with pytest.raises(asyncio.CancelledError):
            await scrubbing
    finally:
        event.remove(Engine, "before_cursor_execute", leave)
    try:
        await database.scrub()
        assert await database.read(lambda session: session.scalar(text("PRAGMA busy_timeout"))) > 20
    finally:
        await database.close()
