"""One platform on SQLite and one on PostgreSQL for all tests that leave other tests' rows alone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kernel.testing import Running
from tests.builtin_plugins.licensing.licensing_support import Counter
from tests.fakes.checkout import Provider, checkout_provider, provider_plugin
from tests.fakes.kept import Kept

PLUGINS = ("tenancy", "marketplace", "licensing", "plugin_registry")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def provider() -> AsyncIterator[Provider]:
    async with checkout_provider() as fake:
        yield fake


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def licensing(request: pytest.FixtureRequest, kept: Kept, provider: Provider) -> Running:
    """A platform with a catalog, licenses and a payment provider."""
    plugins = (*PLUGINS, Counter(), provider_plugin(provider.url))
    return await kept.platform("licensing", request.param, *plugins)
