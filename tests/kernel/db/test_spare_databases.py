"""Databases of tests that are used again are what they were when they were made, or are not used again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from sqlalchemy import select

from kernel.auth.models import Account
from kernel.testing import Running, Start, eventually, postgres_database
from kernel.testing.databases import keep_promise
from kernel.testing.spares import look, put_back


@pytest.fixture
async def running(start_platform: Start, postgres_url: str) -> Running:
    """A platform on the database, with a plugin whose tables begin with rows."""
    return await start_platform("tenancy", env={"DATABASE_URL": postgres_url})


@pytest.fixture
async def connection(running: Running, postgres_url: str) -> AsyncIterator[Any]:
    """A connection past the platform."""
    found = await asyncpg.connect(postgres_url)
    yield found
    await found.close()


async def test_rows_and_numbers_are_put_back(running: Running, connection: Any) -> None:
    """What a test wrote is gone, and the next account is the first one again."""
    made = await look(connection)
    assert made.rows and any(made.sequences.values())
    for _ in range(2):
        await running.user("ana")
        ids = await running.platform.database.read(lambda session: list(session.scalars(select(Account.id))))
        assert ids == [1]
        assert await put_back(connection, made)
        assert await look(connection) == made


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE left_behind (id int)",
        "ALTER TABLE kernel_account ADD COLUMN left_behind int",
        "DROP INDEX {index}",
        "CREATE FUNCTION left_behind() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "ALTER DATABASE {name} SET default_transaction_read_only = on",
        "UPDATE kernel_alembic_version SET version_num = 'another'",
        "DELETE FROM tenancy_role",
    ],
)
async def test_what_else_a_test_has_changed_is_seen(connection: Any, change: str) -> None:
    """Such a database is dropped."""
    made = await look(connection)
    name = await connection.fetchval("SELECT current_database()")
    index = await connection.fetchval(
        "SELECT indexname FROM pg_indexes LEFT JOIN pg_constraint ON conname = indexname "
        "WHERE schemaname = 'public' AND conname IS NULL"
    )
    await connection.execute(change.format(name=name, index=index))
    assert not await put_back(connection, made)


@pytest.mark.long
async def test_an_address_leads_nowhere_afterwards() -> None:
    """Whoever has the address of an earlier test's database finds nothing there, even if it is used again."""
    with postgres_database(by_first=True) as url:
        keep_promise({"DATABASE_URL": url}, ["tenancy"])
        await (await asyncpg.connect(url)).close()

    async def is_gone() -> bool:
        try:
            await (await asyncpg.connect(url)).close()
        except asyncpg.InvalidCatalogNameError:
            return True
        return False

    await eventually(is_gone, seconds=300)  # it waits its turn behind those of earlier tests
