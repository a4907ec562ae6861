"""Answers that stream leave the event loop to others."""

from __future__ import annotations

import asyncio

from kernel.libs.outgoing.turns import StreamTurns


async def _turns_of_the_loop(until: asyncio.Event) -> int:
    count = 0
    while not until.is_set():
        await asyncio.sleep(0)
        count += 1
    return count


async def test_many_pieces_at_the_same_moment_are_spread_over_turns_of_the_loop() -> None:
    """A hundred at once, at most ten a turn, in the order of their coming."""
    turns, passed, over = StreamTurns(10), list[int](), asyncio.Event()

    async def piece(number: int) -> None:
        await turns.take()
        passed.append(number)

    looking = asyncio.create_task(_turns_of_the_loop(over))
    await asyncio.gather(*(piece(number) for number in range(100)))
    over.set()
    assert passed == list(range(100))
    assert await looking >= 10


async def test_who_leaves_the_queue_holds_up_nobody() -> None:
    """Places of cancelled answers are passed over; the next ones take their turn, and later ones as well."""
    turns = StreamTurns(1)
    waiting = [asyncio.create_task(turns.take()) for _ in range(5)]
    await asyncio.sleep(0)
    for task in waiting[1:4]:
        task.cancel()
    await asyncio.wait_for(waiting[4], 5)
    assert [task.cancelled() for task in waiting] == [False, True, True, True, False]
    for _ in range(3):
        await asyncio.wait_for(turns.take(), 5)
