"""Websites: the suite for all sources against a file server, and sites of every kind."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from xml.sax.saxutils import escape

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import ValidationError

from builtin_plugins.source_web.settings import WebSettings
from builtin_plugins.source_web.site import open_site
from builtin_plugins.sources.api import (
    DocumentSource,
    GoneItem,
    ListingEnd,
    ListingIncomplete,
    SourceFault,
    SourceItem,
    SourceMisplaced,
    SourceSetup,
    SourceThrottled,
    SourceUnreachable,
)
from builtin_plugins.sources.conformance import SourceConformance, SourceWorld, read_item
from kernel.sdk import Platform
from kernel.testing import Running, platforms
from tests.fakes.website import served_by

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with platforms(tmp_path_factory.mktemp("platform")) as start:
        yield await start("source_web", env={"PLATFORM_OUTGOING_ALLOWED": "127.0.0.1"})


def source_at(platform: Platform, url: str, **fields: Any) -> AbstractAsyncContextManager[DocumentSource]:
    settings = WebSettings(**{"url": url, "pause_seconds": 0, **fields})
    return open_site(SourceSetup(platform, "one", settings))


def sitemap(*places: str) -> str:
    entries = "".join(f"<url><loc>{escape(place)}</loc></url>" for place in places)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'


class WebWorld(SourceWorld):
    """Files, and a sitemap that names them."""

    def __init__(self, platform: Platform, folder: Path) -> None:
        self._platform = platform
        self._folder = folder
        self._asked = 0
        self.url = ""
        self.spoil = ""

    def opened(self) -> AbstractAsyncContextManager[DocumentSource]:
        return source_at(self._platform, f"{self.url}/docs/")

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self._asked += 1
        if self.spoil == "busy" and self._asked % 3 == 0:
            return web.Response(status=429, headers={"Retry-After": "0"})
        if request.path == "/sitemap.xml":
            return web.Response(text=self._sitemap(), content_type="application/xml")
        file = self._folder / unquote(request.raw_path).removeprefix("/docs/")
        if not request.path.startswith("/docs/") or not file.is_file():
            return web.Response(status=404)
        return web.FileResponse(file)

    def _sitemap(self) -> str:
        names = sorted(str(one.relative_to(self._folder)) for one in self._folder.rglob("*") if one.is_file())
        places = [f"{self.url}/docs/{quote(name)}" for name in names]
        if self.spoil == "short":
            places = places[:1]
        if self.spoil == "repeated":
            places += places
        text = sitemap(*places)
        return text[: len(text) // 2] if self.spoil == "cut" else text

    async def put(self, path: str, content: bytes) -> None:
        place = self._folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)

    async def remove(self, path: str) -> None:
        (self._folder / path).unlink()

    async def move(self, old: str, new: str) -> None:
        (self._folder / new).parent.mkdir(parents=True, exist_ok=True)
        (self._folder / old).rename(self._folder / new)

    @asynccontextmanager
    async def _spoilt(self, how: str) -> AsyncIterator[None]:
        self.spoil = how
        try:
            yield
        finally:
            self.spoil = ""

    def cut_off(self) -> AbstractAsyncContextManager[object]:
        return self._spoilt("cut")

    def shortened(self) -> AbstractAsyncContextManager[object]:
        return self._spoilt("short")

    def throttled(self) -> AbstractAsyncContextManager[object]:
        return self._spoilt("busy")

    def repeated(self) -> AbstractAsyncContextManager[object]:
        return self._spoilt("repeated")


@pytest.mark.long
class TestWeb(SourceConformance):
    """The suite."""

    MANY = 300

    @pytest_asyncio.fixture(loop_scope="module")
    async def world(self, running: Running, tmp_path: Path) -> AsyncIterator[SourceWorld]:
        world = WebWorld(running.platform, tmp_path)
        async with served_by(world.handle) as world.url:
            yield world


@dataclass
class Site:
    """Pages by path: a text, a status, or whatever answers. `sent` counts bodies of pages."""

    pages: dict[str, str | int | Callable[[], web.Response]] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    url: str = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append(request.path_qs)
        page = self.pages.get(request.path_qs, 404)
        if isinstance(page, int):
            return web.Response(status=page)
        if not isinstance(page, str):
            return page()
        tag = f'"{hash(page)}"'
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304)
        self.sent.append(request.path_qs)
        text = page.replace("SITE", self.url)
        kind = "text/html" if not text.startswith(("<urlset", "<sitemapindex", "User")) else "text/plain"
        return web.Response(text=text, content_type=kind, headers={"ETag": tag})


@dataclass
class Listed:
    """A listing: paths, those that can't be read, identities that are gone, and its end."""

    items: list[SourceItem]
    gone: list[str]
    end: ListingEnd

    @property
    def paths(self) -> list[str]:
        return sorted(one.path for one in self.items if one.unavailable is None)


