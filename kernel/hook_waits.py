"""How long to wait for a plugin's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator, Hashable
from types import CoroutineType, coroutine
from typing import Any

_SOON = 1 / 30  # of the time that a specification allows


class Waits:
    """Waits for answers and knows which plugins are stuck.

    Once an implementation has timed out, only one question to it at a time gets the full time, and others get
    a thirtieth of it, until it answers: a stalled store of its own must not hold everybody up.
    """

    def __init__(self) -> None:
        self._stuck: dict[Hashable, bool] = {}  # whether a question is waiting for the full time

    async def within(self, seconds: float, answer: Awaitable[Any], asked: Hashable | None = None) -> Any:
        """The answer. Raises TimeoutError with a text; without `asked`, always after the full time.

        A timeout costs ten times as much as a coroutine that never waits, as most don't: it is set only once
        one does.
        """
        if isinstance(answer, CoroutineType):
            try:
                awaited = answer.send(None)
            except StopIteration as end:
                return end.value
            answer = _resumed(answer, awaited)
        is_tried = self._stuck.get(asked)
        if is_tried:
            seconds *= _SOON
        elif is_tried is not None:
            self._stuck[asked] = True
        try:
            async with asyncio.timeout(seconds) as limit:
                found = await answer
        except TimeoutError:
            if not limit.expired():
                raise
            if asked is not None:
                self._stuck.setdefault(asked, False)
            raise TimeoutError(f"no answer within {seconds:g} s") from None
        finally:
            if is_tried is False and asked in self._stuck:
                self._stuck[asked] = False
        self._stuck.pop(asked, None)
        return found


@coroutine
def _resumed(begun: CoroutineType[Any, Any, Any], awaited: Any) -> Generator[Any, Any, Any]:
    """The rest of a coroutine that has begun and awaits `awaited`."""
    try:
        while True:
            try:
                sent = yield awaited
            except BaseException as error:  # noqa: BLE001 - boundary: thrown into the coroutine
                awaited = begun.throw(error)
            else:
                awaited = begun.send(sent)
    except StopIteration as end:
        return end.value
