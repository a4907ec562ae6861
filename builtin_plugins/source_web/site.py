"""A website: its sitemaps and links followed from the beginning, and each page read."""

from __future__ import annotations

import asyncio
import shutil
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from yarl import URL

from builtin_plugins.source_web.addresses import SiteAddresses
from builtin_plugins.source_web.records import PageRecord, as_cursor, from_cursor
from builtin_plugins.source_web.robots import SiteRules, read_rules
from builtin_plugins.source_web.settings import WebSettings
from builtin_plugins.source_web.sitemaps import SitemapBroken, read_sitemap
from builtin_plugins.source_web.visits import PageFault, PageGone, PageMoved, SiteVisitor
from builtin_plugins.sources.api import (
    ABSENT,
    DocumentSource,
    GoneItem,
    ItemFault,
    ItemVanished,
    Listing,
    ListingEnd,
    ListingIncomplete,
    SourceItem,
    SourceKind,
    SourceMisplaced,
    SourceSetup,
    SourceUnreachable,
    item_pieces,
)
from kernel.sdk import OUTGOING, CallLimits, OutgoingClient, OutgoingError

_MEGABYTE: Final = 1024 * 1024
_MOST_FAULTS: Final = 5
"""Pages in a row that can't be had: then it is the site."""
_MOST_SITEMAPS: Final = 1_000
_SITEMAP: Final = CallLimits(total_seconds=300, silence_seconds=30, body_bytes=64 * _MEGABYTE)


