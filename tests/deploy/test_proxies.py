"""The configuration files in docs/deploy, run by the real proxies in front of a platform."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
import pytest_asyncio
from yarl import URL

from kernel.testing import Actor, Running, platforms
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.web_proxies import PROXIES, Certificate, behind, certificate_in

pytestmark = pytest.mark.asyncio(loop_scope="module")

MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate_in(tmp_path_factory.mktemp("tls"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """The platform that both proxies stand in front of."""
    env = {"TRUSTED_PROXY_CIDRS": "127.0.0.1/32"}
    async with platforms(tmp_path_factory.mktemp("behind")) as start:
        yield await start("platform_ops", "rag", "web_client", HashEmbeddings, env=env)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=PROXIES)
async def proxied(
    request: pytest.FixtureRequest,
    running: Running,
    certificate: Certificate,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Running]:
    """The platform as clients of the proxy see it."""
    folder = tmp_path_factory.mktemp(request.param)
    async with behind(request.param, running, certificate, folder) as found:
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def password(running: Running) -> str:
    return (await running.user("ada", role="admin")).password


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ada(proxied: Running, password: str) -> Actor:
    return await proxied.sign_in("ada", password)


async def test_tls_and_the_clients_address(proxied: Running) -> None:
    """Requests come in over TLS; a client without the certificate is refused."""
    assert (await proxied.anonymous.get("/health")).status == 200
    async with aiohttp.ClientSession() as stranger:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await stranger.get(f"{proxied.url}/health")


async def test_below_a_path(proxied: Running, ada: Actor) -> None:
    assert (await ada.get("/platform/v1/backups")).status == 200
    assert (await proxied.anonymous.get("/platform/v1/status")).json()["services"]


async def test_below_a_path_addresses_stay_as_they_are(proxied: Running) -> None:
    """What is encoded in one is not decoded on the way: the page leads to the same root from there."""
    pages = []
    for start in ("", "/platform"):
        url = URL(f"{proxied.url}{start}/app/plugins/a%2Fb?c=d%2Fe", encoded=True)
        async with proxied.session.get(url) as answer:
            assert answer.status == 200
            pages.append(await answer.read())
    assert pages[0] == pages[1]


@asynccontextmanager
async def log_lines(ada: Actor) -> AsyncIterator[aiohttp.StreamReader]:
    """A stream that ends only when its reader leaves."""
    url = f"{ada.running.url}/v1/containers/api-gateway/logs?follow=true&tail=1"
    headers = {"Authorization": f"Bearer {ada.token}"}
    async with ada.running.session.get(url, headers=headers) as answer:
        assert answer.status == 200
        yield answer.content


async def test_streams_pass_in_pieces(ada: Actor) -> None:
    log = logging.getLogger("acme")
    log.warning("before")
    async with log_lines(ada) as lines:
        for number in range(3):
            log.warning("line %s", number)
            async with asyncio.timeout(5):
                while f"line {number}".encode() not in await lines.readline():
                    pass


async def test_an_upload_of_50_mb(ada: Actor) -> None:
    """The largest upload passes; a larger one is 413, by the proxy or the platform."""
    base = (await ada.post("/v1/rag/knowledge-bases", json={"name": "Large"})).json()["id"]
    path = f"/v1/rag/knowledge-bases/{base}/upload"
    content = (b"A line of a large file, again and again.\n" * (50 * MEGABYTE // 40))[: 50 * MEGABYTE]
    sent = await ada.upload(path, "large.txt", content)
    assert (sent.status, sent.json()["size_bytes"]) == (202, 50 * MEGABYTE), sent.body[:300]
    try:
        refused = (await ada.upload(path, "larger.txt", content + content)).status
    except aiohttp.ClientError:  # the proxy may close the connection on a body that it refused
        refused = 413
    assert refused == 413
