"""The SQL that a block makes platforms of this process send."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

from sqlalchemy import Engine, event

from kernel.libs.prepared import Direct

_LOOK = 100


@contextmanager
def listening(listen: Callable[..., Any]) -> Iterator[None]:
    """Call `listen` as SQLAlchemy's `before_cursor_execute`, also for statements that go to the driver."""
    execute = Direct.execute

    def told(direct: Direct, text: str, given: Mapping[str, Any]) -> sqlite3.Cursor:
        listen(None, direct.driver.cursor(), text, given, None, False)
        return execute(direct, text, given)

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        with mock.patch.object(Direct, "execute", told):
            yield
    finally:
        event.remove(Engine, "before_cursor_execute", listen)


@contextmanager
def statements() -> Iterator[list[str]]:
    """The statements in their order, without those that the platform sends by itself at any time."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "kernel_notice" not in statement and statement != "BEGIN":
            seen.append(statement)

    with listening(note):
        yield seen


@contextmanager
def sqlite_steps() -> Iterator[list[int]]:
    """How many steps of SQLite's machine all statements take: the same for the same rows, on any computer."""
    steps = [0]

    def count() -> None:
        steps[0] += _LOOK

    def listen(_connection: Any, cursor: Any, *_: Any) -> None:
        cursor.connection.set_progress_handler(count, _LOOK)

    with listening(listen):
        yield steps
