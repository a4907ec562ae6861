"""One platform and one browser for the tests of pages; each test has a profile and accounts of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from kernel.testing import Running, platforms
from tests.builtin_plugins.web_client.gated_model import GatedModel
from tests.builtin_plugins.web_client.visits import PLAIN_HOST, Visitor, working_jobs
from tests.fakes.browser import PATIENCE, launched
from tests.fakes.loaded_once import LoadedOnce

ARGUMENTS = (
    f"--host-resolver-rules=MAP {PLAIN_HOST} 127.0.0.1",
    *("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),
)
PLUGINS = (
    *(
        "tenancy",
        LoadedOnce,
        "models",
        "rag_methods",
        "rag_exchange",
        "extractive_answers",
        "access_tokens",
        "plugin_registry",
        "marketplace",
    ),
    *("licensing", "dependency_graph", "orchestrator", "conversations", "published_chat", "web_client"),
    *(
        "sources",
        "source_folder",
        "source_git",
        "evaluation",
        "graph_rdf",
        "speech",
        "platform_ops",
        "api_docs",
    ),
)


@pytest.fixture(scope="session")
def gate() -> GatedModel:
    """An embedding model whose every step a test allows."""
    return GatedModel()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site(tmp_path_factory: pytest.TempPathFactory, gate: GatedModel) -> AsyncIterator[Running]:
    """A platform with a worker, so that a job that a test holds back holds up no other."""
    async with platforms(tmp_path_factory.mktemp("client")) as start:
        folder = tmp_path_factory.mktemp("policies")
        env = {"PLATFORM_SOURCE_FOLDERS": str(folder), "PLATFORM_MODELS_NEARBY": ""}
        running = await start(*PLUGINS, gate, env=env)
        async with working_jobs(running):
            yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with launched(*ARGUMENTS) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(site: Running, browser: Browser) -> AsyncIterator[Visitor]:
    """A browser profile; at the end, no script has failed and no policy was broken."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB")
    context.set_default_timeout(PATIENCE)
    visitor = Visitor(site, context)
    yield visitor
    await context.close()
    await _unshare(site)
    assert visitor.problems == []


async def _unshare(site: Running) -> None:
    """Delete what the test shared with everyone: others count what their accounts see."""
    admin = await site.user(role="admin")
    for kind in ("pipeline", "knowledge-bases"):
        for item in (await admin.get(f"/v1/rag/{kind}?limit=500")).json()["items"]:
            if item["visibility"] == "shared":
                await admin.delete(f"/v1/rag/{kind}/{item['id']}", json={})
