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
    OutgoingReply,
    Platform,
)
from kernel.sdk.operations import Reach
from kernel.sdk.outgoing import DestinationRefused

_CALL = CallLimits(total_seconds=30, body_bytes=5 * 1024 * 1024, redirects=3)
_PARSE = ChildLimits(memory_mb=400, cpu_seconds=20, wall_seconds=40, output_bytes=16 * 1024 * 1024)
_ACCEPT = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, "
    "text/xml;q=0.8, application/json;q=0.8, */*;q=0.1"
)
_REASONS = {
    "memory": "it needs too much memory",
    "timeout": "it takes too long to read",
    "failed": "it is neither RSS nor Atom nor a JSON feed",
}


class FeedUnreadable(Exception):
    """A feed that can't be read now; the text tells why.

    `status` and `retry_after` are what its server answered, if it did. `is_lasting`: asking again won't help.
    """

    def __init__(
        self,
        reason: str,
        status: int | None = None,
        retry_after: str | None = None,
        *,
        is_lasting: bool = False,
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.retry_after = retry_after
        self.is_lasting = is_lasting


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
                    raise _refusal(reply)
                content = await reply.read()
        except OutgoingError as error:
            is_refused = isinstance(error, DestinationRefused)
            raise FeedUnreadable(str(error), is_lasting=is_refused) from None
        feed = await self._parse(content, reply.url, most)
        return FeedContent(
            feed["title"],
            feed["items"],
            _short(reply.headers, "ETag", 1000),
            _short(reply.headers, "Last-Modified", 255),
        )

    async def _parse(self, content: bytes, base: str, most: int) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="platform-feed-") as folder:
            source = Path(folder, "feed")
            await asyncio.to_thread(source.write_bytes, content)
            try:
                feed: dict[str, Any] = await self.children.call(
                    *("builtin_plugins.source_feed.parsing:read_feed", str(source), base, most),
                    limits=_PARSE,
                    reach=Reach([str(source)]),
                )
            except ChildFailed as error:
                reason = _REASONS.get(error.reason, "it can't be read")
                raise FeedUnreadable(reason, is_lasting=error.reason == "failed") from None
            return feed


def _refusal(reply: OutgoingReply) -> FeedUnreadable:
    return FeedUnreadable(
        f"its server answered {reply.status}", reply.status, reply.headers.get("Retry-After")
    )


def _short(headers: Mapping[str, str], name: str, longest: int) -> str | None:
    value = headers.get(name)
    return value if value and value.isascii() and len(value) <= longest else None


@asynccontextmanager
async def open_reader(platform: Platform, name: str) -> AsyncIterator[FeedReader]:
    """A reader for the plugin of this name."""
    async with (
        platform.resource(OUTGOING).client(name, limits=_CALL) as client,
        aclosing(Children(preload=["builtin_plugins.source_feed.parsing"])) as children,
    ):
        yield FeedReader(client, children)
