"""One platform on SQLite and one on PostgreSQL for all tests that leave other tests' rows alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from kernel.testing import Actor, Running, platforms, postgres_database
from tests.builtin_plugins.marketplace.marketplace_support import Requires, graph
from tests.builtin_plugins.tenancy.tenancy_support import somebody


@dataclass
class Market:
    """A platform with a catalog, and what requires what there."""

    running: Running
    admin: Actor
    requires: Requires = field(default_factory=dict)

    async def user(self) -> Actor:
        """A new account."""
        return await somebody(self.running)

    async def fresh_admin(self) -> Actor:
        """A new administrator."""
        return await somebody(self.running, role="admin")


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=["sqlite", "postgresql"])
async def market(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Market]:
    """A catalog, with a cap of five installs for each account."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database()) if request.param == "postgresql" else None
        requires: Requires = {}
        async with platforms(tmp_path_factory.mktemp("market")) as start:
            env = {"DATABASE_URL": url, "MAX_PLUGINS_PER_USER": "5"}
            running = await start("tenancy", "marketplace", graph(requires), env=env)
            yield Market(running, await somebody(running, role="admin"), requires)
