"""The migrations of manifest_webhooks make exactly the tables that its models describe."""

from __future__ import annotations

from cli import revisions
from kernel.db.startup import SCHEMA
from kernel.testing import Start


async def test_no_drift(start_platform: Start, database_url: str | None) -> None:
    """From empty to the newest revision, on both databases."""
    running = await start_platform("manifest_webhooks", env={"DATABASE_URL": database_url})
    owner = next(
        owner for owner in running.platform.resource(SCHEMA).owners() if owner.name == "manifest_webhooks"
    )
    assert await revisions.drift(running.platform.database, owner) == []
