"""News from a real HTTP server: feeds of every kind, broken and hostile ones among them."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer

from kernel.testing import Actor, Running, platforms, postgres_database
from tests.fakes.hash_embeddings import HashEmbeddings

pytestmark = pytest.mark.asyncio(loop_scope="module")

FEEDS = Path(__file__).parent / "feeds"
COLLECT = "/v1/plugins/news/collect"


class Press:
    """A web server with feeds; `served` changes what a path answers, `requests` remembers who asked."""

    def __init__(self) -> None:
        self.served: dict[str, bytes] = {}
        self.requests: list[web.Request] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        match request.path:
            case "/moved":
                raise web.HTTPFound("/harbour.rss")
            case "/away":
                raise web.HTTPFound("http://169.254.169.254/latest/meta-data")
            case "/gone":
                raise web.HTTPNotFound()
            case "/endless":
                huge = gzip.compress(b"<rss>" + b" " * 20_000_000)
                return web.Response(body=huge, headers={"Content-Encoding": "gzip"})
        body = self.served.get(request.path) or (FEEDS / request.path[1:]).read_bytes()
        etag = f'"{hash(body)}"'
        if request.headers.get("If-None-Match") == etag:
            raise web.HTTPNotModified()
        return web.Response(body=body, content_type="application/xml", headers={"ETag": etag})


@asynccontextmanager
async def press() -> AsyncIterator[Press]:
    found = Press()
    app = web.Application()
    app.router.add_get("/{path:.*}", found.answer)
    async with TestServer(app) as server:
        found.url = f"http://127.0.0.1:{server.port}"
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "postgresql"])
async def desk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Running, Press, Actor]]:
    """A platform that may call this machine, a server with feeds, and an administrator."""
    home, env = tmp_path_factory.mktemp("news"), {"PLATFORM_OUTGOING_ALLOWED": "127.0.0.1"}
    plugins = ("plugin_registry", "rag", "extractive_answers", "news", HashEmbeddings())
    async with press() as server, platforms(home) as start:
        if request.param == "sqlite":
            running = await start(*plugins, env=env)
            yield running, server, await enabled(running)
            return
        with postgres_database() as url:
            running = await start(*plugins, env={**env, "DATABASE_URL": url})
            yield running, server, await enabled(running)


async def enabled(running: Running) -> Actor:
    """An administrator who enabled the plugin. It is off by default, and can be switched again and again."""
    admin = await running.user(role="admin")
    await expect(admin, "disabled")
    for change in ("disable", "enable", "enable"):
        assert (await admin.post(f"/v1/plugins/news/{change}")).status == 200
        await expect(admin, f"{change}d")
    return admin


async def expect(admin: Actor, status: str) -> None:
    assert (await admin.get("/v1/plugins/news")).json()["status"] == status
    tools = (await admin.get("/v1/tools")).body
    assert (b"get_news" in tools) == (status == "enabled")


async def listen(admin: Actor, **feeds: str) -> None:
    """Set the feeds while the platform runs."""
    text = " ".join(f"{name}={url}" for name, url in feeds.items())
    answer = await admin.put("/v1/plugins/news/config", json={"NEWS_FEEDS": text})
    assert answer.status == 200, answer.body


async def collected(running: Running, admin: Actor) -> dict[str, Any]:
    """Collect now, and everything that follows from it; the state of the collection."""
    assert (await admin.post(COLLECT)).status == 202
    await running.run_jobs()
    found: dict[str, Any] = (await admin.get(COLLECT)).json()
    return found


async def documents(admin: Actor) -> dict[str, str]:
    """The names of the news' documents, and their ids."""
    bases = (await admin.get("/v1/rag/knowledge-bases")).json()["items"]
    (base,) = [base for base in bases if base["name"] == "News"]
    path = f"/v1/rag/knowledge-bases/{base['id']}/documents"
    items = (await admin.get(path)).json()["items"]
    return {item["filename"]: f"{path}/{item['document_id']}" for item in items}