class SiteWalk:
    """One listing: what is still to visit, and what was found."""

    def __init__(
        self,
        addresses: SiteAddresses,
        settings: WebSettings,
        rules: SiteRules,
        visitor: SiteVisitor,
        previous: dict[str, PageRecord] | None,
    ) -> None:
        self._addresses = addresses
        self._settings = settings
        self._rules = rules
        self._visitor = visitor
        self._previous = previous or {}
        self._is_first = previous is None
        self._waiting = deque[tuple[URL, int]]()
        self._urls = set[str]()
        self._listed = set[str]()
        self._aliases: dict[str, PageRecord] = {}
        self._records: dict[str, PageRecord] = {}
        self._names: dict[str, str] = {}
        self._faults = 0
        self._is_doubtful = False

    async def items(self) -> Listing:
        """The pages, and the end. Raises SourceFault."""
        has_sitemap = await self._read_sitemaps()
        if not self._settings.links and not has_sitemap:
            raise SourceMisplaced("The site has no sitemap; follow its links instead")
        if self._settings.links:
            async with aclosing(self._begin(has_sitemap=has_sitemap)) as beginning:
                async for item in beginning:
                    yield item
        while self._waiting:
            url, depth = self._waiting.popleft()
            page = await self._take(url, depth)
            if page is not None:
                yield page
        for address, record in self._aliases.items():
            if record.canonical not in self._listed:
                yield self._item(URL(address, encoded=True), record)
        if self._is_doubtful:
            for address, record in self._previous.items():
                if record.digest and address not in self._listed:
                    yield GoneItem(address)
        cursor = await asyncio.to_thread(as_cursor, self._records)
        yield ListingEnd(cursor, only_changes=self._is_doubtful)

    async def _begin(self, *, has_sitemap: bool) -> AsyncGenerator[SourceItem, None]:
        """The page at which the site begins. Without it, there is nothing but what sitemaps name."""
        start = self._addresses.start
        self._urls.add(str(start))
        if not self._rules.allow(start):
            if not has_sitemap:
                raise SourceMisplaced("The site's robots.txt asks not to read this address")
            return
        visit = await self._visitor.visit(start, self._previous.get(str(start)))
        if isinstance(visit, PageFault):
            raise SourceUnreachable(f"The beginning of the site can't be read: {visit.reason}")
        if isinstance(visit, PageGone) and not has_sitemap:
            raise SourceMisplaced("There is no page at this address")
        if isinstance(visit, PageMoved):
            target = self._addresses.normal(start, visit.target)
            if target is None:
                place = visit.target[:200].encode(errors="replace").decode()
                raise SourceMisplaced(f"The site is at another address: {place}")
            self._add(target, 0)
        elif isinstance(visit, PageRecord):
            item = self._note(start, 0, visit)
            if item is not None:
                yield item

    async def _take(self, url: URL, depth: int) -> SourceItem | None:
        visit = await self._visitor.visit(url, self._previous.get(str(url)))
        if isinstance(visit, PageFault):
            return self._fault(url, depth, visit)
        self._faults = 0
        if isinstance(visit, PageMoved):
            target = self._addresses.normal(url, visit.target)
            if target is not None:
                self._add(target, depth)
        elif isinstance(visit, PageRecord):
            return self._note(url, depth, visit)
        return None

    def _fault(self, url: URL, depth: int, fault: PageFault) -> SourceItem | None:
        """A page that was read before stays as it was: nothing is deleted because of an error."""
        previous, address = self._previous.get(str(url)), str(url)
        if fault.is_lasting:
            return self._unavailable(url, fault.reason)
        self._faults += 1
        if self._faults >= _MOST_FAULTS:
            raise SourceUnreachable(f"The site does not answer properly: {fault.reason}")
        if previous is not None and previous.digest:
            return self._note(url, depth, previous)
        if previous is None and not self._is_first:
            return self._unavailable(url, fault.reason)
        self._is_doubtful = True  # it may have been read before the records were lost
        self._records[address] = PageRecord("", 0, "", is_listed=False)
        return None

    def _note(self, url: URL, depth: int, record: PageRecord) -> SourceItem | None:
        address = str(url)
        links = tuple(self._names.setdefault(link, link) for link in record.links)  # one text for all pages
        self._records[address] = replace(record, links=links)
        if self._settings.links and depth < self._settings.depth:
            for link in record.links:
                self._add(URL(link, encoded=True), depth + 1)
        if not record.is_listed:
            return None
        if record.canonical is not None and record.canonical != address:
            self._aliases[address] = record
            self._add(URL(record.canonical, encoded=True), depth)
            return None
        return self._item(url, record)

    def _add(self, url: URL, depth: int) -> None:
        if str(url) in self._urls or not self._rules.allow(url):
            return
        self._urls.add(str(url))
        if len(self._urls) > self._settings.pages + 1:  # the beginning may be no page
            raise SourceMisplaced(
                f"The site has more than {self._settings.pages:,} pages; narrow the address or the depth "
                "down, or allow more pages"
            )
        self._waiting.append((url, depth))

    def _item(self, url: URL, record: PageRecord) -> SourceItem:
        self._listed.add(str(url))
        return SourceItem(
            identity=str(url),
            etag=record.digest,
            path=self._addresses.path_of(url),
            size=record.size,
            modified=_moment(record.modified),
            media_type=record.media_type or None,
            link=str(url),
            fingerprint=record.digest,
        )

    def _unavailable(self, url: URL, reason: str) -> SourceItem:
        return SourceItem(
            str(url), etag="", path=self._addresses.path_of(url), link=str(url), unavailable=reason
        )

    async def _read_sitemaps(self) -> bool:
        """Add what sitemaps name; whether there is one."""
        start = self._addresses.start
        named = _well_formed(self._rules.sitemaps()) or [start.with_path("/sitemap.xml")]
        waiting, addresses, has_any = deque(named), set(named), False
        while waiting:
            url = waiting.popleft()
            content = await self._sitemap(url) if url.origin() == start.origin() else None
            if content is None:
                continue
            try:
                sitemap = await asyncio.to_thread(read_sitemap, content)
            except SitemapBroken as error:
                raise ListingIncomplete(f"The sitemap {url.path} can't be read: {error}") from None
            has_any = True
            await asyncio.to_thread(self._add_all, url, sitemap.pages)  # robots.txt may be long
            fresh = [place for place in _well_formed(sitemap.sitemaps) if place not in addresses]
            addresses.update(fresh)
            waiting.extend(fresh)
            if len(addresses) > _MOST_SITEMAPS:
                raise SourceMisplaced(f"The site has more than {_MOST_SITEMAPS:,} sitemaps")
        return has_any

    def _add_all(self, base: URL, places: Iterable[str]) -> None:
        for place in places:
            page = self._addresses.normal(base, place)
            if page is not None:
                self._add(page, 0)

    async def _sitemap(self, url: URL) -> bytes | None:
        """A sitemap; None if there is none at this address."""
        async with await self._visitor.get(url, limits=_SITEMAP) as reply:
            is_page = reply.headers.get("Content-Type", "").lower().startswith("text/html")
            if reply.status in ABSENT or 300 <= reply.status < 400 or (reply.status == 200 and is_page):
                return None
            if reply.status != 200:
                raise SourceUnreachable(f"The sitemap {url.path} can't be read: {reply.status}")
            try:
                return await reply.read()
            except OutgoingError as error:
                raise ListingIncomplete(f"The sitemap {url.path} can't be read: {error}") from None


