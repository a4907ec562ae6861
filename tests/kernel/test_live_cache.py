"""Rows remembered until a notice: asked for once, forgotten in time, bounded without a cliff."""

from __future__ import annotations

import asyncio

import pytest

from kernel.sdk import LiveCache


class Source:
    """Where values come from; counts who asks, and may keep them waiting."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.value = "first"
        self.open = asyncio.Event()
        self.open.set()

    async def load(self, key: int) -> str:
        self.asked.append(key)
        value = f"{self.value} {key}"
        await self.open.wait()
        return value


@pytest.fixture
async def source() -> Source:
    return Source()


async def test_remembered(source: Source) -> None:
    """A value is read once, however many ask, at once or later."""
    cache = LiveCache(source.load, max_age=60)
    assert cache.peek(1) is None
    assert await asyncio.gather(*(cache.get(1) for _ in range(10))) == ["first 1"] * 10
    assert (await cache.get(1), cache.peek(1), source.asked) == ("first 1", "first 1", [1])


async def test_too_old(source: Source) -> None:
    cache = LiveCache(source.load, max_age=0)
    await cache.get(1)
    assert cache.peek(1) is None
    await cache.get(1)
    assert source.asked == [1, 1]


@pytest.mark.parametrize("everything", [False, True])
async def test_forgotten_while_it_is_read(source: Source, everything: bool) -> None:
    """A reading that began before the change is never remembered, though who waits for it gets it."""
    cache = LiveCache(source.load, max_age=60)
    source.open.clear()
    old = asyncio.create_task(cache.get(1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    cache.clear() if everything else cache.invalidate(1)
    source.value = "second"
    new = asyncio.create_task(cache.get(1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    source.open.set()
    assert (await old, await new) == ("first 1", "second 1")
    assert cache.peek(1) == "second 1"


async def test_the_others_stay(source: Source) -> None:
    cache = LiveCache(source.load, max_age=60)
    await asyncio.gather(cache.get(1), cache.get(2))
    cache.invalidate(1)
    assert (cache.peek(1), cache.peek(2)) == (None, "first 2")


async def test_a_full_cache(source: Source) -> None:
    """A full cache forgets what nobody asked for longest, one value for each that comes."""
    cache = LiveCache(source.load, max_age=60, size=3)
    for key in (1, 2, 3):
        await cache.get(key)
    cache.peek(1)
    await cache.get(4)
    assert [cache.peek(key) is not None for key in (1, 2, 3, 4)] == [True, False, True, True]


async def test_a_reading_that_fails(source: Source) -> None:
    """All waiting callers get the error, and it is not cached."""
    failing = True

    async def load(key: int) -> str:
        if failing:
            raise OSError("no answer")
        return await source.load(key)

    cache = LiveCache(load, max_age=60)
    with pytest.raises(OSError, match="no answer"):
        await cache.get(1)
    failing = False
    assert await cache.get(1) == "first 1"


async def test_a_caller_who_leaves(source: Source) -> None:
    """A caller who is cancelled takes the value from nobody else."""
    cache = LiveCache(source.load, max_age=60)
    source.open.clear()
    leaving, staying = asyncio.create_task(cache.get(1)), asyncio.create_task(cache.get(1))
    await asyncio.sleep(0)
    leaving.cancel()
    source.open.set()
    assert await staying == "first 1"
    assert source.asked == [1]
