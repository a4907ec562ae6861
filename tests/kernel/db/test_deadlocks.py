"""Units that wait for each other: the server ends one of them, which is then run anew."""

from __future__ import annotations

import asyncio

from sqlalchemy import text

from kernel.db.engine import Database
from kernel.sdk import Unit


async def test_both_end_well(postgres_url: str) -> None:
    """Each locks what the other wants next; the one that is ended begins again."""
    database = Database(postgres_url.replace("postgresql://", "postgresql+asyncpg://"))
    runs: list[str] = []

    def work(unit: Unit, name: str, first: int, second: int) -> str:
        runs.append(name)
        for number in (first, second):
            unit.session.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})
            unit.session.execute(text("SELECT pg_sleep(0.3)"))
        return name

    try:
        async with asyncio.timeout(30):
            ended = await asyncio.gather(
                database.write(work, "one", 7001, 7002), database.write(work, "two", 7002, 7001)
            )
    finally:
        await database.close()
    assert ended == ["one", "two"]
    assert len(runs) == 3, "they did not wait for each other"
