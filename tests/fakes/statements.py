"""The SQL that a block makes platforms of this process send."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event

_LOOK = 100


@contextmanager
def statements() -> Iterator[list[str]]:
    """The statements in their order, without those that the platform sends by itself at any time."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "kernel_notice" not in statement and statement != "BEGIN":
            seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


@contextmanager
def sqlite_steps() -> Iterator[list[int]]:
    """How many steps of SQLite's machine all statements take: the same for the same rows, on any computer."""
    steps = [0]

    def count() -> None:
        steps[0] += _LOOK

    def listen(_connection: Any, cursor: Any, *_: Any) -> None:
        cursor.connection.set_progress_handler(count, _LOOK)

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        yield steps
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
