"""A feed: each entry is a document, which stays when the feed no longer holds it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from builtin_plugins.source_feed.entries import entry_moment, entry_text
from builtin_plugins.source_feed.reader import FeedContent, FeedReader, FeedUnreadable
from builtin_plugins.source_feed.settings import FeedSettings
from builtin_plugins.sources.api import (
    ABSENT,
    DocumentSource,
    ItemFault,
    ItemVanished,
    Listing,
    ListingEnd,
    SourceFault,
    SourceItem,
    SourceKind,
    SourceMisplaced,
    SourceSetup,
    SourceThrottled,
    SourceUnreachable,
    seconds_to_wait,
)
from kernel.sdk import ResourceKey

READER: ResourceKey[FeedReader] = ResourceKey("source_feed.reader")
_LONGEST_NAME: Final = 100
_BUSY: Final = (429, 503)


class FeedSource:
    """Entries are known by the ids that the feed gives them."""

    def __init__(self, reader: FeedReader, settings: FeedSettings) -> None:
        self._reader = reader
        self._settings = settings
        self._contents: dict[str, bytes] = {}

    async def documents(self, since: str | None) -> Listing:
        """The entries of the feed, unless it has not changed. Raises SourceFault."""
        feed = await self._read(since)
        if feed is None:
            yield ListingEnd(since, only_changes=True)
            return
        for entry in feed.items:
            content = entry_text(feed.title, entry)
            self._contents[entry["key"]] = content
            yield _item(feed.title, entry, content)
        yield ListingEnd(json.dumps([feed.etag, feed.modified]), only_changes=True)

    @asynccontextmanager
    async def content(self, item: SourceItem) -> AsyncIterator[AsyncIterator[bytes]]:
        """An entry as text. Raises ItemFault, SourceFault."""
        if item.identity not in self._contents:  # a run that continues after a kill
            feed = await self._read(None)
            if feed is None:
                raise ItemFault("The server sent no feed")
            self._contents |= {entry["key"]: entry_text(feed.title, entry) for entry in feed.items}
        whole = self._contents.get(item.identity)
        if whole is None:
            raise ItemVanished("The feed no longer holds it")

        async def pieces() -> AsyncIterator[bytes]:
            yield whole

        yield pieces()

    async def _read(self, since: str | None) -> FeedContent | None:
        etag, modified = (None, None) if since is None else json.loads(since)
        try:
            return await self._reader.read(self._settings.url, etag, modified, self._settings.entries)
        except FeedUnreadable as error:
            raise _fault_of(error) from None


def _item(feed: str, entry: dict[str, Any], content: bytes) -> SourceItem:
    moment = entry_moment(entry)
    title = " ".join(entry["title"].replace("/", " ").split())[:_LONGEST_NAME]
    return SourceItem(
        identity=entry["key"],
        etag=hashlib.sha256(content).hexdigest(),
        path=f"{f'{moment:%Y-%m-%d} ' if moment else ''}{title}.txt",
        size=len(content),
        modified=moment,
        media_type="text/plain",
        link=entry["link"] or None,
        details={"feed": feed} if feed else {},
    )


def _fault_of(error: FeedUnreadable) -> SourceFault:
    reason = f"The feed can't be read: {error}"
    if error.status in _BUSY:
        return SourceThrottled(seconds_to_wait(error.retry_after))
    if error.is_lasting or error.status in ABSENT:
        return SourceMisplaced(reason)
    return SourceUnreachable(reason)


@asynccontextmanager
async def open_feed(setup: SourceSetup) -> AsyncIterator[DocumentSource]:
    """Open a source of this kind."""
    settings = FeedSettings.model_validate(setup.settings.model_dump())
    yield FeedSource(setup.platform.resource(READER), settings)


FEED: Final = SourceKind("feed", "RSS, Atom or JSON feed", FeedSettings, open_feed)
