"""The migrations of plugin_registry make exactly the tables that its models describe, and keep choices."""

from __future__ import annotations

import pytest
from alembic import command
from sqlalchemy import Connection, text

from kernel.db import migrate
from kernel.db.migrate import Owner, alembic_config
from kernel.db.startup import SCHEMA
from kernel.testing import Running, Start

_HEALTHY = """
INSERT INTO plugin_registry_health VALUES ('{}', 'healthy', '2026-01-01 00:00:00', '2026-01-01 00:00:00')
"""
_SPEECH_OFF = """
INSERT INTO plugin_registry_switched_off (plugin, changed_at) VALUES ('speech', '2026-01-01 00:00:00')
"""


def owner_of(running: Running) -> Owner:
    owners = running.platform.resource(SCHEMA).owners()
    return next(owner for owner in owners if owner.name == "plugin_registry")


@pytest.mark.each_database
async def test_no_drift(start_platform: Start, database_url: str | None) -> None:
    """From empty to the newest revision, on both databases."""
    running = await start_platform("plugin_registry", env={"DATABASE_URL": database_url})
    assert await migrate.drift(running.platform.database, owner_of(running)) == []


@pytest.mark.each_database
async def test_choices_are_kept(start_platform: Start, database_url: str | None) -> None:
    """What was disabled stays so, and news continues where it ran before it was off by default."""
    running = await start_platform("plugin_registry", env={"DATABASE_URL": database_url})
    owner, database = owner_of(running), running.platform.database

    def there_and_back(connection: Connection) -> dict[str, bool]:
        config = alembic_config(owner, connection)
        command.downgrade(config, "0002")
        connection.execute(text("DELETE FROM plugin_registry_health"))
        for plugin in ("news", "rag"):
            connection.execute(text(_HEALTHY.format(plugin)))
        connection.execute(text(_SPEECH_OFF))
        command.upgrade(config, "0003")
        rows = connection.execute(text("SELECT plugin, enabled FROM plugin_registry_switch"))
        return {plugin: bool(enabled) for plugin, enabled in rows}

    async with database.schema_change() as connection:
        assert await connection.run_sync(there_and_back) == {"news": True, "speech": False}
