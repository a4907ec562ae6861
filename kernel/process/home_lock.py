"""Ensures that a home is used only by processes that share one database.

Two platforms with different databases would use each other's secrets and remove each other's files.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TextIO

from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from kernel.db.engine import Database
from kernel.db.outages import is_outage
from kernel.errors import StartupError

log = logging.getLogger("platform")

_FILE = "database"
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
_POLL = 0.1
_PATIENCE = 3.0  # seconds for a stopping process to release the home


def make_home(home: Path) -> None:
    """Create the folder that holds everything, private to its owner. Raises StartupError."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StartupError(f"PLATFORM_HOME can't be created: {home}: {error.strerror}") from error


@asynccontextmanager
async def home_held(home: Path, database: Database) -> AsyncIterator[None]:
    """Hold the home during the block, together with other processes on the same database.

    Raises StartupError while a process with another database holds it. If the file system has no locks,
    nothing is kept out, and the log says so.
    """
    mine = await _identity(home, database)
    with await asyncio.to_thread(_opened, home / "run" / _FILE) as file:
        try:
            async with asyncio.timeout(_PATIENCE):
                while not await asyncio.to_thread(_join, file, mine):  # noqa: ASYNC110
                    await asyncio.sleep(_POLL)  # held by another process
        except TimeoutError:
            raise StartupError(
                f"another platform, with another database, is running in {home}; give each platform a"
                " separate PLATFORM_HOME, or stop the other one"
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            log.warning(
                "the file system of %s has no file locks: make sure yourself that no platform with another"
                " database runs there",
                home,
            )
        yield


def _opened(path: Path) -> TextIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("a+", encoding="utf-8")


def _join(file: TextIO, mine: str) -> bool:
    """Try to hold the home: succeeds if it is free or held by others with the same database."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if _content(file) == mine:
            return True
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate(0)
        file.write(mine)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(file, fcntl.LOCK_UN)
        return False
    return _content(file) == mine


def _content(file: TextIO) -> str:
    file.seek(0)
    return file.read()


async def _identity(home: Path, database: Database) -> str:
    """An identity of this database that doesn't depend on the address by which it is reached."""
    if database.is_sqlite:
        return await asyncio.to_thread(_of_file, home, make_url(database.url).database or "")
    try:
        return await database.read(_of_server)
    except DBAPIError as error:
        if is_outage(error):
            raise
        return await database.read(_of_database)  # a server that doesn't identify itself


def _of_file(home: Path, database: str) -> str:
    file, root = Path(database).resolve(), home.resolve()
    return f"sqlite {file.relative_to(root) if file.is_relative_to(root) else file}"


def _of_server(session: Session) -> str:
    server = session.scalar(text("SELECT system_identifier FROM pg_control_system()"))
    return f"{_of_database(session)} {server}"


def _of_database(session: Session) -> str:
    query = "SELECT oid, datname FROM pg_database WHERE datname = current_database()"
    row = session.execute(text(query)).one()
    return f"postgresql {row.oid} {row.datname}"
