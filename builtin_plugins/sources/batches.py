"""Many requests in one: each is answered by itself, and one that is throttled is sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from yarl import URL

from builtin_plugins.sources.calling import seconds_to_wait
from builtin_plugins.sources.json_api import JsonApi, RouteAbsent, RouteRefused, entries_of
from builtin_plugins.sources.protocol import ListingIncomplete, SourceThrottled

_BATCHES: Final = 4
"""How many are under way at the same time."""
_TRIES: Final = 6
_LONGEST_WAIT: Final = 30.0
"""Seconds that one batch waits: what the others have read would be lost."""


@dataclass(frozen=True, slots=True)
class BatchedAnswer:
    """The answer to one of the requests. `retry_after` is the header of this name; `body` is JSON."""

    status: int
    retry_after: str | None
    body: Any


Batch: TypeAlias = Callable[[Sequence[URL]], Awaitable[Mapping[URL, BatchedAnswer]]]
"""Sends the requests in one call and returns the answers; raises SourceFault if the call fails as a whole."""


async def lists_together(
    api: JsonApi,
    urls: Sequence[URL],
    key: str,
    following: Callable[[URL, Any], URL | None],
    send: Batch,
    most: int,
) -> list[list[Mapping[str, Any]] | None]:
    """The entries of several lists, whose first pages are asked for together, at most so many in one call.

    None for a list that is refused or not there. Raises SourceFault, and ListingIncomplete if one has no
    answer.
    """
    answers = await _read_all(api, urls, send, most)
    return [
        None
        if answers[url] is None
        else [one async for one in entries_of(api, url, key, following, first=answers[url])]
        for url in urls
    ]


async def _read_all(api: JsonApi, urls: Sequence[URL], send: Batch, most: int) -> Mapping[URL, Any]:
    turns = asyncio.Semaphore(_BATCHES)

    async def read(some: Sequence[URL]) -> Mapping[URL, Any]:
        async with turns:
            return await _read_batch(api, some, send)

    tasks = [asyncio.create_task(read(urls[at : at + most])) for at in range(0, len(urls), most)]
    try:
        parts = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return {url: answer for part in parts for url, answer in part.items()}


async def _read_batch(api: JsonApi, urls: Sequence[URL], send: Batch) -> Mapping[URL, Any]:
    results, left = dict[URL, Any](), list(urls)
    for number in range(_TRIES):
        answers = await send(left)
        wait, again = 0.0, list[URL]()
        for url in left:
            if url not in answers:
                raise ListingIncomplete("The server has not answered all requests of a batch")
            answer = answers[url]
            try:
                results[url] = api.answer_of(answer.status, answer.body)
            except SourceThrottled:
                delay = seconds_to_wait(answer.retry_after) if answer.retry_after else 2.0**number
                wait = max(wait, delay)
                again.append(url)
            except (RouteAbsent, RouteRefused):
                results[url] = None
        if not again:
            return results
        if wait > _LONGEST_WAIT or number == _TRIES - 1:
            raise SourceThrottled(wait)
        await asyncio.sleep(wait)
        left = again
    raise AssertionError("the last try raises")
