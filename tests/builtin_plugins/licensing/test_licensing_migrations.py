"""The tables of the first release come up to date with what is in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import Connection

from kernel.db.migrate import Owner, alembic_config
from kernel.db.startup import SCHEMA
from kernel.testing import Running, platforms
from tests.builtin_plugins.licensing.licensing_support import LICENSES, look_up, make_listing
from tests.fakes.checkout import Provider, provider_plugin

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.each_database
async def test_an_order_of_the_first_release_is_paid(
    platform_home: Path, database_url: str | None, provider: Provider
) -> None:
    """An order that names no provider yet is settled by the first one whose notice arrives."""
    env = {"DATABASE_URL": database_url}
    named = ("tenancy", "marketplace", "licensing")
    async with platforms(platform_home) as start:
        running = await start(*named, provider_plugin(provider.url), env=env)
        admin = await running.user("ada", role="admin")
        plugin = await make_listing(running, admin)
        path = f"/v1/marketplace/plugins/{plugin['id']}/checkout"
        bought = await admin.post(path, json={"tier": "pro"})
        order = bought.json()["checkout_url"].rpartition("/")[2]
        async with running.platform.database.schema_change() as connection:
            await connection.run_sync(_to, _licensing(running), "0001")
    async with platforms(platform_home) as start:
        running = await start(*named, provider_plugin(provider.url), env=env)
        again = await running.sign_in("ada", admin.password)
        assert (await provider.send(running.url, order, "paid", event="e"))[0] == 200
        assert await look_up(again, admin.user["id"], plugin["id"]) == "pro"
        assert (await again.get(LICENSES)).json()["count"] == 1


def _licensing(running: Running) -> Owner:
    return next(owner for owner in running.platform.resource(SCHEMA).owners() if owner.name == "licensing")


def _to(connection: Connection, owner: Owner, revision: str) -> None:
    command.downgrade(alembic_config(owner, connection), revision)
