"""Statements that are compiled once, and run on SQLite without SQLAlchemy's part in each execution.

That part takes 80 µs of processor time where SQLite itself takes 13 (a row by its key). PostgreSQL's round
trip costs more than both, so there they go the ordinary way.
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

F = TypeVar("F", bound=Callable[..., Any])
Record = dict[str, Any]
Convert = Callable[[Any], Any]

_DIRECT = "direct"
_ONE_STATEMENT = "one_statement"


def one_statement(fn: F) -> F:
    """Mark a function of a session that reads by one statement: it needs no transaction to see one state."""
    setattr(fn, _ONE_STATEMENT, True)
    return fn


def is_one_statement(fn: Callable[..., Any]) -> bool:
    """Whether the function is marked so."""
    return getattr(fn, _ONE_STATEMENT, False)


class Prepared:
    """A SELECT to be read many times; its values are given at each reading by the names of its parameters."""

    def __init__(self, statement: Select[Any]) -> None:
        self._statement = statement
        self._plain: _Plain | None = None

    @one_statement
    def all(self, session: Session, values: Mapping[str, Any]) -> list[Record]:
        """The rows, by the names of their columns."""
        direct: Direct | None = session.info.get(_DIRECT)
        if direct is not None:
            try:
                return (
                    self._near(direct, direct.near, values) if direct.near else self._direct(direct, values)
                )
            except sqlite3.Error as error:
                if direct.in_unit:
                    raise _as_told(error, self._statement) from error
                # The ordinary way meets it again, and says what it means.
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
        except sqlite3.Error:  # stopped, or what a thread will meet again and report
            near.took_long(self)
            raise Elsewhere from None

    def _direct(self, direct: Direct, values: Mapping[str, Any]) -> list[Record]:
        if self._plain is None:  # threads that do this side by side do the same
            self._plain = _compiled(self._statement, direct.engine.dialect)
        return self._plain.rows(direct, values)


class PreparedInsert:
    """An INSERT of one row to be run many times; columns for which no value is given take their defaults.

    What was only added to the session is not written first: flush what the row refers to.
    """

    def __init__(self, statement: Insert) -> None:
        self._statement = statement
        self._plain: dict[tuple[str, ...], _PlainInsert] = {}

    def run(self, session: Session, values: Mapping[str, Any]) -> None:
        """Write a row in a unit. Errors of the database are raised as SQLAlchemy's."""
        connection = session.connection()  # begins savepoints that wait to be begun
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
        except sqlite3.Error as error:  # not tried again: SQLite may have ended the transaction
            raise _as_told(error, self._statement) from error


def insert_new(table: Any, *, is_sqlite: bool) -> Insert:
    """An INSERT into a model's table that leaves out rows that are there already."""
    insert: Any = sqlite_insert if is_sqlite else postgresql_insert
    statement: Insert = insert(table.__table__).on_conflict_do_nothing()
    return statement


class Elsewhere(Exception):
    """What is read in the event loop takes long or fails: a thread is to read it."""


class Near(Protocol):
    """Which statements are left to threads; see `kernel.db.sqlite_near`."""

    def begins(self, statement: object) -> bool: ...

    def took_long(self, statement: object) -> None: ...


@dataclass(frozen=True)
class Direct:
    """A connection of SQLite's driver, and the engine whose statements it runs; `near` in the event loop.

    `in_unit` has a transaction that writes, which SQLite may end with an error.
    """

    engine: Engine
    driver: sqlite3.Connection
    near: Near | None = None
    in_unit: bool = False

    @property
    def info(self) -> dict[str, Any]:
        """What a session over it is to know."""
        return {_DIRECT: self}

    def execute(self, text: str, given: Sequence[Any]) -> sqlite3.Cursor:
        """Run a statement, and notify whoever listens to statements."""
        cursor = self.driver.cursor()
        for listener in self.engine.dispatch.before_cursor_execute:
            listener(self.engine, cursor, text, given, None, False)
        return cursor.execute(text, given)


@dataclass(frozen=True)
class _Plain:
    """A statement as the driver takes it."""

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
    """An INSERT as the driver takes it, with a value for each place."""

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
    """What makes a column's default value."""
    default: Any = column.default
    if not (default.is_scalar or default.is_callable):
        raise TypeError(f"a prepared statement can't compute the default of the column '{column.key}'")
    process = column.type.dialect_impl(dialect).bind_processor(dialect)
    make = default.arg if default.is_callable else lambda _context: default.arg
    return lambda _values: make(None) if process is None else process(make(None))


def _as_told(error: sqlite3.Error, statement: Select[Any] | Insert) -> BaseException:
    """The error as SQLAlchemy raises it."""
    return DBAPIError.instance(str(statement), None, error, sqlite3.Error, hide_parameters=True)


def _parameter(name: str, bind: BindParameter[Any], dialect: Dialect) -> Callable[[Mapping[str, Any]], Any]:
    """What finds the value of one place. A list as a value would change the text: use `Among`."""
    if bind.expanding or bind.literal_execute:
        raise TypeError(f"a prepared statement can't hold the parameter '{name}', whose value is its text")
    process = bind.type.dialect_impl(dialect).bind_processor(dialect)
    if not bind.required:
        value = bind.effective_value if process is None else process(bind.effective_value)
        return lambda values: value
    if process is None:
        return lambda values: values[name]
    return lambda values: process(values[name])