async def test_from_feeds_to_documents(desk: tuple[Running, Press, Actor]) -> None:
    """Items become documents once; a changed one replaces what it was; unchanged feeds cost nothing."""
    running, server, admin = desk
    await listen(admin, harbour=f"{server.url}/harbour.rss", stars=f"{server.url}/stars.atom")
    first = await collected(running, admin)
    assert first["error"] is None
    assert first["result"] == {
        "feeds": 2,
        "new": 4,
        "changed": 0,
        "removed": 0,
        "unchanged_feeds": 0,
        "failed": {},
    }
    before = await documents(admin)
    assert set(before) == {
        "Lighthouse gets a new lamp.txt",
        "Ferry & fog.txt",
        "Oldest of all.txt",
        "Comet seen over Nordlys.txt",
    }
    text = (await admin.get(f"{before['Lighthouse gets a new lamp.txt']}/content")).body.decode()
    assert "The lamp shines forty kilometres far." in text and "alert" not in text
    assert "https://harbour.example.org/lamp" in text
    assert (await collected(running, admin))["result"]["unchanged_feeds"] == 2
    assert await documents(admin) == before

    changed = (FEEDS / "harbour.rss").read_bytes().replace(b"forty", b"fifty")
    server.served["/harbour.rss"] = changed
    again = (await collected(running, admin))["result"]
    assert (again["new"], again["changed"], again["unchanged_feeds"]) == (0, 1, 1)
    after = await documents(admin)
    assert set(after) == set(before)
    lamp = "Lighthouse gets a new lamp.txt"
    assert after[lamp] != before[lamp] and (await admin.get(before[lamp])).status == 404
    assert b"fifty" in (await admin.get(f"{after[lamp]}/content")).body
    everybody = await running.user()
    assert await documents(everybody) == after


async def test_headlines(desk: tuple[Running, Press, Actor]) -> None:
    """Anyone may read them, newest first; for an unknown feed, the answer lists the known ones."""
    running, _, admin = desk
    path = "/v1/plugins/news/actions/get_news"
    found = (await running.anonymous.get(f"{path}?limit=2")).json()["result"]["headlines"]
    assert found == {
        "harbour": ["Lighthouse gets a new lamp", "Ferry & fog"],
        "stars": ["Comet seen over Nordlys"],
    }
    wrong = (await running.anonymous.get(f"{path}?feed=moon")).json()["result"]
    assert (wrong["feed"], wrong["available"]) == ("moon", ["harbour", "stars"])
    assert (await running.anonymous.get(f"{path}?limit=0")).status == 400
    refresh = "/v1/plugins/news/actions/refresh"
    assert (await running.anonymous.post(refresh)).status == 401
    assert (await admin.post(refresh)).json()["result"] == {"refreshing": ["harbour", "stars"]}
    await running.run_jobs()
    figures = (await admin.get("/v1/plugins/news/analysis")).json()
    assert figures["feeds"]["harbour"]["items"] == 3 and figures["items"] == 4
    assert figures["per_day"]["2026-11-12"] == 1


async def test_the_tool_keeps_its_name(desk: tuple[Running, Press, Actor]) -> None:
    """Earlier clients call the tool `get_news`; the registry, the definitions and a call know it by that."""
    running, _, admin = desk
    tool = (await running.anonymous.get("/v1/tools/get_news")).json()
    assert (tool["plugin_name"], tool["endpoint"]) == ("news", "/v1/plugins/news/actions/get_news")
    ran = await admin.post(
        "/v1/tools/get_news/execute", json={"parameters": {"feed": "harbour", "limit": "1"}}
    )
    assert ran.json()["result"] == {
        "plugin": "news",
        "action": "get_news",
        "result": {"headlines": {"harbour": ["Lighthouse gets a new lamp"]}},
    }
    defined = (await running.anonymous.get("/v1/plugins/ai/tools")).json()["tools"]
    assert "get_news" in [one["function"]["name"] for one in defined]


