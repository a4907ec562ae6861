"""Fetches one feed: only if it has changed, only from allowed addresses, parsed in a limited child."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel.sdk import (
    OUTGOING,
    CallLimits,
    ChildFailed,
    ChildLimits,
    Children,
    OutgoingClient,
    OutgoingError,
    Platform,
    ResourceKey,
)
from kernel.sdk.operations import Reach

_CALL = CallLimits(total_seconds=30, body_bytes=5 * 1024 * 1024, redirects=3)
_PARSE = ChildLimits(memory_mb=400, cpu_seconds=20, wall_seconds=40, output_bytes=16 * 1024 * 1024)
_ACCEPT = "application/atom+xml, application/rss+xml, application/xml;q=0.9, text/xml;q=0.8, */*;q=0.1"
_REASONS = {
    "memory": "it needs too much memory",
    "timeout": "it takes too long to read",
    "failed": "it is neither RSS nor Atom",
}


class FeedUnreadable(Exception):
    """A feed that can't be read now; the text tells why."""


@dataclass(frozen=True)
class FeedContent:
    """A feed's current content. `etag` and `modified` are for the next request."""

    title: str
    items: list[dict[str, Any]]
    etag: str | None
    modified: str | None


@dataclass(frozen=True)
class FeedReader:
    """Reads feeds; one for each process."""

    client: OutgoingClient
    children: Children

    async def read(self, url: str, etag: str | None, modified: str | None, most: int) -> FeedContent | None:
        """The feed, or None when it has not changed since. Raises FeedUnreadable."""
        headers = {"Accept": _ACCEPT}
        if etag:
            headers["If-None-Match"] = etag
        if modified:
            headers["If-Modified-Since"] = modified
        try:
            async with await self.client.call("GET", url, headers=headers) as reply:
                if reply.status == 304:
                    return None
                if reply.status != 200:
                    raise FeedUnreadable(f"its server answered {reply.status}")
                content = await reply.read()
        except OutgoingError as error:
            raise FeedUnreadable(str(error)) from None
        found = await self._parse(content, reply.url, most)
        return FeedContent(
            found["title"],
            found["items"],
            _short(reply.headers, "ETag", 1000),
            _short(reply.headers, "Last-Modified", 255),
        )

    async def _parse(self, content: bytes, base: str, most: int) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="platform-news-") as folder:
            source = Path(folder, "feed")
            await asyncio.to_thread(source.write_bytes, content)
            try:
                found: dict[str, Any] = await self.children.call(
                    *("builtin_plugins.news.parsing:read_feed", str(source), base, most),
                    limits=_PARSE,
                    reach=Reach([str(source)]),
                )
            except ChildFailed as error:
                raise FeedUnreadable(_REASONS.get(error.reason, "it can't be read")) from None
            return found


def _short(headers: Mapping[str, str], name: str, longest: int) -> str | None:
    value = headers.get(name)
    return value if value and len(value) <= longest else None


@asynccontextmanager
async def open_reader(platform: Platform) -> AsyncIterator[FeedReader]:
    """The resource `READER`."""
    async with (
        platform.resource(OUTGOING).client("news", limits=_CALL) as client,
        aclosing(Children(preload=["builtin_plugins.news.parsing"])) as children,
    ):
        yield FeedReader(client, children)


READER: ResourceKey[FeedReader] = ResourceKey("news.reader")