async def listed(running: Running, site: Site, since: str | None = None, **fields: Any) -> Listed:
    items, gone, end = list[SourceItem](), list[str](), None
    url = f"{site.url}{fields.pop('at', '/docs/')}"
    async with (
        source_at(running.platform, url, **fields) as source,
        aclosing(source.documents(since)) as listing,
    ):
        async for one in listing:
            if isinstance(one, ListingEnd):
                end = one
            elif isinstance(one, GoneItem):
                gone.append(one.identity)
            else:
                items.append(one)
    assert end is not None
    return Listed(items, gone, end)


def link(*places: str, head: str = "") -> str:
    anchors = "".join(f'<a href="{place}">x</a>' for place in places)
    return f"<html><head>{head}</head><body><p>text</p>{anchors}</body></html>"


@pytest_asyncio.fixture(loop_scope="module")
async def site() -> AsyncIterator[Site]:
    site = Site()
    async with served_by(site.handle) as site.url:
        yield site


async def test_links_stay_below_the_beginning(running: Running, site: Site) -> None:
    site.pages = {
        "/docs/": link(
            "a",
            "/docs/b/#there",
            "/private",
            "../up",
            "//example.org/docs/",
            "a?utm_source=x",
            "m@x:y",
            site.url.replace("//", "//u:p@") + "/docs/a",
        ),
        "/docs/a": link("b/", "a?page=2"),
        "/docs/b/": link("c", head='<base href="/docs/deep/">'),
        "/docs/deep/c": link(),
        "/docs/a?page=2": link(),
        "/private": link(),
        "/up": link(),
    }
    found = await listed(running, site)
    assert found.paths == ["a", "a?page=2", "b/index", "deep/c", "index"]
    assert not {"/private", "/up"} & set(site.asked)
    assert (await listed(running, site, depth=1)).paths == ["a", "b/index", "index"]


async def test_what_did_not_change_is_not_sent(running: Running, site: Site) -> None:
    """Pages that are reached by links of unchanged pages alone are found, too."""
    site.pages = {"/docs/": link("a"), "/docs/a": link("b"), "/docs/b": link()}
    first = await listed(running, site)
    site.sent.clear()
    again = await listed(running, site, first.end.cursor)
    assert (again.paths, site.sent) == (["a", "b", "index"], [])
    assert {one.identity: one.etag for one in again.items} == {one.identity: one.etag for one in first.items}
    site.pages["/docs/b"] = link(head="changed")
    await listed(running, site, again.end.cursor)
    assert site.sent == ["/docs/b"]


async def test_an_error_deletes_nothing(running: Running, site: Site) -> None:
    """500 is not 404."""
    site.pages = {"/docs/": link("a", "b"), "/docs/a": link("c"), "/docs/b": link(), "/docs/c": link()}
    first = await listed(running, site)
    site.pages |= {"/docs/a": 500, "/docs/b": 410}
    second = await listed(running, site, first.end.cursor)
    assert (second.paths, second.end.only_changes) == (["a", "c", "index"], False)
    lost = await listed(running, site)  # nothing is known of earlier listings
    assert (lost.paths, lost.end.only_changes) == (["index"], True)
    after = await listed(running, site, lost.end.cursor)
    assert (after.paths, after.end.only_changes) == (["index"], True)
    site.pages["/docs/a"] = link()
    assert (await listed(running, site, after.end.cursor)).end.only_changes is False


async def test_one_page_that_is_never_served_holds_up_no_others(running: Running, site: Site) -> None:
    site.pages = {"/docs/": link("a", "b"), "/docs/a": 503, "/docs/b": link()}
    assert (await listed(running, site)).paths == ["b", "index"]
    site.pages["/docs/a"] = lambda: web.Response(status=503, headers={"Retry-After": "90"})
    with pytest.raises(SourceThrottled):
        await listed(running, site)


async def test_a_site_that_is_down(running: Running, site: Site) -> None:
    site.pages = {"/docs/": link(*"abcdefgh"), **{f"/docs/{name}": link() for name in "abcdefgh"}}
    first = await listed(running, site)
    site.pages |= {f"/docs/{name}": 502 for name in "abcdefgh"}
    with pytest.raises(SourceUnreachable):
        await listed(running, site, first.end.cursor)


async def test_sitemaps(running: Running, site: Site) -> None:
    """Named in robots.txt; an index, one that is compressed, one elsewhere."""
    packed = gzip.compress(sitemap(f"{site.url}/docs/two", f"{site.url}/other").encode())
    site.pages = {
        "/robots.txt": "User-agent: *\nDisallow:\nSitemap: SITE/maps.xml",
        "/maps.xml": (
            "<sitemapindex><sitemap><loc>SITE/one.xml</loc></sitemap><sitemap><loc>SITE/two.xml.gz</loc></sitemap>"
            "<sitemap><loc>http://example.org/three.xml</loc></sitemap></sitemapindex>"
        ),
        "/one.xml": sitemap("SITE/docs/one"),
        "/two.xml.gz": lambda: web.Response(body=packed),
        "/docs/one": link("linked"),
        "/docs/two": link(),
        "/docs/linked": link(),
    }
    assert (await listed(running, site, links=False)).paths == ["one", "two"]
    assert (await listed(running, site)).paths == ["linked", "one", "two"]
    site.pages["/one.xml"] = 500
    with pytest.raises(SourceUnreachable):
        await listed(running, site)