async def test_only_the_newest_are_kept(desk: tuple[Running, Press, Actor]) -> None:
    running, server, admin = desk
    config = {"NEWS_KEEP_ITEMS": 2}
    assert (await admin.put("/v1/plugins/news/config", json=config)).status == 200
    server.served["/harbour.rss"] = (FEEDS / "harbour.rss").read_bytes() + b"<!-- new -->"
    assert (await collected(running, admin))["result"]["removed"] == 1
    assert "Oldest of all.txt" not in await documents(admin)
    await admin.put("/v1/plugins/news/config", json={"NEWS_KEEP_ITEMS": None})


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/gone", " 404"),
        ("/away", "169.254.169.254"),
        ("/endless", "larger than"),
        ("/test_news.py", "neither RSS nor Atom"),
        ("/bomb.rss", ""),
    ],
)
async def test_feeds_that_fail(desk: tuple[Running, Press, Actor], path: str, why: str) -> None:
    """Each harms only itself and is named: in the collection, the analysis and the health."""
    running, server, admin = desk
    server.served["/test_news.py"] = b"<html><p>not a feed</p></html>"
    await listen(admin, bad=f"{server.url}{path}", stars=f"{server.url}/stars.atom")
    found = (await collected(running, admin))["result"]
    if path == "/bomb.rss":
        titles = (await running.anonymous.get("/v1/plugins/news/actions/get_news")).json()["result"]
        assert all(len(title) <= 500 for title in titles["headlines"]["bad"])
        return
    assert set(found["failed"]) == {"bad"} and why in found["failed"]["bad"]
    assert why in (await admin.get("/v1/plugins/news/analysis")).json()["feeds"]["bad"]["error"]
    health = (await admin.get("/v1/plugins/news/health")).json()
    state, count, names = health["checks"]["news_feeds"].split(": ")
    assert (state, count[:7], names) == ("unhealthy", "1 of 2 ", "bad")


async def test_half_a_feed_and_a_moved_one(desk: tuple[Running, Press, Actor]) -> None:
    """What can be read of a broken feed is read; a redirect to an allowed address is followed."""
    running, server, admin = desk
    await listen(admin, half=f"{server.url}/broken.rss", moved=f"{server.url}/moved")
    assert (await collected(running, admin))["result"]["failed"] == {}
    found = (await running.anonymous.get("/v1/plugins/news/actions/get_news")).json()["result"]["headlines"]
    assert "Still readable" in found["half"] and len(found["moved"]) == 3


async def test_a_deleted_knowledge_base(desk: tuple[Running, Press, Actor]) -> None:
    """It is made again, and filled again, although no feed has changed."""
    running, server, admin = desk
    await listen(admin, stars=f"{server.url}/stars.atom")
    await collected(running, admin)
    path = next(iter((await documents(admin)).values())).partition("/documents/")[0]
    assert (await admin.delete(path)).status == 200
    await running.run_jobs()
    assert (await collected(running, admin))["result"]["new"] == 1
    assert set(await documents(admin)) == {"Comet seen over Nordlys.txt"}


async def test_wrong_settings(desk: tuple[Running, Press, Actor]) -> None:
    """What is not a list of feeds is refused with the name of the setting and what is wrong."""
    _, _, admin = desk
    for text, why in (
        ("nonsense", "NAME=URL"),
        ("a=file:///etc/passwd", "http"),
        ("a=http://x a=http://y", "twice"),
    ):
        answer = await admin.put("/v1/plugins/news/config", json={"NEWS_FEEDS": text})
        assert answer.status == 400
        assert "NEWS_FEEDS" in answer.body.decode() and why in answer.body.decode()


async def test_private_addresses(tmp_path: Path) -> None:
    """A feed of the own network is refused unless the operator allows it; without feeds all is well."""
    async with press() as server, platforms(tmp_path) as start:
        running = await start("plugin_registry", "rag", "extractive_answers", "news", HashEmbeddings())
        admin = await enabled(running)
        assert (await admin.get("/v1/plugins/news/health")).json()["checks"]["news_feeds"] == "not configured"
        assert (await collected(running, admin))["result"]["feeds"] == 0
        await listen(admin, inside=f"{server.url}/stars.atom")
        found = await collected(running, admin)
        assert found["status"] == "failed" and "127.0.0.1" in found["error"]
        assert server.requests == []
