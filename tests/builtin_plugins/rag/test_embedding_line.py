"""Many small documents are embedded in line: in order, two calls at a time, whatever becomes of one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.services.small_texts import EMBEDDING_LINE
from kernel.sdk import Platform, Unavailable, hookimpl
from kernel.testing import Start, eventually
from tests.fakes.hash_embeddings import HashEmbeddings


class Doors(HashEmbeddings):
    """Each call waits at a door of its own; broken texts have no vector."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[list[str]] = []
        self.doors: list[asyncio.Event] = []
        self.under_way = 0

    @hookimpl
    async def embed_texts(self, model: str, texts: Sequence[str]) -> Embedded | None:
        self.begun.append([text.split()[0] for text in texts])
        self.doors.append(door := asyncio.Event())
        self.under_way += 1
        try:
            await door.wait()
        finally:
            self.under_way -= 1
        if "broken" in texts:
            raise Unavailable("no vector for this")
        return await super().embed_texts(model, texts)

    async def has_begun(self, calls: int) -> None:
        """Wait until so many calls have begun, and see that no further one has."""
        await eventually(lambda: len(self.begun) >= calls)
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(self.begun) == calls

    def open_all(self) -> None:
        for door in self.doors:
            door.set()


def line(platform: Platform, *texts: str, model: str = "all-minilm") -> asyncio.Task[Embedded]:
    return asyncio.create_task(platform.resource(EMBEDDING_LINE).embed(platform, model, texts))


async def test_the_next_in_line_begins_before_the_last_one_ends(start_platform: Start) -> None:
    """Calls are alike in size and come in order; two are under way, be they of different documents."""
    doors = Doors()
    platform = (await start_platform("rag", doors)).platform
    many = [f"a {number}" for number in range(50)]
    first, second = line(platform, *many), line(platform, "b", "c")
    await doors.has_begun(2)
    assert [len(call) for call in doors.begun] == [17, 17]
    doors.doors[1].set()
    await doors.has_begun(3)
    doors.doors[0].set()
    await doors.has_begun(4)
    assert doors.begun[2:] == [["a"] * 16, ["b", "c"]] and doors.under_way == 2
    doors.open_all()
    alone = await HashEmbeddings().embed_texts("all-minilm", many)
    assert alone is not None and np.array_equal((await first).vectors, alone.vectors)
    assert len((await second).vectors) == 2


@pytest.mark.parametrize("leaves", [False, True])
async def test_one_that_fails_or_leaves(start_platform: Start, leaves: bool) -> None:
    doors = Doors()
    platform = (await start_platform("rag", doors)).platform
    bad, good = line(platform, *["a"] * 24, *["broken"] * 240), line(platform, *["b"] * 48)
    await doors.has_begun(2)
    if leaves:
        bad.cancel()
    else:
        doors.doors[1].set()
    await asyncio.wait({bad})
    await eventually(lambda: doors.begun[2:] == [["b"] * 24] * 2)
    assert doors.under_way == 2
    doors.open_all()
    assert len((await good).vectors) == 48
    with pytest.raises(asyncio.CancelledError if leaves else Unavailable):
        await bad


async def test_models_do_not_wait_for_each_other(start_platform: Start) -> None:
    doors = Doors()
    platform = (await start_platform("rag", doors)).platform
    slow = line(platform, *["a"] * 240)
    await doors.has_begun(2)
    other = line(platform, "b", model="multilingual-e5-small")
    await doors.has_begun(3)
    doors.doors[2].set()
    assert len((await other).vectors) == 1
    slow.cancel()
    await asyncio.wait({slow})
