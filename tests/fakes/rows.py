"""Rows changed past every service."""

from __future__ import annotations

from typing import Any

from kernel.sdk import Database, Unit


async def execute(database: Database, *statements: Any, tell: tuple[str, str] | None = None) -> None:
    """Execute statements in one transaction; `tell` is a notice (topic, key) that goes with it."""

    def change(unit: Unit) -> None:
        for statement in statements:
            unit.session.execute(statement)
        if tell is not None:
            unit.notify(*tell)

    await database.write(change)
