"""Which errors are the machine's fault, and what a client reads of them."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError, OperationalError

from kernel.process.machine_faults import (
    SENTENCES,
    MachineFault,
    is_machine_fault,
    machine_fault,
    public_error,
)
from kernel.sdk import InsufficientStorage


class DriverError(Exception):
    """An error of asyncpg, as far as it matters here."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(sqlstate)
        self.sqlstate = sqlstate


def wrapped(error: BaseException) -> DBAPIError:
    return DBAPIError("SELECT 1", None, error)


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (OSError(errno.ENOSPC, "no space"), "disk_full"),
        (OSError(errno.EDQUOT, "quota"), "disk_full"),
        (OSError(errno.EMFILE, "too many"), "handles"),
        (OSError(errno.ENFILE, "too many"), "handles"),
        (OSError(errno.ENOMEM, "no memory"), "memory"),
        (OSError(errno.EIO, "broken"), "disk"),
        (OSError(errno.EROFS, "read-only"), "disk"),
        (MemoryError(), "memory"),
        (RuntimeError("can't start new thread"), "processes"),
        (InsufficientStorage(), "disk_full"),
        (MachineFault("handles"), "handles"),
        (wrapped(DriverError("53100")), "disk_full"),
        (wrapped(DriverError("53200")), "memory"),
        (ExceptionGroup("several", [ValueError(), OSError(errno.ENOSPC, "no space")]), "disk_full"),
        (FileNotFoundError(errno.ENOENT, "gone"), None),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), None),
        (wrapped(DriverError("23505")), None),
        (RuntimeError("something else"), None),
        (ValueError("nonsense"), None),
    ],
    ids=repr,
)
def test_kinds(error: BaseException, fault: str | None) -> None:
    """Each kind is recognized; faults of a document or a network are none of them."""
    assert machine_fault(error) == fault
    assert is_machine_fault(error) == (fault is not None)


def test_a_cause_counts() -> None:
    """A library that wraps the error hides nothing; a circle of causes ends."""
    error = ValueError("the archive is broken")
    error.__cause__ = OSError(errno.ENOSPC, "no space")
    error.__cause__.__cause__ = error
    assert machine_fault(error) == "disk_full"


def test_sqlite_says_that_it_is_full(tmp_path: Path) -> None:
    """The real driver's error for a database that can't grow."""
    engine = create_engine(f"sqlite:///{tmp_path / 'small.db'}")
    with engine.connect() as connection:
        connection.execute(text("PRAGMA max_page_count=4"))
        connection.execute(text("CREATE TABLE words (word BLOB)"))
        with pytest.raises(OperationalError) as caught:
            connection.execute(text("INSERT INTO words VALUES (zeroblob(1000000))"))
    engine.dispose()
    assert machine_fault(caught.value) == "disk_full"


def test_sqlite_that_is_locked_is_no_fault_of_the_machine(tmp_path: Path) -> None:
    """Waiting helps there too, but nobody needs to make room."""
    path = tmp_path / "busy.db"
    one, two = sqlite3.connect(path, timeout=0), sqlite3.connect(path, timeout=0)
    one.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError) as caught:
        two.execute("BEGIN EXCLUSIVE")
    one.close()
    two.close()
    assert machine_fault(caught.value) is None


def test_what_a_client_reads() -> None:
    """507 for a full disk, 503 for the rest, each with its sentence."""
    assert {fault: public_error(fault).status for fault in SENTENCES} == {
        "damaged": 503,
        "disk_full": 507,
        "disk": 503,
        "memory": 503,
        "handles": 503,
        "processes": 503,
        "uploads": 503,
    }
    assert all(public_error(fault).detail == sentence for fault, sentence in SENTENCES.items())
