"""The web client below a path of another site, in a real browser behind the real proxies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from kernel.testing import Actor, Running, platforms
from tests.builtin_plugins.oidc.identity_provider import (
    BELOW,
    ISSUER,
    PLATFORM,
    in_front_of,
    provider_process,
)
from tests.builtin_plugins.oidc.sso_support import settings_for
from tests.builtin_plugins.web_client.tls import tls_before
from tests.builtin_plugins.web_client.visits import knowledge_base
from tests.fakes.browser import PATIENCE, launched
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.web_proxies import PROXIES, Certificate, behind, certificate_in

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate_in(tmp_path_factory.mktemp("tls"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """A platform whose jobs are run as they come."""
    env = {"TRUSTED_PROXY_CIDRS": "127.0.0.1/32"}
    plugins = (
        *("api_docs", "tenancy", "rag", "extractive_answers", "conversations"),
        *("platform_ops", "plugin_registry", "web_client"),
    )
    async with platforms(tmp_path_factory.mktemp("below")) as start:
        running = await start(*plugins, HashEmbeddings, env=env)
        working = asyncio.create_task(_work(running))
        yield running
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def _work(running: Running) -> None:
    while True:
        await running.run_jobs()
        await asyncio.sleep(0.1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ada(site: Running) -> Actor:
    """The first administrator, who is Platform Admin, with a knowledge base."""
    actor = await site.user("ada", role="admin")
    await knowledge_base(actor)
    return actor


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with launched() as found:
        yield found


async def opened(context: BrowserContext, asked: list[str], problems: list[str]) -> Page:
    """A tab that tells what it asked for, and what went wrong."""
    context.set_default_timeout(PATIENCE)
    page = await context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("requestfailed", lambda request: problems.append(f"{request.url}: {request.failure}"))
    return page


@pytest.mark.parametrize("kind", PROXIES)
async def test_the_client_below_a_path(
    kind: str, site: Running, ada: Actor, browser: Browser, certificate: Certificate, tmp_path: Path
) -> None:
    """Page, modules, sign-in, deep links, reloads, a streamed answer and a followed log: all below it."""
    asked: list[str] = []
    problems: list[str] = []
    async with behind(kind, site, certificate, tmp_path) as proxied:
        root = f"{proxied.url}/platform/"
        context = await browser.new_context(ignore_https_errors=True, locale="en-GB")
        page = await opened(context, asked, problems)
        await page.goto(root)
        await page.get_by_label("Username").fill("ada")
        await page.get_by_label("Password").fill(ada.password)
        await page.get_by_role("button", name="Sign in", exact=True).click()
        await page.locator(".frame").wait_for()
        assert page.url.rstrip("/") == f"{root}app"
        await page.get_by_label("Your question").fill("What may a hotel in Oslo cost?")
        await page.keyboard.press("Enter")
        await expect(page.locator("main")).to_contain_text("185 euro")
        await page.get_by_role("link", name="Documents", exact=True).first.click()
        await page.get_by_role("link", name="Handbook").first.click()
        await expect(page.get_by_role("heading", name="Handbook", level=1)).to_be_visible()
        deep = page.url
        assert deep.startswith(f"{root}app/documents/")
        await page.reload()
        await expect(page.get_by_role("heading", name="Handbook", level=1)).to_be_visible()
        await page.go_back()
        await expect(page.get_by_role("heading", name="Documents", level=1)).to_be_visible()
        await page.goto(f"{root}app/operations/logs")
        await expect(page.get_by_role("log")).to_be_visible()
        await page.goto("about:blank")
        await context.close()
    assert [url for url in asked if not url.startswith((root, "about:", "blob:", "data:"))] == []
    aborted = [
        problem for problem in problems if "ERR_ABORTED" not in problem
    ]  # streams of pages that were left
    assert aborted == []


@pytest.mark.parametrize(
    ("below", "path", "status"),
    [
        ("platform/", "health", 200),
        pytest.param("platform/v1/rag/", "knowledge-bases", 401, marks=pytest.mark.long),
    ],
)
async def test_trying_a_route_below_a_path(
    below: str,
    path: str,
    status: int,
    site: Running,
    browser: Browser,
    certificate: Certificate,
    tmp_path: Path,
) -> None:
    """Swagger UI's "Try it out" calls the platform where the page is, and a service's where its own is."""
    async with behind("nginx", site, certificate, tmp_path) as proxied:
        context = await browser.new_context(ignore_https_errors=True)
        page = await opened(context, [], [])
        address = f"{proxied.url}/{below}{path}"
        await page.goto(f"{proxied.url}/{below}docs")
        operation = page.locator(f'.opblock-get .opblock-summary-path[data-path="/{path}"]')
        await page.locator(".opblock").first.wait_for()
        if not await operation.count():  # a long page draws only what is in view
            await page.get_by_placeholder("Filter by tag or path").fill(f"/{path}")
        await operation.click()
        await page.get_by_role("button", name="Try it out").click()
        async with page.expect_response(lambda seen: seen.url.startswith(address)) as answer:
            await page.get_by_role("button", name="Execute").click()
        assert (await answer.value).status == status
        await context.close()


async def test_single_sign_on_below_a_path(certificate: Certificate, tmp_path: Path) -> None:
    """To the provider and back, to the page that was wanted below the path."""
    below = f"{PLATFORM}{BELOW}"
    env = {
        "PLATFORM_CLIENT_BASE_URL": f"{below}/app",
        "PLATFORM_OIDC_REDIRECT_URI": f"{below}/v1/auth/oidc/callback",
    }
    with provider_process() as process:
        async with in_front_of(process) as idp, platforms(tmp_path) as start:
            running = await start("oidc", "web_client", env={**settings_for(idp), **env})
            await idp.knows("ada", email="ada@example.org", email_verified=True)
            async with (
                tls_before(idp.url, tmp_path) as provider,
                behind("nginx", running, certificate, tmp_path) as proxied,
            ):
                ports = {
                    urlsplit(ISSUER).hostname: provider,
                    "platform.example.org": urlsplit(proxied.url).port,
                }
                rules = ", ".join(f"MAP {host}:443 127.0.0.1:{port}" for host, port in ports.items())
                async with launched(f"--host-resolver-rules={rules}") as named:
                    context = await named.new_context(ignore_https_errors=True, locale="en-GB")
                    await context.add_cookies([{"name": "person", "value": "ada", "url": ISSUER}])
                    page = await opened(context, [], [])
                    await page.goto(f"{below}/app/keys")
                    await page.get_by_role("button", name="Sign in with").click()
                    heading = page.get_by_role("heading", name="Keys for programs", level=1)
                    await expect(heading).to_be_visible()
                    assert page.url == f"{below}/app/keys"
