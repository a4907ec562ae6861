"""Refuses statements outside a unit's transaction on SQLite, where they would be committed by themselves.

With some errors, such as a full disk, SQLite rolls back the whole transaction, not only the statement.
Without a transaction, each further statement is one of its own. PostgreSQL refuses them by itself.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.exc import InvalidRequestError


class TransactionEnded(InvalidRequestError):
    """A unit of work went on after the end of its transaction; nothing of it was written."""


class Guard:
    """Watches the one writing connection of an engine whose transactions start with `begin`."""

    def __init__(self, engine: Engine, begin: str) -> None:
        self._begin = begin
        self._cause: BaseException | None = None
        event.listen(engine, "before_cursor_execute", self._check)
        event.listen(engine, "handle_error", self._failed)

    def failed(self, driver: sqlite3.Connection, error: BaseException) -> None:
        """Keep the error of a statement if the transaction ended with it."""
        if not driver.in_transaction and self._cause is None:
            self._cause = error

    def ended(self) -> TransactionEnded:
        """The error for a unit whose transaction ended too early, with its cause if that is known."""
        if self._cause is None:
            return TransactionEnded(
                "a unit of work committed or rolled back its transaction; leave that to the platform"
            )
        error = TransactionEnded(
            "SQLite rolled back the whole unit of work when one of its statements failed; don't catch that "
            "statement's error inside the unit"
        )
        error.__cause__ = self._cause
        return error

    def _failed(self, context: Any) -> None:
        error, execution = context.original_exception, context.execution_context
        if isinstance(error, sqlite3.Error) and execution is not None:  # else there was no statement
            self.failed(execution.cursor.connection, error)

    def _check(self, _connection: Any, cursor: sqlite3.Cursor, statement: str, *_the_rest: object) -> None:
        if statement == self._begin:
            self._cause = None
        elif not cursor.connection.in_transaction:
            raise self.ended()
