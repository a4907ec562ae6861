"""Recognizes faults of the machine: no disk space, memory or handles, a bad disk, a missing server.

Work that fails for such a reason succeeds once the machine is well. It is retried, and never blamed on a
document or a caller.
"""

from __future__ import annotations

import errno
import sqlite3
from typing import Final, Literal, TypeAlias

from kernel.errors import InsufficientStorage, PlatformError, Unavailable

Fault: TypeAlias = Literal["disk_full", "disk", "damaged", "memory", "handles", "processes", "uploads"]

SENTENCES: Final[dict[Fault, str]] = {
    "disk_full": "The server's disk is full; ask the operator to free some space, then try again",
    "disk": "The server's disk can't be read or written; ask the operator to check it, then try again",
    "damaged": "The database is damaged; ask the operator to run 'platformctl doctor' and restore a backup",
    "memory": "The server is out of memory; try again later",
    "handles": "The server has too many files or connections open; try again later",
    "processes": "The server can't start another process or thread; try again later",
    "uploads": "The storage of uploaded files can't be reached; try again later",
}
"""Texts for clients, by kind of fault."""

FOR_OPERATORS: Final[dict[Fault, str]] = {
    "disk_full": "the disk is full: free some space and try again",
    "damaged": "the database is damaged: run 'platformctl doctor', and restore a backup",
    "memory": "the machine is out of memory: free some memory and try again",
    "handles": "too many files or connections are open: raise the limit (ulimit -n) and try again",
    "processes": "no further process or thread can be started: stop some, or raise the limit (ulimit -u)",
}
"""Texts for operators in the terminal; other faults are described by their own error."""

_BY_ERRNO: Final[dict[int, Fault]] = {
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
    errno.EIO: "disk",
    errno.EROFS: "disk",
    errno.ENOMEM: "memory",
    errno.EMFILE: "handles",
    errno.ENFILE: "handles",
}
# PostgreSQL's manual, appendix A: classes 53 (insufficient resources), 58 (system error), XX (corruption).
_BY_SQLSTATE: Final[dict[str, Fault]] = {
    "53100": "disk_full",
    "53200": "memory",
    "53300": "handles",
    "53400": "handles",
    "58030": "disk",
    "XX001": "damaged",
    "XX002": "damaged",
}
_BY_SQLITE: Final[dict[int, Fault]] = {
    sqlite3.SQLITE_FULL: "disk_full",
    sqlite3.SQLITE_IOERR: "disk",
    sqlite3.SQLITE_CANTOPEN: "disk",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_NOTADB: "damaged",
    sqlite3.SQLITE_IOERR_NOMEM: "memory",
    sqlite3.SQLITE_NOMEM: "memory",
}
_NO_THREAD: Final = "can't start new thread"


class MachineFault(Exception):
    """The machine is at fault, and trying again later may help. The text is public."""

    def __init__(self, fault: Fault) -> None:
        self.fault: Fault = fault
        super().__init__(SENTENCES[fault])


def machine_fault(error: BaseException) -> Fault | None:
    """The machine fault behind an error or its causes; None if the machine is not to blame."""
    visited: set[int] = set()
    pending: list[BaseException] = [error]
    while pending:
        item = pending.pop()
        if id(item) in visited:
            continue
        visited.add(id(item))
        fault = _fault_of(item)
        if fault is not None:
            return fault
        pending += _behind(item)
    return None


def brief(fault: Fault) -> str:
    """What is wrong, without the remedy."""
    return SENTENCES[fault].partition(";")[0]


def kind_of(error: BaseException) -> str:
    """For logs: the machine fault, otherwise the error's type, as its text may contain private values."""
    fault = machine_fault(error)
    return type(error).__name__ if fault is None else brief(fault)


def is_machine_fault(error: BaseException) -> bool:
    """Whether an error is the machine's fault: no space, memory, file handles, processes, or a bad disk."""
    return machine_fault(error) is not None


def public_error(fault: Fault) -> PlatformError:
    """The error for clients: 507 for a full disk, otherwise 503."""
    kind = InsufficientStorage if fault == "disk_full" else Unavailable
    return kind(SENTENCES[fault])


def _fault_of(error: BaseException) -> Fault | None:
    if isinstance(error, MachineFault):
        return error.fault
    if isinstance(error, InsufficientStorage):
        return "disk_full"
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, OSError):
        return _BY_ERRNO.get(error.errno or 0)
    if isinstance(error, RuntimeError) and _NO_THREAD in str(error):
        return "processes"
    return _of_database(error)


def _of_database(error: BaseException) -> Fault | None:
    """The fault by the code of the driver's error, without importing any driver."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None) or 0
        return _BY_SQLITE.get(code) or _BY_SQLITE.get(code & 0xFF)
    return _BY_SQLSTATE.get(str(getattr(error, "sqlstate", None)))


def _behind(error: BaseException) -> list[BaseException]:
    """The error's cause, the driver's error that SQLAlchemy wraps, and the members of a group."""
    members = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    causes = (error.__cause__, getattr(error, "orig", None), *members)
    return [item for item in causes if isinstance(item, BaseException)]
