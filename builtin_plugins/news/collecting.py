"""Stores news items: new ones once, changed ones in place of the old version, and removes the oldest."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from kernel.sdk import Caller, Platform, PlatformError, Principal, Unavailable, Unit, utc_now

from .feeds import READER
from .models import Feed, Item, Library
from .settings import NewsSettings

try:
    from builtin_plugins.source_feed import api as feeds
except ModuleNotFoundError:  # not installed: no feed can be read
    feeds = None  # type: ignore[assignment]
try:
    from builtin_plugins.rag import api as rag
except ModuleNotFoundError:  # not installed: there is no place for the news
    rag = None  # type: ignore[assignment]

_LOCK = "news"
_LIBRARY = "news"
_AT_ONCE = 4


@dataclass
class CollectionTally:
    """The results of a collection."""

    new: int = 0
    changed: int = 0
    removed: int = 0
    unchanged_feeds: int = 0


async def collect(platform: Platform) -> dict[str, Any]:
    """Read every feed; returns what was stored, and which feeds could not be read and why.

    A feed that is no longer listed keeps its items. Raises Unavailable when no feed could be read.
    """
    settings = platform.settings_of(NewsSettings)
    listed, tally, turns = settings.by_name, CollectionTally(), asyncio.Semaphore(_AT_ONCE)
    if not listed:
        return {"feeds": 0, **vars(tally), "failed": {}}
    if feeds is None:
        raise Unavailable("The plugin 'source_feed' is not installed, so no feed can be read")
    caller = Caller(platform, Principal("service", "service:news"))
    library = await _open_library(caller)

    async def take(name: str, url: str) -> str | None:
        async with turns:
            return await FeedCollection(caller, library, name, url, settings, tally).run()

    errors = await asyncio.gather(*(take(name, url) for name, url in listed.items()))
    failed = {name: error for name, error in zip(listed, errors, strict=True) if error}
    if len(failed) == len(listed):
        raise Unavailable("; ".join(f"{name}: {error}" for name, error in failed.items())[:500])
    return {"feeds": len(listed), **vars(tally), "failed": failed}


async def _open_library(caller: Caller) -> str:
    """The knowledge base of the news; a new one to refill if somebody has deleted it."""
    database = caller.platform.database
    library_id = await database.read(_known_library)
    base_id = None
    if rag is not None:
        base_id = await caller.platform.hooks.ask(
            rag.open_knowledge_base,
            caller=caller,
            known=library_id,
            name="News",
            description="What the feeds of this server say",
        )
    if base_id is None:
        raise Unavailable("The plugin 'rag' is not running, so there is nowhere to store the news")
    if base_id != library_id:
        await database.write(_begin_library, base_id)
    return base_id


def _known_library(session: Session) -> str | None:
    return session.scalar(select(Library.knowledge_base_id).where(Library.name == _LIBRARY))


def _begin_library(unit: Unit, knowledge_base_id: str) -> None:
    unit.session.merge(Library(name=_LIBRARY, knowledge_base_id=knowledge_base_id))
    unit.session.execute(delete(Item))
    unit.session.execute(delete(Feed))


class FeedCollection:
    """One reading of one feed.

    Each item is stored before it is recorded, so that a kill loses none: the same bytes are the same
    document.
    """

    def __init__(
        self,
        caller: Caller,
        library: str,
        name: str,
        url: str,
        settings: NewsSettings,
        tally: CollectionTally,
    ) -> None:
        self._caller = caller
        self._platform = caller.platform
        self._library = library
        self._name = name
        self._url = url
        self._settings = settings
        self._tally = tally

    async def run(self) -> str | None:
        """Store new items; returns why the feed could not be read, if it couldn't."""
        try:
            reading = await self._read()
            if reading is not None:
                await self._take(reading)
                await self._drop_oldest()
        except (feeds.FeedUnreadable, PlatformError) as error:
            await self._platform.database.write(self._note, None, str(error))
            return str(error)
        await self._platform.database.write(self._note, reading, None)
        return None

    async def _read(self) -> feeds.FeedContent | None:
        etag, modified = await self._platform.database.read(self._validators)
        reader = self._platform.resource(READER)
        reading = await reader.read(self._url, etag, modified, self._settings.max_items)
        if reading is None:
            self._tally.unchanged_feeds += 1
        return reading

    def _validators(self, session: Session) -> tuple[str | None, str | None]:
        row = session.get(Feed, self._name)
        return (None, None) if row is None or row.url != self._url else (row.etag, row.modified)

    async def _take(self, reading: feeds.FeedContent) -> None:
        by_key = await self._platform.database.read(
            self._stored_items, [item["key"] for item in reading.items]
        )
        for item in reading.items:
            content = feeds.entry_text(reading.title or self._name, item)
            digest = hashlib.sha256(content).hexdigest()
            old = by_key.get(item["key"])
            if old is not None and old[0] == digest:
                continue
            document_id = await self._store(item, content)
            if old is not None and old[1] != document_id:
                await self._delete(old[1])
            await self._platform.database.write(self._keep, item, digest, document_id)
            self._tally.new += old is None
            self._tally.changed += old is not None

    def _stored_items(self, session: Session, keys: Sequence[str]) -> dict[str, tuple[str, str]]:
        """(digest, document) of each stored item, by its key."""
        query = select(Item.key, Item.digest, Item.document_id)
        rows = session.execute(query.where(Item.feed == self._name, Item.key.in_(keys)))
        return {key: (digest, document_id) for key, digest, document_id in rows}

    async def _store(self, item: dict[str, Any], content: bytes) -> str:
        stored = await self._platform.hooks.ask(
            rag.store_document,
            caller=self._caller,
            knowledge_base_id=self._library,
            filename=f"{item['title'][:100].replace('/', ' ')}.txt",
            content=content,
        )
        if stored is None:
            raise Unavailable("The plugin 'rag' is not running")
        return stored

    async def _delete(self, document_id: str) -> None:
        await self._platform.hooks.ask(
            rag.delete_document,
            caller=self._caller,
            knowledge_base_id=self._library,
            document_id=document_id,
        )

    def _keep(self, unit: Unit, item: dict[str, Any], digest: str, document_id: str) -> None:
        unit.lock(_LOCK)
        row: Item | None = unit.session.get(Item, (self._name, item["key"]))
        if row is None:
            row = Item(feed=self._name, key=item["key"], published_at=feeds.entry_moment(item) or utc_now())
            unit.session.add(row)
        row.digest, row.document_id = digest, document_id
        row.title, row.link = item["title"], item["link"]

    async def _drop_oldest(self) -> None:
        for key, document_id in await self._platform.database.read(self._too_many):
            await self._delete(document_id)
            await self._platform.database.write(self._forget, key)
            self._tally.removed += 1

    def _too_many(self, session: Session) -> list[tuple[str, str]]:
        query = select(Item.key, Item.document_id).where(Item.feed == self._name)
        newest_first = query.order_by(Item.published_at.desc(), Item.key)
        return [
            (key, document_id)
            for key, document_id in session.execute(newest_first.offset(self._settings.keep_items))
        ]

    def _forget(self, unit: Unit, key: str) -> None:
        unit.session.execute(delete(Item).where(Item.feed == self._name, Item.key == key))

    def _note(self, unit: Unit, reading: feeds.FeedContent | None, error: str | None) -> None:
        unit.lock(_LOCK)
        row = unit.session.get(Feed, self._name)
        if row is None or row.url != self._url:
            row = unit.session.merge(Feed(name=self._name, url=self._url, title="", etag=None, modified=None))
        row.checked_at, row.error = utc_now(), error and error[:500]
        if reading is not None:
            row.title, row.etag, row.modified = reading.title, reading.etag, reading.modified
