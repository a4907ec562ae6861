"""One process at a time writes a collection into the engine.

A lock of the database session on PostgreSQL, a locked file beside a SQLite database: a killed process
releases both.
"""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy import text as sql
from sqlalchemy.engine import make_url

from kernel.sdk import Database

_KEY = 0x6D696C76  # "milv"
_POLL = 0.05  # seconds
_TRY = sql("SELECT pg_try_advisory_lock(:key, :collection)")


@asynccontextmanager
async def turn(database: Database, collection_id: int) -> AsyncIterator[None]:
    """Wait for the turn of a collection, and hold it during the block."""
    if database.is_sqlite:
        path = Path(make_url(database.url).database or "platform.db").with_suffix(".milvus")
        with path.open("a") as handle:
            while not _locked(handle.fileno()):  # noqa: ASYNC110 - held by another process
                await asyncio.sleep(_POLL)
            yield
        return
    async with database.session_connection() as connection:
        try:
            values = {"key": _KEY, "collection": collection_id}
            while not await connection.scalar(_TRY, values):  # noqa: ASYNC110 - held by another process
                await asyncio.sleep(_POLL)
            yield
        finally:
            await connection.invalidate()


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
