"""The migrations of plugin_registry make exactly the tables that its models describe."""

from __future__ import annotations

import pytest

from cli import revisions
from kernel.db.migrate import Owner
from kernel.db.startup import SCHEMA
from kernel.testing import Running, Start


def owner_of(running: Running) -> Owner:
    owners = running.platform.resource(SCHEMA).owners()
    return next(owner for owner in owners if owner.name == "plugin_registry")


@pytest.mark.each_database
async def test_no_drift(start_platform: Start, database_url: str | None) -> None:
    """From empty to the newest revision, on both databases."""
    running = await start_platform("plugin_registry", env={"DATABASE_URL": database_url})
    assert await revisions.drift(running.platform.database, owner_of(running)) == []
