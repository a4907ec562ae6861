"""One platform on SQLite and one on PostgreSQL for all tests that leave other tests' rows alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest
import pytest_asyncio

from kernel.testing import Running, platforms, postgres_database
from tests.builtin_plugins.licensing.licensing_support import Counter
from tests.fakes.checkout import Provider, checkout_provider, provider_plugin

PLUGINS = ("tenancy", "marketplace", "licensing", "plugin_registry")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def provider() -> AsyncIterator[Provider]:
    """A payment provider."""
    async with checkout_provider() as found:
        yield found


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=["sqlite", "postgresql"])
async def licensing(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, provider: Provider
) -> AsyncIterator[Running]:
    """A platform with a catalog, licences and a payment provider."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database()) if request.param == "postgresql" else None
        async with platforms(tmp_path_factory.mktemp("licensing")) as start:
            yield await start(*PLUGINS, Counter(), provider_plugin(provider.url), env={"DATABASE_URL": url})
