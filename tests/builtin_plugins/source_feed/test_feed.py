"""Feeds as sources. The suite for all sources does not fit: a feed never says that something is gone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import ValidationError

from builtin_plugins.source_feed.feed import open_feed
from builtin_plugins.source_feed.settings import FeedSettings
from builtin_plugins.sources.api import (
    DocumentSource,
    ItemVanished,
    ListingEnd,
    SourceFault,
    SourceItem,
    SourceMisplaced,
    SourceSetup,
    SourceThrottled,
    SourceUnreachable,
)
from builtin_plugins.sources.conformance import read_item
from kernel.testing import Running, platforms
from tests.fakes.website import served_by

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Desk:
    """A server with one feed. `sent` counts its bodies."""

    body: str = ""
    status: int = 200
    sent: int = 0
    url: str = ""

    async def handle(self, request: web.Request) -> web.Response:
        tag = f'"{hash(self.body)}"'
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304)
        self.sent += 1
        headers = {"ETag": tag, "Retry-After": "90"}
        return web.Response(status=self.status, text=self.body, headers=headers)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with platforms(tmp_path_factory.mktemp("platform")) as start:
        yield await start("source_feed", env={"PLATFORM_OUTGOING_ALLOWED": "127.0.0.1"})


@pytest_asyncio.fixture(loop_scope="module")
async def desk() -> AsyncIterator[Desk]:
    desk = Desk()
    async with served_by(desk.handle) as desk.url:
        yield desk


def rss(*entries: tuple[str, str]) -> str:
    items = "".join(
        f"<item><guid>{name}</guid><title>About {name}/x</title><link>https://example.org/{name}</link>"
        "<pubDate>Mon, 02 Nov 2026 10:00:00 GMT</pubDate>"
        f"<description>&lt;p&gt;{text}&lt;/p&gt;</description></item>"
        for name, text in entries
    )
    return f'<rss version="2.0"><channel><title>Harbour</title>{items}</channel></rss>'


def opened(running: Running, desk: Desk, **fields: Any) -> Any:
    settings = FeedSettings(**{"url": f"{desk.url}/feed", **fields})
    return open_feed(SourceSetup(running.platform, "one", settings))


async def listed(source: DocumentSource, since: str | None = None) -> tuple[list[SourceItem], ListingEnd]:
    async with aclosing(source.documents(since)) as listing:
        found = [one async for one in listing]
    end = found.pop()
    assert isinstance(end, ListingEnd)
    return [one for one in found if isinstance(one, SourceItem)], end


async def test_entries_become_texts(running: Running, desk: Desk) -> None:
    desk.body = rss(("a", "a ship &amp;amp; a crew"))
    async with opened(running, desk) as source:
        [item], _ = await listed(source)
        content = (await read_item(source, item)).decode()
    assert (item.path, item.link) == ("2026-11-02 About a x.txt", "https://example.org/a")
    assert item.details == {"feed": "Harbour"}
    assert "a ship & a crew" in content and "<p>" not in content


async def test_what_leaves_the_feed_stays(running: Running, desk: Desk) -> None:
    """What it does not name has not changed; what has changed there has another etag."""
    desk.body = rss(("a", "one"), ("b", "two"))
    async with opened(running, desk) as source:
        first, end = await listed(source)
    desk.body = rss(("b", "two, mended"), ("c", "three"))
    async with opened(running, desk) as source:
        second, again = await listed(source, end.cursor)
    assert (end.only_changes, again.only_changes) == (True, True)
    assert first[1].identity == second[0].identity and first[1].etag != second[0].etag
    async with opened(running, desk) as source:  # a run that goes on after a kill
        with pytest.raises(ItemVanished):
            await read_item(source, first[0])
        assert b"three" in await read_item(source, second[1])


async def test_each_entry_is_one_document(running: Running, desk: Desk) -> None:
    """Those without an id are told apart by what they have; of those with the same id, the newest counts."""
    same = "<item><guid>same</guid><title>{0}</title><pubDate>{1} Nov 2026 10:00:00 GMT</pubDate></item>"
    entries = [
        "<item><description>a word</description></item>",
        "<item><description>another</description></item>",
        same.format("older", "Mon, 02"),
        same.format("newer", "Tue, 03"),
    ]
    desk.body = f'<rss version="2.0"><channel><title>Harbour</title>{"".join(entries)}</channel></rss>'
    async with opened(running, desk) as source:
        items, _ = await listed(source)
    assert len({one.identity for one in items}) == 3
    assert sorted(one.path for one in items) == ["2026-11-03 newer.txt", "a word.txt", "another.txt"]


async def test_an_unchanged_feed_is_not_sent(running: Running, desk: Desk) -> None:
    desk.body = rss(("a", "one"))
    async with opened(running, desk) as source:
        items, end = await listed(source)
        assert (await listed(source, end.cursor))[0] == []
        assert desk.sent == 1
        assert await read_item(source, items[0])
    assert desk.sent == 1


async def test_json_feed(running: Running, desk: Desk) -> None:
    entry = {
        "id": "1",
        "title": "Tide",
        "url": "https://example.org/1",
        "content_text": "a < b",
        "date_published": "2026-11-02T12:00:00+02:00",
    }
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "Harbour",
        "items": [
            entry,
            "x",
            {"id": 2},
            {"id": 3, "title": "1 < 2", "date_published": "9999-12-31T23:00:00-02:00"},
        ],
    }
    desk.body = json.dumps(feed)
    async with opened(running, desk) as source:
        [item, odd], _ = await listed(source)
        assert b"a < b" in await read_item(source, item)
    assert (odd.path, odd.modified) == ("1 < 2.txt", None)
    assert item.modified is not None and item.modified.hour == 10


@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [
        (200, "<html></html>", SourceMisplaced),
        (200, '{"version": 1}', SourceMisplaced),
        (404, "", SourceMisplaced),
        (500, "", SourceUnreachable),
        (503, "", SourceThrottled),
    ],
)
async def test_faults(running: Running, desk: Desk, status: int, body: str, fault: type[SourceFault]) -> None:
    desk.status, desk.body = status, body
    async with opened(running, desk) as source:
        with pytest.raises(fault):
            await listed(source)


async def test_a_private_address_is_refused(tmp_path: Path, desk: Desk) -> None:
    async with platforms(tmp_path) as start, opened(await start("source_feed"), desk) as source:
        with pytest.raises(SourceMisplaced):
            await listed(source)


@pytest.mark.parametrize("url", ["ftp://a/b", "https://", "https://a:b@c.org/", "x"])
async def test_an_address_is_checked(url: str) -> None:
    with pytest.raises(ValidationError) as refused:
        FeedSettings(url=url)
    assert [error["loc"] for error in refused.value.errors()] == [("url",)]
