"""One page, asked for only if it has changed since it was last sent."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from aiohttp import hdrs
from yarl import URL

from builtin_plugins.source_web.addresses import SiteAddresses
from builtin_plugins.source_web.pages import PageSigns, obey, read_page
from builtin_plugins.source_web.records import PageRecord
from builtin_plugins.sources.api import ABSENT, SourceUnreachable, call_server
from kernel.sdk import CallLimits, OutgoingClient, OutgoingError, OutgoingReply
from kernel.sdk.outgoing import AnswerTooLarge

_HTML: Final = ("text/html", "application/xhtml+xml")
_NO_DOCUMENTS: Final = (
    "image/",
    "video/",
    "audio/",
    "font/",
    "text/css",
    "text/javascript",
    "application/javascript",
)
_LONGEST_VALIDATOR: Final = 255
_MOST_KEPT: Final = 1024**3
"""Bytes of pages that are kept on disk during a run; further ones are asked for again."""


@dataclass(frozen=True, slots=True)
class PageMoved:
    """It redirects; `target` is as the server says."""

    target: str


@dataclass(frozen=True, slots=True)
class PageGone:
    """The server says that there is no such page."""


@dataclass(frozen=True, slots=True)
class PageFault:
    """It can't be had now, or is nothing that is read: then it `is_lasting`."""

    reason: str
    is_lasting: bool = False


Visit: TypeAlias = PageRecord | PageMoved | PageGone | PageFault


class SiteVisitor:
    """Asks for pages, one after another with a pause, and keeps most of what was sent until it is closed.

    `contents` is an empty folder; `most_bytes` is the size of the largest page that is read.
    """

    def __init__(
        self, client: OutgoingClient, addresses: SiteAddresses, contents: Path, most_bytes: int
    ) -> None:
        self._client = client
        self._addresses = addresses
        self._contents = contents
        self._limits = CallLimits(total_seconds=300, silence_seconds=30, body_bytes=most_bytes)
        self._turn = asyncio.Lock()
        self._next = 0.0
        self._room = _MOST_KEPT
        self.pause = 0.0

    async def get(
        self, url: URL, headers: Mapping[str, str] | None = None, limits: CallLimits | None = None
    ) -> OutgoingReply:
        """An answer, when it is this request's turn; `limits` are those of a page. Raises SourceFault."""
        async with self._turn:
            await asyncio.sleep(self._next - time.monotonic())
            self._next = time.monotonic() + self.pause
        return await call_server(
            self._client, "GET", url, limits or self._limits, headers, is_one_of_many=limits is None
        )

    def content_file(self, digest: str) -> Path:
        """Where a content is kept, if it was sent since this was opened and there was room for it."""
        return self._contents / digest

    async def visit(self, url: URL, previous: PageRecord | None) -> Visit:
        """A page; as it is known, if it has not changed. Raises SourceThrottled, SourceMisplaced."""
        try:
            async with await self.get(url, _conditions(previous)) as reply:
                return await self._read(url, previous, reply)
        except AnswerTooLarge:
            return PageFault("it is larger than the largest page that is read", is_lasting=True)
        except (SourceUnreachable, OutgoingError) as error:
            return PageFault(str(error))

    async def _read(self, url: URL, previous: PageRecord | None, reply: OutgoingReply) -> Visit:
        status, headers = reply.status, reply.headers
        if status == 304 and previous is not None:
            return previous
        if status in ABSENT:
            return PageGone()
        if 300 <= status < 400 and hdrs.LOCATION in headers:
            return PageMoved(headers[hdrs.LOCATION])
        if status != 200:
            return PageFault(f"the server answered {status}")
        media_type, _, parameters = headers.get(hdrs.CONTENT_TYPE, "").partition(";")
        media_type = media_type.strip().lower()
        if media_type.startswith(_NO_DOCUMENTS):
            return PageRecord("no document", 0, media_type, is_listed=False)
        return await self._record(url, media_type, _charset(parameters), await reply.read(), headers)

    async def _record(
        self, url: URL, media_type: str, charset: str | None, content: bytes, headers: Mapping[str, str]
    ) -> PageRecord:
        digest = hashlib.sha256(content).hexdigest()
        if len(content) <= self._room:
            self._room -= len(content)
            await asyncio.to_thread(self.content_file(digest).write_bytes, content)
        is_page = media_type in _HTML
        signs = await asyncio.to_thread(read_page, content, charset) if is_page else PageSigns()
        obey(headers.get("X-Robots-Tag", ""), signs)
        base = url.join(URL(signs.base)) if signs.base and _is_address(signs.base) else url
        links = [self._addresses.normal(base, link) for link in signs.links if signs.is_followed]
        canonical = self._addresses.normal(url, signs.canonical) if signs.canonical else None
        return PageRecord(
            digest=digest,
            size=len(content),
            media_type=media_type,
            etag=_short(headers.get(hdrs.ETAG)),
            modified=_short(headers.get(hdrs.LAST_MODIFIED)),
            links=tuple(dict.fromkeys(str(link) for link in links if link is not None)),
            canonical=None if canonical is None else str(canonical),
            is_listed=signs.is_listed,
        )


def _conditions(previous: PageRecord | None) -> dict[str, str]:
    """A date alone says less: it is sent only where there is no tag."""
    if previous is None or not previous.digest:
        return {}
    if previous.etag:
        return {hdrs.IF_NONE_MATCH: previous.etag}
    return {hdrs.IF_MODIFIED_SINCE: previous.modified} if previous.modified else {}


def _charset(parameters: str) -> str | None:
    name, _, value = parameters.partition("=")
    return value.strip().strip('"') or None if name.strip().lower() == "charset" else None


def _is_address(text: str) -> bool:
    try:
        URL(text)
    except ValueError:
        return False
    return True


def _short(value: str | None) -> str | None:
    """A validator that can be sent back."""
    return value if value and value.isascii() and len(value) <= _LONGEST_VALIDATOR else None
