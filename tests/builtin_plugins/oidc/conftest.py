"""One provider for all tests of a run; for each test a proxy in front of it, a platform and a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
import pytest_asyncio

from kernel.testing import Actor, Running, Start, platforms
from tests.builtin_plugins.oidc.browser import Browser, Page
from tests.builtin_plugins.oidc.identity_provider import (
    CALLBACK,
    CLIENT_ID,
    CLIENT_SECRET,
    ISSUER,
    PLATFORM,
    SIGNED_OUT,
    IdentityProvider,
    ProviderProcess,
    in_front_of,
    provider_process,
)

together = pytest.mark.asyncio(loop_scope="module")
Boot = Callable[..., Awaitable["Site"]]


class Site:
    """A platform that signs people in through the provider."""

    def __init__(self, running: Running, idp: IdentityProvider, session: aiohttp.ClientSession) -> None:
        self.running = running
        self.idp = idp
        self._session = session

    def browser(self, person: str | None = None) -> Browser:
        """A fresh browser of somebody who is known to the provider."""
        browser = Browser(self._session, {PLATFORM: self.running.url, ISSUER: self.idp.url})
        browser.become(person, ISSUER)
        return browser

    async def visit(self, person: str | None) -> Page:
        """Sign in with a fresh browser: where it ends, which is the client's page."""
        return await self.browser(person).go(f"{PLATFORM}/v1/auth/oidc/login")

    async def sign_in(self, person: str) -> Actor:
        """Sign in; the session that it gave."""
        page = await self.visit(person)
        assert "token" in page.fragment, page
        return Actor(self.running, page.fragment["token"])

    @asynccontextmanager
    async def client(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Connections for a browser with hosts of its own."""
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            yield session

    async def accounts(self) -> list[str]:
        """The names of all accounts."""
        rows, _ = await self.running.platform.accounts.list()
        return [row.username for row in rows]

    async def audited(self, action: str) -> list[dict[str, object]]:
        """What the audit log has of an action, oldest first."""
        from sqlalchemy import text

        async with self.running.platform.database.read() as session:
            query = text("SELECT * FROM kernel_audit_entry WHERE action = :action ORDER BY id")
            return [dict(row._mapping) for row in await session.execute(query, {"action": action})]


@pytest.fixture(scope="session")
def process() -> Iterator[ProviderProcess]:
    """The provider."""
    with provider_process() as running:
        yield running


def settings_for(idp: IdentityProvider) -> dict[str, str | None]:
    """The settings of a platform that knows the provider."""
    return {
        "PLATFORM_OIDC_ISSUER": ISSUER,
        "PLATFORM_OIDC_INTERNAL_URL": idp.url,
        "PLATFORM_OIDC_CLIENT_ID": CLIENT_ID,
        "PLATFORM_OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "PLATFORM_OIDC_REDIRECT_URI": CALLBACK,
        "PLATFORM_OIDC_POST_LOGOUT_REDIRECT_URI": SIGNED_OUT,
        "PLATFORM_CLIENT_BASE_URL": "https://client.example.org",
    }


@pytest_asyncio.fixture
async def idp(process: ProviderProcess) -> AsyncIterator[IdentityProvider]:
    """The provider as this test sees it."""
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
    """A platform that knows the provider, on SQLite."""
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
        yield Site(await start("oidc", env=env), idp, session)


@pytest_asyncio.fixture(loop_scope="module")
async def shared(shared_site: Site) -> Site:
    """The shared platform, and a provider that behaves as yet."""
    shared_site.idp.behave()
    return shared_site
