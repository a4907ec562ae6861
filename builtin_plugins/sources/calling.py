"""Calls to a source's server: a busy one is asked again, and what goes wrong is a fault of the source."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Final

from aiohttp import hdrs
from yarl import URL

from builtin_plugins.sources.protocol import (
    ItemFault,
    ItemVanished,
    SourceItem,
    SourceMisplaced,
    SourceThrottled,
    SourceUnreachable,
)
from kernel.sdk import CallLimits, OutgoingClient, OutgoingError, OutgoingReply
from kernel.sdk.outgoing import DestinationRefused

ABSENT: Final = (404, 410)
"""Statuses of what is not there, rather than can't be had now."""
BUSY: Final = (429, 503)
"""Statuses of a server that wants to be asked again later."""
_TRIES, _SHORT_WAIT = 3, 5.0
"""How often, and for how many seconds, to wait here: after a longer wait, the listing begins again."""
_WAIT, _LONGEST_WAIT = 30.0, 24 * 3600.0


async def call_server(
    client: OutgoingClient,
    method: str,
    url: URL,
    limits: CallLimits,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    *,
    is_one_of_many: bool = False,
) -> OutgoingReply:
    """The answer. A busy server is asked again if it will not be for long. Raises SourceFault.

    `is_one_of_many`: a 503 that doesn't say when to ask again may be of this address alone, and is an answer.
    """
    for left in reversed(range(_TRIES)):
        try:
            reply = await client.call(method, url, headers=headers, body=body, limits=limits)
        except DestinationRefused as error:
            raise SourceMisplaced(str(error)) from None
        except OutgoingError as error:
            raise SourceUnreachable(str(error)) from None
        if reply.status not in BUSY:
            return reply
        if is_one_of_many and reply.status == 503 and hdrs.RETRY_AFTER not in reply.headers:
            return reply
        wait = seconds_to_wait(reply.headers.get(hdrs.RETRY_AFTER))
        reply.close()
        if not left or wait > _SHORT_WAIT:
            raise SourceThrottled(wait)
        await asyncio.sleep(wait)
    raise AssertionError("the last try raises")


async def item_pieces(reply: OutgoingReply) -> AsyncIterator[bytes]:
    """The body of an item as it arrives. Raises ItemFault."""
    try:
        async for piece in reply.pieces():
            yield piece
    except OutgoingError as error:
        raise ItemFault(f"The server did not send all of it: {error}") from None


async def as_listed(
    pieces: AsyncIterator[bytes], item: SourceItem, etag_of: Callable[[str], Awaitable[str | None]]
) -> AsyncIterator[bytes]:
    """The body of an item that must still be the one that was listed when all of it has arrived.

    `etag_of` asks for the etag that an identity has now; None if it is gone. Raises ItemFault, SourceFault.
    """
    async for piece in pieces:
        yield piece
    now = await etag_of(item.identity)
    if now is None:
        raise ItemVanished("It was deleted since it was listed")
    if now != item.etag:
        raise ItemFault("It was changed since it was listed")


def clock_difference(reply: OutgoingReply) -> float | None:
    """How many seconds a server's clock is ahead of the one here; None if its answer does not say."""
    try:
        return parsedate_to_datetime(reply.headers.get(hdrs.DATE, "")).timestamp() - time.time()
    except (ValueError, TypeError):
        return None


def seconds_to_wait(text: str | None) -> float:
    """The seconds that a `Retry-After` asks for, which may be a date (RFC 9110, section 10.2.3)."""
    if not text:
        return _WAIT
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return min(float(text), _LONGEST_WAIT)
    try:
        return min(max(0.0, parsedate_to_datetime(text).timestamp() - time.time()), _LONGEST_WAIT)
    except (ValueError, TypeError):
        return _WAIT