class SiteSource:
    """Pages are known by their addresses, and their content by its digest."""

    def __init__(
        self, client: OutgoingClient, addresses: SiteAddresses, settings: WebSettings, visitor: SiteVisitor
    ) -> None:
        self._client = client
        self._addresses = addresses
        self._settings = settings
        self._visitor = visitor

    async def documents(self, since: str | None) -> Listing:
        """All pages; only what has changed is sent. Raises SourceFault."""
        rules = await read_rules(self._client, self._addresses.start)
        self._visitor.pause = max(rules.pause(), self._settings.pause_seconds)
        previous = None if since is None else await asyncio.to_thread(from_cursor, since)
        walk = SiteWalk(self._addresses, self._settings, rules, self._visitor, previous)
        async with aclosing(walk.items()) as items:
            async for item in items:
                yield item

    @asynccontextmanager
    async def content(self, item: SourceItem) -> AsyncIterator[AsyncIterator[bytes]]:
        """A page as it was listed; if that was in another process, as it is now. Raises ItemFault."""
        file = self._visitor.content_file(item.etag)
        try:
            whole = await asyncio.to_thread(file.read_bytes)
        except FileNotFoundError:
            pass
        else:
            yield _one_piece(whole)
            return
        async with await self._visitor.get(URL(item.identity, encoded=True)) as reply:
            if reply.status in ABSENT:
                raise ItemVanished("It was deleted since it was listed")
            if reply.status != 200:
                raise ItemFault(f"The server answered {reply.status}")
            yield item_pieces(reply)


def _well_formed(places: Iterable[str]) -> list[URL]:
    """The addresses of servers among these."""
    urls = list[URL]()
    for place in places:
        with suppress(ValueError):
            url = URL(place)
            urls += [url] if url.scheme in ("http", "https") and url.host else []
    return urls


async def _one_piece(whole: bytes) -> AsyncIterator[bytes]:
    yield whole


def _moment(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text) if text else None
    except (ValueError, TypeError):
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


@asynccontextmanager
async def open_site(setup: SourceSetup) -> AsyncIterator[DocumentSource]:
    """Open a source of this kind; what is kept of its pages is removed at the end."""
    settings = WebSettings.model_validate(setup.settings.model_dump())
    addresses = SiteAddresses(settings.url)
    place = setup.platform.scratch.new(".web")
    place.mkdir(mode=0o700)
    try:
        async with setup.platform.resource(OUTGOING).client("source_web") as client:
            visitor = SiteVisitor(client, addresses, place, int(settings.max_size_mb * _MEGABYTE))
            yield SiteSource(client, addresses, settings, visitor)
    finally:
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


WEB: Final = SourceKind("web", "Website", WebSettings, open_site)
