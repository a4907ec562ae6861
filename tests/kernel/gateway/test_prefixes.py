"""A mount's prefix stands for the service's root, verbatim: in one process as over the network."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.gateway.services import Service, in_order
from kernel.plugins.loading import installed
from kernel.plugins.offers import OFFERS
from kernel.testing import Reply, Running, Start
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.speech import SpeechPlugin

SECRET = {"JWT_SECRET": "a secret of at least thirty-two bytes, for tests"}
BUILT_IN = [candidate.name for candidate in installed() if candidate.distribution == "platform-kernel"]
PLUGINS = [name for name in BUILT_IN if name != "embeddings"]
OFFERING = (*PLUGINS, HashEmbeddings(), SpeechPlugin())
ENDS = (
    *("", "/", "/health", "/metrics", "/openapi.json", "/docs", "/redoc", "/nothing/here", "//health"),
    *("/static/docs/page.css", "/v1/health", "/v1/capabilities", "/capabilities/", "/knowledge-bases/x"),
)


def told(reply: Reply) -> Any:
    kind = reply.headers.get("Content-Type", "")
    body = reply.json() if reply.body and kind.startswith("application/json") else bool(reply.body)
    if isinstance(body, dict):
        body = sorted(body), body.get("code"), body.get("detail")
    return reply.status, kind, reply.headers.get("Allow"), body


async def test_every_service(start_platform: Start, subtests: pytest.Subtests) -> None:
    """The same answer both ways: its own pages, unknown paths, other methods, writes without a token."""
    here = await start_platform(*OFFERING, env=SECRET)
    offered = here.platform.resource(OFFERS).services
    services = in_order(service for _, service in offered.values())
    assert len(services) == 8
    alone = {one.name: await start_platform(*OFFERING, only=one.name, env=SECRET) for one in services}
    urls = ",".join(f"{name}={service.url}" for name, service in alone.items())
    there = await start_platform(*OFFERING, env={**SECRET, "PLATFORM_SERVICE_URLS": urls})
    for service in services:
        with subtests.test(service.name):
            await compare(here, there, service)


async def compare(here: Running, there: Running, service: Service) -> None:
    """Hold a service in one process against the same one behind the network."""
    for mount in service.prefixes:
        for end in ENDS:
            for method in ("GET", "HEAD", "PUT", "DELETE"):
                answers = [
                    told(await running.anonymous.request(method, mount.prefix + end))
                    for running in (here, there)
                ]
                assert answers[0] == answers[1], (method, mount.prefix + end)


async def test_the_root_of_rag(start_platform: Start) -> None:
    """What the specification names: health, the document and the alias under `/v1/rag`."""
    running = await start_platform(*PLUGINS, HashEmbeddings(), env=SECRET)
    ana = await running.user()
    health = await ana.get("/v1/rag/health")
    assert (health.status, health.json()["service"]) == (200, "rag-pipeline")
    document = (await ana.get("/v1/rag/openapi.json")).json()
    assert "/knowledge-bases" in document["paths"]
    assert (await ana.get("/v1/rag/")).json() == (await ana.get("/v1/rag")).json()
    listed = await ana.get("/v1/rag/v1/knowledge-bases")
    assert (listed.status, listed.json()["total"]) == (200, 0)


async def test_a_write_needs_a_token(start_platform: Start) -> None:
    """Through the alias as well, before the service looks at it."""
    running = await start_platform(*PLUGINS, HashEmbeddings(), env=SECRET)
    for path in ("/v1/rag/v1/knowledge-bases", "/v1/rag/nothing"):
        assert (await running.anonymous.post(path, json={"name": "mine"})).status == 401
    ana = await running.user()
    made = await ana.post("/v1/rag/v1/knowledge-bases", json={"name": "mine"})
    assert (made.status, made.json()["name"]) == (200, "mine")
