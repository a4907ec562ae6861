"""Single sign-on in a real browser, through a certified OpenID provider."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.async_api import expect

from kernel.testing import platforms
from tests.builtin_plugins.oidc.identity_provider import ISSUER, PLATFORM, in_front_of, provider_process
from tests.builtin_plugins.oidc.sso_support import settings_for
from tests.builtin_plugins.web_client.tls import tls_before
from tests.fakes.browser import launched

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_single_sign_on(tmp_path: Path) -> None:
    """The button leads to the provider and back to the page that was wanted; the token stays nowhere.

    A refusal of the provider is shown; without a provider the button isn't there (every other test).
    """
    env = {"PLATFORM_CLIENT_BASE_URL": f"{PLATFORM}/app"}
    with provider_process() as process:
        async with in_front_of(process) as idp, platforms(tmp_path) as start:
            running = await start("oidc", "web_client", env={**settings_for(idp), **env})
            await idp.knows("ada", email="ada@example.org", email_verified=True)
            async with tls_before(idp.url, tmp_path) as one, tls_before(running.url, tmp_path) as two:
                ports = {urlsplit(ISSUER).hostname: one, urlsplit(PLATFORM).hostname: two}
                rules = ", ".join(f"MAP {host}:443 127.0.0.1:{port}" for host, port in ports.items())
                async with launched(f"--host-resolver-rules={rules}") as browser:
                    await _walk(await browser.new_context(ignore_https_errors=True, locale="en-GB"))


async def _walk(context) -> None:  # type: ignore[no-untyped-def]
    page = await context.new_page()
    await page.goto(f"{PLATFORM}/app/keys")
    button = page.get_by_role("button", name="Sign in with")
    await button.click()
    await expect(page.get_by_role("alert")).to_contain_text("identity provider")
    await expect(page.get_by_text("555")).to_have_count(0)  # what a provider says is not ours to repeat
    await context.add_cookies([{"name": "person", "value": "ada", "url": ISSUER}])
    await page.goto(f"{PLATFORM}/app/keys")
    await button.click()
    await expect(page.get_by_role("heading", name="Keys for programs", level=1)).to_be_visible()
    await expect(page.locator(".sidebar-end")).to_contain_text("ada@example.org")
    assert page.url == f"{PLATFORM}/app/keys"
    addresses = await page.evaluate("performance.getEntries().map((entry) => entry.name)")
    token = await page.evaluate("JSON.parse(sessionStorage['platform.session']).token")
    assert not [address for address in addresses if token in address and "#" not in address]
    # Somebody else's link with a token of their own begins no session by itself.
    stranger = await context.browser.new_context(ignore_https_errors=True)
    page = await stranger.new_page()
    await page.goto(f"{PLATFORM}/app/auth/callback#token={token}")
    await expect(page.get_by_text("Continue as ada?")).to_be_visible()
    assert (page.url, await page.evaluate("sessionStorage.length")) == (f"{PLATFORM}/app/login", 0)
    await page.get_by_role("button", name="Continue").click()
    await expect(page.locator(".sidebar")).to_be_visible()
