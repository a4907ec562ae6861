"""Statements that are compiled once and run on SQLite without SQLAlchemy's overhead per execution.

The overhead is 80 µs of processor time, against 13 µs in SQLite itself (a row by its key). On PostgreSQL,
where the round trip costs more than both, they run the ordinary way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sqlalchemy import BindParameter, Column, Insert, Select
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.engine import Dialect, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from kernel.db.sqlite_guard import Guard

F = TypeVar("F", bound=Callable[..., Any])
Record = dict[str, Any]
Convert = Callable[[Any], Any]

_DIRECT = "direct"
_ONE_STATEMENT = "one_statement"


def one_statement(fn: F) -> F:
    """Mark a function that reads with one statement: it sees one state without a transaction."""
    setattr(fn, _ONE_STATEMENT, True)
    return fn


def is_one_statement(fn: Callable[..., Any]) -> bool:
    """Whether the function is marked with `one_statement`."""
    return getattr(fn, _ONE_STATEMENT, False)


class Prepared:
    """A SELECT to run many times; each run gives its values by the names of its parameters."""

    def __init__(self, statement: Select[Any]) -> None:
        self._statement = statement
        self._plain: _Plain | None = None

    @one_statement
    def all(self, session: Session, values: Mapping[str, Any]) -> list[Record]:
        """The rows, with their values by column name."""
        direct: Direct | None = session.info.get(_DIRECT)
        if direct is not None:
            try:
                return (
                    self._near(direct, direct.near, values) if direct.near else self._direct(direct, values)
                )
            except sqlite3.Error as error:
                if direct.guard is not None:
                    direct.guard.failed(direct.driver, error)
                    raise _as_told(error, self._statement) from error
                # The ordinary way meets the error again and raises SQLAlchemy's.
        result = session.connection().execute(self._statement, dict(values))
        names = tuple(result.keys())
        return [dict(zip(names, row, strict=True)) for row in result]

    @one_statement
    def first(self, session: Session, values: Mapping[str, Any]) -> Record | None:
        """The first row, if there is one."""
        rows = self.all(session, values)
        return rows[0] if rows else None

    def _near(self, direct: Direct, near: Near, values: Mapping[str, Any]) -> list[Record]:
        if not near.begins(self):
            raise Elsewhere
        try:
            return self._direct(direct, values)
        except sqlite3.Error:  # interrupted, or an error that a thread will meet again and report
            near.took_long(self)
            raise Elsewhere from None

    def _direct(self, direct: Direct, values: Mapping[str, Any]) -> list[Record]:
        if self._plain is None:  # threads that race here get equal results
            self._plain = _compiled(self._statement, direct.engine.dialect)
        return self._plain.rows(direct, values)


class PreparedInsert:
    """An INSERT of one row, to run many times; columns without a value get their defaults.

    Objects added to the session are not flushed first: flush those that the row refers to.
    """

    def __init__(self, statement: Insert) -> None:
        self._statement = statement
        self._plain: dict[tuple[str, ...], _PlainInsert] = {}

    def run(self, session: Session, values: Mapping[str, Any]) -> None:
        """Insert a row in a unit. Database errors are raised as SQLAlchemy's."""
        connection = session.connection()  # begins pending savepoints
        direct: Direct | None = session.info.get(_DIRECT)
        if direct is None:
            connection.execute(self._statement, dict(values))
            return
        given = tuple(values)
        plain = self._plain.get(given)
        if plain is None:
            plain = self._plain[given] = _inserting(self._statement, given, direct.engine.dialect)
        try:
            direct.execute(plain.text, [parameter(values) for parameter in plain.parameters])
        except sqlite3.Error as error:  # not retried: SQLite may have ended the transaction
            if direct.guard is not None:
                direct.guard.failed(direct.driver, error)
            raise _as_told(error, self._statement) from error


def insert_new(table: Any, *, is_sqlite: bool) -> Insert:
    """An INSERT into a model's table that skips existing rows."""
    insert: Any = sqlite_insert if is_sqlite else postgresql_insert
    statement: Insert = insert(table.__table__).on_conflict_do_nothing()
    return statement


class Elsewhere(Exception):
    """A read in the event loop takes too long or fails: a thread must do it."""


