"""What the tests of single sign-on share: a platform that knows the provider, and who signs in there."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from sqlalchemy import text

from builtin_plugins.accounts.api import ACCOUNTS
from kernel.testing import Actor, Running
from tests.builtin_plugins.oidc.browser import Browser, Page
from tests.builtin_plugins.oidc.identity_provider import (
    CALLBACK,
    CLIENT_ID,
    CLIENT_SECRET,
    ISSUER,
    PLATFORM,
    SIGNED_OUT,
    IdentityProvider,
)

LOGIN = f"{PLATFORM}/v1/auth/oidc/login"
FLOW = "__Host-oidc_flow_"  # and the state of the sign-in

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
        return await self.browser(person).go(LOGIN)

    async def sign_in(self, person: str) -> Actor:
        page = await self.visit(person)
        assert "token" in page.fragment, page
        return Actor(self.running, page.fragment["token"])

    @asynccontextmanager
    async def client(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Connections for a browser with hosts of its own."""
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            yield session

    async def accounts(self) -> list[str]:
        rows, _ = await self.running.platform.resource(ACCOUNTS).list()
        return [row.username for row in rows]

    async def audited(self, action: str) -> list[dict[str, object]]:
        """What the audit log has of an action, oldest first."""
        query = text("SELECT * FROM kernel_audit_entry WHERE action = :action ORDER BY id")
        return await self.running.platform.database.read(
            lambda session: [dict(row._mapping) for row in session.execute(query, {"action": action})]
        )


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


def compact(header: dict[str, Any], claims: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    """A token past the library, which would not sign such a thing."""
    parts = [json.dumps(header).encode(), json.dumps(claims).encode()]
    content = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    return (content + b"." + base64.urlsafe_b64encode(sign(content)).rstrip(b"=")).decode()