async def test_robots(running: Running, site: Site) -> None:
    site.pages = {
        "/robots.txt": (
            "User-agent: *\nDisallow: /\n\nUser-agent: Platform\n"
            "Disallow: /docs/secret\nAllow: /docs/secret/but"
        ),
        "/docs/": link("secret/a", "secret/but", "hidden", "dead-end"),
        "/docs/secret/a": link(),
        "/docs/secret/but": link(),
        "/docs/hidden": link(head='<meta name="robots" content="noindex">'),
        "/docs/dead-end": link("beyond", head='<meta name="robots" content="nofollow">'),
        "/docs/beyond": link(),
    }
    assert (await listed(running, site)).paths == ["dead-end", "index", "secret/but"]
    assert "/docs/secret/a" not in site.asked
    site.pages["/robots.txt"] = 503
    with pytest.raises(SourceFault):
        await listed(running, site)


async def test_one_address_for_each_page(running: Running, site: Site) -> None:
    """The canonical one, unless it leads nowhere."""
    site.pages = {
        "/docs/": link("a?print=1", "b", "c", "moved", "out"),
        "/docs/a?print=1": link(head='<link rel="canonical" href="a">'),
        "/docs/a": link(head='<link rel="canonical" href="/docs/a">'),
        "/docs/b": link(head='<link rel="canonical" href="/docs/nowhere">'),
        "/docs/c": link(head='<link rel="canonical" href="http://example.org/">'),
        "/docs/moved": lambda: web.Response(status=301, headers={"Location": "/docs/new"}),
        "/docs/out": lambda: web.Response(status=302, headers={"Location": "/elsewhere"}),
        "/docs/new": link(),
        "/elsewhere": link(),
    }
    assert (await listed(running, site)).paths == ["a", "b", "c", "index", "new"]
    assert "/elsewhere" not in site.asked


async def test_odd_headers(running: Running) -> None:
    """Bytes that are no text: the page is read, this time and the next."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        status = b"200 OK" if path.startswith(b"/docs/") else b"404 Not Found"
        head = (
            b'Content-Type: text/html; charset=\xff\r\nETag: "\xff"\r\nConnection: close\r\nContent-Length: 3'
        )
        writer.write(b"HTTP/1.1 " + status + b"\r\n" + head + b"\r\n\r\n<p>")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        site = Site(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        found = await listed(running, site)
        assert (await listed(running, site, found.end.cursor)).paths == found.paths == ["index"]


async def test_limits(running: Running, site: Site) -> None:
    site.pages = {"/docs/": link("a", "b"), "/docs/a": "x" * 30_000, "/docs/b": link()}
    found = await listed(running, site, max_size_mb=0.01)
    assert (found.paths, len(found.items)) == (["b", "index"], 3)
    with pytest.raises(SourceMisplaced):
        await listed(running, site, pages=1)


async def test_a_listed_page_is_sent_once(running: Running, site: Site) -> None:
    site.pages = {"/docs/": link("a"), "/docs/a": "text"}
    async with source_at(running.platform, f"{site.url}/docs/") as source:
        items = [one async for one in source.documents(None) if isinstance(one, SourceItem)]
        assert await read_item(source, items[1]) == b"text"
    async with source_at(running.platform, f"{site.url}/docs/") as source:  # a run that goes on after a kill
        assert await read_item(source, items[1]) == b"text"
    assert site.sent.count("/docs/a") == 2


@pytest.mark.parametrize(
    ("pages", "fault"),
    [
        ({}, SourceMisplaced),
        ({"/docs/": 500}, SourceUnreachable),
        ({"/robots.txt": "User-agent: *\nDisallow: /", "/docs/": "x"}, SourceMisplaced),
        ({"/sitemap.xml": "<urlset><url>", "/docs/": "x"}, ListingIncomplete),
        (
            {"/docs/": lambda: web.Response(status=301, headers={"Location": "https://a.org/"})},
            SourceMisplaced,
        ),
    ],
)
async def test_faults(running: Running, site: Site, pages: dict[str, Any], fault: type[SourceFault]) -> None:
    site.pages = pages
    with pytest.raises(fault):
        await listed(running, site)


async def test_a_private_address_is_refused(tmp_path: Path, site: Site) -> None:
    async with platforms(tmp_path) as start:
        closed = await start("source_web")
        with pytest.raises(SourceMisplaced):
            await listed(closed, site)


@pytest.mark.parametrize("url", ["ftp://a/b", "https://", "https://a:b@c.org/", "https://a/b?c", "x"])
async def test_an_address_is_checked(url: str) -> None:
    with pytest.raises(ValidationError) as refused:
        WebSettings(url=url)
    assert [error["loc"] for error in refused.value.errors()] == [("url",)]