class Near(Protocol):
    """Decides which statements are left to threads; see `kernel.db.sqlite_near`."""

    def begins(self, statement: object) -> bool: ...

    def took_long(self, statement: object) -> None: ...


@dataclass(frozen=True)
class Direct:
    """A connection of SQLite's driver and its engine; `near` is set in the event loop.

    With a `guard`, it has a write transaction, which SQLite may end with an error.
    """

    engine: Engine
    driver: sqlite3.Connection
    near: Near | None = None
    guard: Guard | None = None

    @property
    def info(self) -> dict[str, Any]:
        """The `info` of a session over this connection."""
        return {_DIRECT: self}

    def execute(self, text: str, given: Sequence[Any]) -> sqlite3.Cursor:
        """Run a statement and notify the engine's listeners."""
        cursor = self.driver.cursor()
        for listener in self.engine.dispatch.before_cursor_execute:
            listener(self.engine, cursor, text, given, None, False)
        return cursor.execute(text, given)


@dataclass(frozen=True)
class _Plain:
    """A SELECT in the driver's form."""

    text: str
    parameters: Sequence[Callable[[Mapping[str, Any]], Any]]
    names: Sequence[str]
    converted: Sequence[tuple[str, Convert]]

    def rows(self, direct: Direct, values: Mapping[str, Any]) -> list[Record]:
        given = [parameter(values) for parameter in self.parameters]
        names = self.names
        found = direct.execute(self.text, given).fetchall()
        records = [dict(zip(names, row, strict=True)) for row in found]
        for name, convert in self.converted:
            for record in records:
                record[name] = convert(record[name])
        return records


def _compiled(statement: Select[Any], dialect: Dialect) -> _Plain:
    compiled: Any = statement.compile(dialect=dialect)
    columns = statement.selected_columns
    processors = {
        str(column.key): column.type.dialect_impl(dialect).result_processor(dialect, None)
        for column in columns
    }
    return _Plain(
        str(compiled),
        [_parameter(name, compiled.binds[name], dialect) for name in compiled.positiontup],
        tuple(str(column.key) for column in columns),
        [(name, convert) for name, convert in processors.items() if convert is not None],
    )


@dataclass(frozen=True)
class _PlainInsert:
    """An INSERT in the driver's form, with a function for each bound value."""

    text: str
    parameters: Sequence[Callable[[Mapping[str, Any]], Any]]


def _inserting(statement: Insert, given: Sequence[str], dialect: Dialect) -> _PlainInsert:
    compiled: Any = statement.compile(dialect=dialect, column_keys=list(given))
    defaults = {column.key: column for column in compiled.insert_prefetch}
    return _PlainInsert(
        str(compiled),
        [
            _default(defaults[name], dialect)
            if name in defaults
            else _parameter(name, compiled.binds[name], dialect)
            for name in compiled.positiontup
        ],
    )


def _default(column: Column[Any], dialect: Dialect) -> Callable[[Mapping[str, Any]], Any]:
    """A function that makes a column's default value."""
    default: Any = column.default
    if not (default.is_scalar or default.is_callable):
        raise TypeError(f"a prepared statement can't compute the default of the column '{column.key}'")
    process = column.type.dialect_impl(dialect).bind_processor(dialect)
    make = default.arg if default.is_callable else lambda _context: default.arg
    return lambda _values: make(None) if process is None else process(make(None))


def _as_told(error: sqlite3.Error, statement: Select[Any] | Insert) -> BaseException:
    """The driver's error, wrapped as SQLAlchemy would raise it."""
    return DBAPIError.instance(str(statement), None, error, sqlite3.Error, hide_parameters=True)


def _parameter(name: str, bind: BindParameter[Any], dialect: Dialect) -> Callable[[Mapping[str, Any]], Any]:
    """A function that finds a bound value. A list would change the statement's text: use `Among`."""
    if bind.expanding or bind.literal_execute:
        raise TypeError(f"a prepared statement can't hold the parameter '{name}', whose value is its text")
    process = bind.type.dialect_impl(dialect).bind_processor(dialect)
    if not bind.required:
        value = bind.effective_value if process is None else process(bind.effective_value)
        return lambda values: value
    if process is None:
        return lambda values: values[name]
    return lambda values: process(values[name])
