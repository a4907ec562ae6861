"""Locks among the processes of an installation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from kernel.db.engine import Database
from kernel.db.locks import installation_lock
from kernel.testing import eventually
from tests.fakes.clusters import Cluster, own_cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL server of this test's own."""
    with own_cluster() as found:
        yield found


async def test_a_shared_lock_outlives_the_servers_restart(cluster: Cluster) -> None:
    """A process in service counts again as soon as the server is back: nobody gets the lock alone."""
    url = cluster.url.replace("postgresql://", "postgresql+asyncpg://")
    serving, other = Database(url), Database(url)
    try:
        async with installation_lock(serving, "serving", shared=True):
            await asyncio.to_thread(cluster.restart, "immediate")
            await eventually(lambda: _held(other), 30)
            with pytest.raises(TimeoutError):
                async with installation_lock(other, "serving", seconds=1):
                    pytest.fail("somebody is in service")
        async with installation_lock(other, "serving", seconds=10):
            pass
    finally:
        await serving.close()
        await other.close()


async def _held(database: Database) -> bool:
    """Whether any session has an advisory lock."""
    query = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted")
    return bool(await database.read(lambda session: session.scalar(query)))
