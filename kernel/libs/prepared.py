"""Statements that are compiled once and run on SQLite without SQLAlchemy's overhead per execution.

The overhead is 25 to 80 µs of processor time, against 13 µs in SQLite itself (a row by its key). On
PostgreSQL, where the round trip costs more than both, they run the ordinary way. SQLAlchemy's listeners don't
hear of what goes to the driver.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from sqlalchemy import BindParameter, Insert, Select, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError, InvalidRequestError
from sqlalchemy.orm import Session
from sqlalchemy.sql import visitors
from sqlalchemy.types import TypeEngine


class TransactionEnded(InvalidRequestError):
    """A unit of work went on after the end of its transaction; nothing of it was written."""


class Guard:
    """Refuses statements outside a unit's transaction on SQLite, where they would be committed by themselves.

    With some errors, such as a full disk, SQLite rolls back the whole transaction, not only the statement.
    Without a transaction, each further statement is one of its own. PostgreSQL refuses them by itself. It
    watches the one writing connection of an engine whose transactions start with `begin`.
    """

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
        else:
            self.require_transaction(cursor.connection)

    def require_transaction(self, driver: sqlite3.Connection) -> None:
        """Raise TransactionEnded outside a transaction."""
        if not driver.in_transaction:
            raise self.ended()


F = TypeVar("F", bound=Callable[..., Any])
Record = dict[str, Any]
Convert = Callable[[Any], Any]

_DIRECT = "direct"
_ONE_STATEMENT = "one_statement"
_DIALECT: Final = sqlite.dialect(paramstyle="named")


def one_statement(fn: F) -> F:
    """Mark a function that reads with one statement: it sees one state without a transaction."""
    setattr(fn, _ONE_STATEMENT, True)
    return fn


def is_one_statement(fn: Callable[..., Any]) -> bool:
    """Whether the function is marked with `one_statement`."""
    return getattr(fn, _ONE_STATEMENT, False)


class Elsewhere(Exception):
    """A read in the event loop takes too long or fails: a thread must do it."""


class Near(Protocol):
    """Decides which statements are left to threads; see `kernel.db.sqlite`."""

    def begin(self, statement: object) -> None: ...

    def took_long(self, statement: object) -> None: ...


@dataclass(frozen=True)
class Direct:
    """A connection of SQLite's driver; `near` is set in the event loop.

    With a `guard`, it has a write transaction, which SQLite may end with an error.
    """

    driver: sqlite3.Connection
    near: Near | None = None
    guard: Guard | None = None

    @property
    def info(self) -> dict[str, Any]:
        """The `info` of a session over this connection."""
        return {_DIRECT: self}

    def execute(self, text: str, parameters: Mapping[str, Any]) -> sqlite3.Cursor:
        """Run a statement."""
        if self.guard is not None:
            self.guard.require_transaction(self.driver)
        return self.driver.execute(text, parameters)

    def failed(self, error: sqlite3.Error, statement: Select[Any]) -> BaseException:
        """The driver's error, wrapped as SQLAlchemy would raise it."""
        if self.guard is not None:
            self.guard.failed(self.driver, error)
        return DBAPIError.instance(str(statement), None, error, sqlite3.Error, hide_parameters=True)


class Prepared:
    """A SELECT to run many times; each run gives its values by the names of its parameters."""

    def __init__(self, statement: Select[Any]) -> None:
        self._statement = statement
        self._query: _Query | None = None

    @one_statement
    def all(self, session: Session, values: Mapping[str, Any]) -> list[Record]:
        """The rows, with their values by column name."""
        direct: Direct | None = session.info.get(_DIRECT)
        if direct is not None:
            if direct.near is not None:
                direct.near.begin(self)
            if self._query is None:  # threads that race here get equal results
                self._query = _Query.of(self._statement)
            try:
                return self._query.rows(direct, values)
            except sqlite3.Error as error:
                if direct.near is not None:  # interrupted, or an error that a thread will meet and report
                    direct.near.took_long(self)
                    raise Elsewhere from None
                if direct.guard is not None:
                    raise direct.failed(error, self._statement) from error
                # The ordinary way meets the error again and raises SQLAlchemy's.
        result = session.connection().execute(self._statement, dict(values))
        names = tuple(result.keys())
        return [dict(zip(names, row, strict=True)) for row in result]

    @one_statement
    def first(self, session: Session, values: Mapping[str, Any]) -> Record | None:
        """The first row, if there is one."""
        rows = self.all(session, values)
        return rows[0] if rows else None


def insert_new(table: Any, *, is_sqlite: bool) -> Insert:
    """An INSERT into a model's table that skips existing rows."""
    insert: Any = sqlite.insert if is_sqlite else postgresql.insert
    statement: Insert = insert(table.__table__).on_conflict_do_nothing()
    return statement


@dataclass(frozen=True)
class _Query:
    """A SELECT in the driver's form."""

    text: str
    fixed: Mapping[str, Any]
    stored: Mapping[str, Convert]
    names: Sequence[str]
    read: Mapping[str, Convert]

    @classmethod
    def of(cls, statement: Select[Any]) -> _Query:
        compiled = statement.compile(dialect=_DIALECT)
        columns = {str(column.key): _impl(column.type) for column in statement.selected_columns}
        results = {name: kind.result_processor(_DIALECT, None) for name, kind in columns.items()}
        binds = list(_parameters(statement, set(compiled.params)))
        stored = {bind.key: to for bind in binds if (to := _impl(bind.type).bind_processor(_DIALECT))}
        required_names = {bind.key for bind in binds if bind.required}
        fixed = {
            name: stored[name](value) if name in stored else value
            for name, value in compiled.params.items()
            if name not in required_names
        }
        return cls(
            str(compiled),
            fixed,
            {name: to for name, to in stored.items() if name in required_names},
            tuple(columns),
            {name: convert for name, convert in results.items() if convert is not None},
        )

    def rows(self, direct: Direct, values: Mapping[str, Any]) -> list[Record]:
        parameters = {**self.fixed, **values}
        for name, convert in self.stored.items():
            if name in parameters:  # otherwise the driver says that it is missing
                parameters[name] = convert(parameters[name])
        names = self.names
        rows = direct.execute(self.text, parameters).fetchall()
        records = [dict(zip(names, row, strict=True)) for row in rows]
        for name, convert in self.read.items():
            for record in records:
                record[name] = convert(record[name])
        return records


def _parameters(statement: Select[Any], names: set[str]) -> Iterator[BindParameter[Any]]:
    """The named parameters. A list would change the statement's text: use `Among`."""
    for part in visitors.iterate(statement):
        if not isinstance(part, BindParameter):
            continue
        if part.expanding or part.literal_execute:
            raise TypeError(
                f"a prepared statement can't hold the parameter '{part.key}', whose value is its text"
            )
        if part.key in names:
            yield part
        elif _impl(part.type).bind_processor(_DIALECT) is not None:
            raise TypeError(f"give the value {part.value!r} of a prepared statement a name: bindparam(…)")


def _impl(kind: TypeEngine[Any]) -> TypeEngine[Any]:
    return kind.dialect_impl(_DIALECT)
