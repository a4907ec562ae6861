"""Embeds short texts that wait for a model together: questions, and the sentences of an answer.

For a short text, most of the time goes into reading the weights: eight at a time take about a third of the
processor time of eight one by one, and a single question doesn't wait. Identical simultaneous texts are
computed once. Results are not cached: the time of a later answer would reveal what others have asked.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import Executor

from builtin_plugins.embeddings.engines.base import Vectors
from kernel.sdk import ANY_ERROR

_AT_ONCE = 9
"""Distinct texts per batch: as many as an answer's eight sentences and its question's subject. More would
gain little, and all would wait for the last."""
_CALLERS = 64  # per batch: the next one waits until each has its vectors
_LONGEST = 4000
"""Characters per batch: long texts gain nothing from sharing, and would delay short ones."""

_PAUSE = 1.5
"""The pause between passing vectors to two callers of a batch, as a multiple of one's share of the computing
time.

Each caller then takes the event loop some milliseconds: without pauses, other requests wait twice as long
while fifty visitors begin (tests/benchmarks/visitors.py). The price: with sixteen clients that ask without a
break, one process answers a tenth (multilingual-e5-small) to a fifth (all-MiniLM) fewer questions a second.
"""

_LONGEST_PAUSE = 0.005  # seconds

Encode = Callable[[list[str]], Vectors]
Waiting = tuple[list[str], asyncio.Future[Vectors]]


def are_few(texts: Collection[str]) -> bool:
    """Whether these are few enough to share a batch, for whose end all others wait."""
    return len(texts) <= _AT_ONCE and sum(map(len, texts)) <= _LONGEST


class Gathered:
    """Runs one batch at a time, in the order of arrival."""

    def __init__(self, encode: Encode, threads: Executor) -> None:
        self._encode = encode
        self._threads = threads
        self._waiting: deque[Waiting] = deque()
        self._working: asyncio.Task[None] | None = None

    async def encode(self, texts: list[str]) -> Vectors:
        """One vector for each text. A caller that stops waiting costs nothing."""
        coming: asyncio.Future[Vectors] = asyncio.get_running_loop().create_future()
        self._waiting.append((texts, coming))
        if self._working is None:
            self._working = asyncio.create_task(self._work(), name="embedding short texts")
        return await coming

    def close(self) -> None:
        """Stop, and release all waiting callers."""
        if self._working is not None:
            self._working.cancel()
        for _, coming in self._waiting:  # a task that hasn't started would not do it
            coming.cancel()

    async def _work(self) -> None:
        try:
            while batch := self._next():
                try:
                    await self._answer(batch)
                finally:
                    for _, coming in batch:  # some are only left when the platform closes
                        coming.cancel()
        finally:
            self._working = None

    def _next(self) -> list[Waiting]:
        """The longest-waiting callers, without those that have left."""
        batch: list[Waiting] = []
        together: set[str] = set()
        while self._waiting:
            texts, coming = self._waiting[0]
            if not coming.done():
                together.update(texts)
                if batch and (len(batch) == _CALLERS or not are_few(together)):
                    break
                batch.append((texts, coming))
            self._waiting.popleft()
        return batch

    async def _answer(self, batch: list[Waiting]) -> None:
        """Embed a batch; a failed one is retried caller by caller: nobody fails because of another's text."""
        run = asyncio.get_running_loop().run_in_executor
        different = list(dict.fromkeys(text for texts, _ in batch for text in texts))
        try:
            vectors, seconds = await run(self._threads, self._timed, different)
            rows = dict(zip(different, range(len(vectors)), strict=True))
        except ANY_ERROR as error:  # boundary: an engine may fail in any way; the callers get the error
            await self._try_apart(batch, error)
            return
        pause = min(_LONGEST_PAUSE, _PAUSE * seconds / len(batch))
        for number, (texts, coming) in enumerate(batch):
            if number > 1 and not coming.done():  # the first two texts may belong to one answer
                await asyncio.sleep(pause)
            if not coming.done():
                coming.set_result(vectors[[rows[text] for text in texts]])

    def _timed(self, texts: list[str]) -> tuple[Vectors, float]:
        """Vectors, and the seconds that they took, without the wait for a thread."""
        begun = time.perf_counter()
        return self._encode(texts), time.perf_counter() - begun

    async def _try_apart(self, batch: list[Waiting], error: BaseException) -> None:
        """Try each distinct set of texts by itself; a set that was alone in the batch has already failed."""
        groups: dict[tuple[str, ...], list[Waiting]] = {}
        for texts, coming in batch:
            if not coming.done():
                groups.setdefault(tuple(texts), []).append((texts, coming))
        if len(groups) > 1:
            for group in groups.values():
                await self._answer(group)
            return
        for group in groups.values():
            for _, coming in group:
                coming.set_exception(error)
