"""One platform on SQLite and one on PostgreSQL for all tests that leave other tests' rows alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from kernel.testing import Actor, Running
from tests.builtin_plugins.marketplace.marketplace_support import Requires, graph
from tests.builtin_plugins.tenancy.tenancy_support import somebody
from tests.fakes.kept import Kept


@dataclass
class Market:
    """A platform with a catalog, and what requires what there."""

    running: Running
    admin: Actor
    requires: Requires = field(default_factory=dict)

    async def user(self) -> Actor:
        return await somebody(self.running)

    async def fresh_admin(self) -> Actor:
        return await somebody(self.running, role="admin")


@pytest.fixture(scope="session")
def requires() -> Requires:
    return {}


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def market(request: pytest.FixtureRequest, kept: Kept, requires: Requires) -> Market:
    """A catalog, with a cap of five installs for each account."""
    plugins, env = ("tenancy", "marketplace", graph(requires)), {"MAX_PLUGINS_PER_USER": "5"}
    running = await kept.platform("market", request.param, *plugins, env=env)
    return Market(running, await somebody(running, role="admin"), requires)
