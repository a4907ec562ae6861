"""One provider for all tests of a run; for each test a proxy in front of it, a platform and a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest
import pytest_asyncio

from kernel.testing import Start, platforms
from tests.builtin_plugins.oidc.identity_provider import (
    IdentityProvider,
    ProviderProcess,
    in_front_of,
    provider_process,
)
from tests.builtin_plugins.oidc.sso_support import Boot, Site, settings_for


@pytest.fixture(scope="session")
def process() -> Iterator[ProviderProcess]:
    with provider_process() as running:
        yield running


@pytest_asyncio.fixture
async def idp(process: ProviderProcess) -> AsyncIterator[IdentityProvider]:
    async with in_front_of(process) as proxy:
        yield proxy


@pytest_asyncio.fixture
async def boot(start_platform: Start, idp: IdentityProvider) -> AsyncIterator[Boot]:
    """`await boot(**env)` starts a platform that knows the provider."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def start(**env: str | None) -> Site:
            running = await start_platform("oidc", env={**settings_for(idp), **env})
            await idp.delivers_to(running.url)
            return Site(running, idp, session)

        yield start


@pytest_asyncio.fixture
async def site(boot: Boot) -> Site:
    return await boot()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_site(
    process: ProviderProcess, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Site]:
    """One platform for the tests of a module. It remembers nothing of the provider."""
    async with (
        in_front_of(process) as idp,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
        platforms(tmp_path_factory.mktemp("oidc")) as start,
    ):
        env = {**settings_for(idp), "PLATFORM_OIDC_CACHE_SECONDS": "0"}
        yield Site(await start("oidc", "api_docs", env=env), idp, session)


@pytest_asyncio.fixture(loop_scope="module")
async def shared(shared_site: Site) -> Site:
    """The shared platform, and a provider that behaves as yet."""
    shared_site.idp.behave()
    return shared_site
