"""Statements that are compiled once, and read on SQLite without SQLAlchemy's part in each execution.

That part takes 80 µs of processor time where SQLite itself takes 13 (a row by its key). PostgreSQL's round
trip costs more than both, so there they go the ordinary way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import BindParameter, Select
from sqlalchemy.engine import Connection
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
            with suppress(sqlite3.Error):  # the ordinary way meets it again, and says what it means
                return self._direct(direct, values)
        result = session.connection().execute(self._statement, dict(values))
        names = tuple(result.keys())
        return [dict(zip(names, row, strict=True)) for row in result]

    @one_statement
    def first(self, session: Session, values: Mapping[str, Any]) -> Record | None:
        """The first row, if there is one."""
        rows = self.all(session, values)
        return rows[0] if rows else None

    def _direct(self, direct: Direct, values: Mapping[str, Any]) -> list[Record]:
        if self._plain is None:  # threads that do this side by side do the same
            self._plain = _compiled(self._statement, direct.connection)
        return self._plain.rows(direct, values)


@dataclass(frozen=True)
class Direct:
    """SQLAlchemy's connection to SQLite, and the driver's beneath it."""

    connection: Connection
    driver: sqlite3.Connection

    @classmethod
    def over(cls, connection: Connection) -> Direct:
        """What is beneath `connection`."""
        driver: Any = connection.connection.driver_connection
        return cls(connection, driver)

    @property
    def info(self) -> dict[str, Any]:
        """What a session over it is to know."""
        return {_DIRECT: self}


@dataclass(frozen=True)
class _Plain:
    """A statement as the driver takes it."""

    text: str
    parameters: Sequence[Callable[[Mapping[str, Any]], Any]]
    names: Sequence[str]
    converted: Sequence[tuple[str, Convert]]

    def rows(self, direct: Direct, values: Mapping[str, Any]) -> list[Record]:
        given = tuple([parameter(values) for parameter in self.parameters])
        cursor = direct.driver.cursor()
        for listener in direct.connection.dispatch.before_cursor_execute:
            listener(direct.connection, cursor, self.text, given, None, False)
        names = self.names
        records = [dict(zip(names, row, strict=True)) for row in cursor.execute(self.text, given).fetchall()]
        for name, convert in self.converted:
            for record in records:
                record[name] = convert(record[name])
        return records


def _compiled(statement: Select[Any], connection: Connection) -> _Plain:
    dialect = connection.dialect
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


def _parameter(name: str, bind: BindParameter[Any], dialect: Any) -> Callable[[Mapping[str, Any]], Any]:
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
