"""Tells a database that is out of service from a mistake of this program."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoneLeft  # raised by a pool

from kernel.libs.asyncpg_connections import DatabaseUnreachable
from kernel.process.machine_faults import kind_of

# Classes of PostgreSQL's error codes (its manual, appendix A) that concern the server's state, not the
# statement: connection, authorization, unknown database, rollback, insufficient resources, object not in the
# required state, operator intervention, system error. SQLAlchemy raises them as a plain DBAPIError.
_STATES = ("08", "28", "3D", "40", "53", "55", "57", "58")
_DEADLOCK = "40P01"
_READ_ONLY = "25006"


class Outage:
    """An outage as work that is tried again and again sees it; the log is told once, not of each attempt.

    `what` says what is not done meanwhile, such as "schedules can't be read".
    """

    def __init__(self, log: logging.Logger, what: str) -> None:
        self._log = log
        self._what = what
        self.lasts = False
        """Whether the last attempt failed."""

    @contextmanager
    def tolerated(self) -> Iterator[None]:
        """One attempt: errors of the database and of the machine end the block, and are not raised."""
        try:
            yield
        except (SQLAlchemyError, OSError) as error:
            if not self.lasts:
                until = (
                    " until the database is back" if isinstance(error, OSError) or is_outage(error) else ""
                )
                self._log.warning("%s%s: %s", self._what, until, kind_of(error))
            self.lasts = True
        else:
            self.lasts = False


def is_outage(error: BaseException) -> bool:
    """Whether trying again later, with nothing changed, may help."""
    return isinstance(error, ConnectionError) or is_database_outage(error)


def is_lost(error: BaseException) -> bool:
    """Whether the connection to the database server was lost or could not be made."""
    if isinstance(error, DBAPIError):  # without a statement, it comes from connecting, or from a commit
        return error.connection_invalidated or (error.statement is None and is_database_outage(error))
    return isinstance(error, DatabaseUnreachable) or _is_from_connecting(error)


def is_read_only(error: BaseException) -> bool:
    """Whether the database server refuses writes, as a standby does."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) == _READ_ONLY


def is_deadlock(error: BaseException) -> bool:
    """Whether the database server ended a transaction because it and others waited for each other."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) == _DEADLOCK


def is_database_outage(error: BaseException) -> bool:
    """Whether the error means that the database is out of service."""
    if isinstance(error, OperationalError | InterfaceError | DatabaseUnreachable | NoneLeft):
        return True
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or _tells_of_the_server(error.orig)
    return _is_from_connecting(error) and (
        isinstance(error, sys.modules["asyncpg"].InterfaceError) or _tells_of_the_server(error)
    )


def _is_from_connecting(error: BaseException) -> bool:
    # SQLAlchemy doesn't wrap the driver's errors while it sets up a new connection.
    driver = sys.modules.get("asyncpg")
    return driver is not None and isinstance(error, driver.InterfaceError | driver.PostgresError)


def _tells_of_the_server(error: BaseException | None) -> bool:
    code = getattr(error, "sqlstate", None) or ""
    return code.startswith(_STATES) or code == _READ_ONLY
