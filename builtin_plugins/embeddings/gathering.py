"""Short texts that wait for a model, embedded together: questions, and the sentences of an answer.

A short text costs the network little more than the reading of its weights: eight at a time take about a third
of the processor time of eight one by one, and a question that comes alone waits for nobody. What several ask
at the same moment is computed once. It is not kept for those who come later: how soon they are answered would
tell what others have asked.
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
"""Different texts, as many as an answer's eight sentences and the subject of its question: more would gain
little for each, and all of them would wait for the last."""
_CALLERS = 64  # of a batch: the next one waits until each has its vectors
_LONGEST = 4000
"""Characters of a batch: a long text costs what it costs, and would keep short ones waiting."""

_PAUSE = 1.5
"""The pause between two callers of a batch who get their vectors, in times one's share of the computing.

Each then costs the event loop some milliseconds: without pauses, other requests wait twice as long while
fifty visitors begin (tests/benchmarks/visitors.py). The price: with sixteen clients that ask without a break,
one process answers a tenth (multilingual-e5-small) to a fifth (all-MiniLM) fewer questions a second.
"""

_LONGEST_PAUSE = 0.005  # seconds

Encode = Callable[[list[str]], Vectors]
Waiting = tuple[list[str], asyncio.Future[Vectors]]


def are_few(texts: Collection[str]) -> bool:
    """Whether these may share a batch: all others wait for it to end."""
    return len(texts) <= _AT_ONCE and sum(map(len, texts)) <= _LONGEST


class Gathered:
    """One batch at a time, in the order in which texts came."""

    def __init__(self, encode: Encode, threads: Executor) -> None:
        self._encode = encode
        self._threads = threads
        self._waiting: deque[Waiting] = deque()
        self._working: asyncio.Task[None] | None = None

    async def encode(self, texts: list[str]) -> Vectors:
        """One vector for each text. A caller that leaves while waiting costs nothing."""
        coming: asyncio.Future[Vectors] = asyncio.get_running_loop().create_future()
        self._waiting.append((texts, coming))
        if self._working is None:
            self._working = asyncio.create_task(self._work(), name="embedding short texts")
        return await coming

    def close(self) -> None:
        """Stop, and release everybody who waits."""
        if self._working is not None:
            self._working.cancel()
        for _, coming in self._waiting:  # a task that has not begun would not do it
            coming.cancel()

    async def _work(self) -> None:
        try:
            while batch := self._next():
                try:
                    await self._answer(batch)
                finally:
                    for _, coming in batch:  # none is left but when the platform closes
                        coming.cancel()
        finally:
            self._working = None

    def _next(self) -> list[Waiting]:
        """Those who waited longest, without those who have left."""
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
        """A batch that fails is tried caller by caller: nobody fails for another's text."""
        run = asyncio.get_running_loop().run_in_executor
        different = list(dict.fromkeys(text for texts, _ in batch for text in texts))
        try:
            vectors, seconds = await run(self._threads, self._timed, different)
            rows = dict(zip(different, range(len(vectors)), strict=True))
        except ANY_ERROR as error:  # boundary: an engine may fail in any way; whoever asked is told
            await self._try_apart(batch, error)
            return
        pause = min(_LONGEST_PAUSE, _PAUSE * seconds / len(batch))
        for number, (texts, coming) in enumerate(batch):
            if number > 1 and not coming.done():  # the first two may belong to one answer
                await asyncio.sleep(pause)
            if not coming.done():
                coming.set_result(vectors[[rows[text] for text in texts]])

    def _timed(self, texts: list[str]) -> tuple[Vectors, float]:
        """Vectors, and the seconds that they took: no waiting for a thread."""
        begun = time.perf_counter()
        return self._encode(texts), time.perf_counter() - begun

    async def _try_apart(self, batch: list[Waiting], error: BaseException) -> None:
        """Try each different set of texts by itself; one that was alone in the batch has failed already."""
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
