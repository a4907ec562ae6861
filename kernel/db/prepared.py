"""Statements that are compiled once, and read on SQLite without SQLAlchemy's part in each execution.

That part takes 80 µs of processor time where SQLite itself takes 13 (a row by its key). PostgreSQL's round
trip costs more than both, so there they go the ordinary way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sqlalchemy import BindParameter, Select
from sqlalchemy.engine import Dialect, Engine
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
                return (
                    self._near(direct, direct.near, values) if direct.near else self._direct(direct, values)
                )
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


class Elsewhere(Exception):
    """What is read in the event loop takes long or fails: a thread is to read it."""


class Near(Protocol):
    """Which statements are left to threads; see `kernel.db.sqlite_near`."""

    def begins(self, statement: object) -> bool: ...

    def took_long(self, statement: object) -> None: ...


@dataclass(frozen=True)
class Direct:
    """A connection of SQLite's driver, and the engine whose statements it runs; `near` in the event loop."""

    engine: Engine
    driver: sqlite3.Connection
    near: Near | None = None

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
        for listener in direct.engine.dispatch.before_cursor_execute:
            listener(direct.engine, cursor, self.text, given, None, False)
        names = self.names
        records = [dict(zip(names, row, strict=True)) for row in cursor.execute(self.text, given).fetchall()]
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
