"""Short texts that come while others are computed: together, in order, each with its own vector."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from builtin_plugins.embeddings.engines.base import Vectors, normalized
from builtin_plugins.inference import api as inference
from builtin_plugins.inference.api import Embedded
from kernel.testing import Running, Start, platforms


class HeldEngine:
    """Waits before each batch until it may go on, fails for one text, and gives no vector for another."""

    identity = "held/all-minilm/fp32/0"
    dimension = 2

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.begun, self.go = threading.Event(), threading.Event()
        self.hold_at, self.held = 0, threading.Event()
        """Which batch is held again, and that it is."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        self.begun.set()
        assert self.go.wait(60)
        if len(self.batches) == self.hold_at:
            self.go.clear()
            self.held.set()
            assert self.go.wait(60)
        if any("broken" in text for text in texts):
            raise ValueError("a text that this engine can't read")
        found = [text for text in texts if "lost" not in text]
        vectors = np.array([[len(text), 1.0] for text in found], np.float32).reshape(-1, 2)
        return normalized(vectors)


async def embedded(running: Running, texts: Sequence[str], purpose: inference.Purpose = "query") -> Embedded:
    """The vectors of questions, or of passages."""
    found: Embedded | None = await running.platform.hooks.ask(
        inference.embed_texts, platform=running.platform, model="all-minilm", texts=texts, purpose=purpose
    )
    assert found is not None
    return found


def lengths(found: Embedded) -> list[int]:
    return [round(x / y) for x, y in found.vectors.tolist()]


async def asked(running: Running, number: int, text: str = "") -> int:
    """What tells a question's vector from others'."""
    return lengths(await embedded(running, [text or "x" * number]))[0]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> HeldEngine:
    """Instead of the real one."""
    engine = HeldEngine()
    monkeypatch.setattr("builtin_plugins.embeddings.service.load_engine", lambda *_: engine)
    return engine


async def waiting(running: Running, engine: HeldEngine, *texts: str) -> list[asyncio.Task[int]]:
    """A question that is being computed, and those that came meanwhile."""
    first = asyncio.create_task(asked(running, 1))
    assert await asyncio.to_thread(engine.begun.wait, 60)
    more = [asyncio.create_task(asked(running, at, text)) for at, text in enumerate(texts, 2)]
    for _ in range(10):  # rounds of the event loop until each of them waits
        await asyncio.sleep(0)
    return [first, *more]


async def test_fifty_at_once(start_platform: Start, engine: HeldEngine) -> None:
    """Few runs for all of them, the longest waiting first; who leaves gives the place free."""
    running = await start_platform("embeddings")
    tasks = await waiting(running, engine, *[""] * 49)
    tasks[5].cancel()
    engine.go.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(found.pop(5), asyncio.CancelledError)
    numbers = [number for number in range(1, 51) if number != 6]
    assert found == numbers
    assert [len(batch) for batch in engine.batches] == [1, 9, 9, 9, 9, 9, 3]
    assert [len(text) for batch in engine.batches for text in batch] == numbers


async def test_the_same_question_at_once(start_platform: Start, engine: HeldEngine) -> None:
    """It is computed once for all who wait, beside others, and not kept for those who come later."""
    running = await start_platform("embeddings")
    tasks = await waiting(running, engine, *["same"] * 20, "other one")
    engine.go.set()
    assert await asyncio.gather(*tasks) == [1, *[4] * 20, 9]
    assert await asked(running, 0, "same") == 4
    assert engine.batches == [["x"], ["same", "other one"], ["same"]]


@pytest.mark.parametrize("bad", ["broken", "lost"])
async def test_the_same_bad_question_at_once(start_platform: Start, engine: HeldEngine, bad: str) -> None:
    """It fails for all who ask it, is tried once more at most, and others have their vectors."""
    running = await start_platform("embeddings")
    tasks = await waiting(running, engine, *[bad] * 5, "other one")
    engine.go.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(one, ValueError) for one in found] == [False, *[True] * 5, False]
    assert engine.batches == [["x"], [bad, "other one"], [bad], ["other one"]]


async def test_one_text_twice_in_a_question(start_platform: Start, engine: HeldEngine) -> None:
    running = await start_platform("embeddings")
    engine.go.set()
    found = await embedded(running, ["aa", "b", "aa", "ccc"])
    assert lengths(found) == [2, 1, 2, 3]


async def test_a_batch_is_handed_out_one_by_one(start_platform: Start, engine: HeldEngine) -> None:
    """Between two questions that go on, whatever else the event loop has to do gets several turns. The first
    two go on together, as they may be for one answer.
    """
    running = await start_platform("embeddings")
    rounds, answered_in, many = 0, list[int](), asyncio.Event()

    async def others() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            if rounds == 1000:
                many.set()
            await asyncio.sleep(0)

    tasks = await waiting(running, engine, *[""] * 8)
    for task in tasks[1:]:
        task.add_done_callback(lambda _: answered_in.append(rounds))
    engine.hold_at = 2
    engine.go.set()
    assert await asyncio.to_thread(engine.held.wait, 60)
    beside = asyncio.create_task(others())
    await many.wait()  # so long takes the batch; a pause is a good part of that
    engine.go.set()
    await asyncio.gather(*tasks)
    beside.cancel()
    assert [len(batch) for batch in engine.batches] == [1, 8]
    between = sorted(later - earlier for earlier, later in pairwise(answered_in))
    assert between[1] > 0 and between[len(between) // 2] > 3


async def test_a_long_question_among_short_ones(start_platform: Start, engine: HeldEngine) -> None:
    """It is computed with few others, so that they need not wait for a batch of long texts."""
    running = await start_platform("embeddings")
    tasks = await waiting(running, engine, "", "y" * 3000, "z" * 3001, "")
    engine.go.set()
    assert await asyncio.gather(*tasks) == [1, 2, 3000, 3001, 5]
    assert [len(batch) for batch in engine.batches] == [1, 2, 2]


async def test_one_that_fails(start_platform: Start, engine: HeldEngine) -> None:
    running = await start_platform("embeddings")
    tasks = await waiting(running, engine, "", "broken", "")
    engine.go.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(found.pop(2), ValueError)
    assert found == [1, 2, 4]


@pytest.mark.parametrize("others", [("",), ("broken", "")])
async def test_a_platform_that_closes(
    platform_home: Path, engine: HeldEngine, others: tuple[str, ...]
) -> None:
    """Nobody waits on: not for the batch that is being computed, the next, or those tried one by one."""
    async with platforms(platform_home) as start:
        running = await start("embeddings")
        tasks = await waiting(running, engine, *others)
        if "broken" in others:
            engine.hold_at = 3  # the first of those that are tried alone
            engine.go.set()
            assert await asyncio.to_thread(engine.held.wait, 60)
    found = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
    engine.go.set()
    assert all(isinstance(one, asyncio.CancelledError) for one in found[1:])


async def test_many_texts_keep_no_question_waiting(start_platform: Start, engine: HeldEngine) -> None:
    """They are computed beside questions: whoever sends two thousand would hold up everybody."""
    running = await start_platform("embeddings")
    many = asyncio.create_task(embedded(running, ["many"] * 10))
    assert await asyncio.to_thread(engine.begun.wait, 60)
    engine.begun.clear()
    one = asyncio.create_task(asked(running, 1))
    assert await asyncio.to_thread(engine.begun.wait, 60)
    engine.go.set()
    assert len((await many).vectors) == 10 and await one == 1


async def test_an_answers_sentences_and_its_subject(start_platform: Start, engine: HeldEngine) -> None:
    running = await start_platform("embeddings")
    engine.go.set()
    sentences = [f"sentence {number}" for number in range(8)]
    found = await asyncio.gather(embedded(running, ["the subject"]), embedded(running, sentences, "passage"))
    assert [len(one.vectors) for one in found] == [1, 8]
    assert engine.batches == [["the subject", *sentences]]


async def test_where_batches_are_computed_side_by_side(start_platform: Start, engine: HeldEngine) -> None:
    """Passages wait for no question there: a document is embedded beside questions, in its own run."""
    running = await start_platform("embeddings", env={"PLATFORM_EMBEDDINGS_BATCHES": "2"})
    tasks = await waiting(running, engine, "", "")
    engine.begun.clear()
    passages = asyncio.create_task(embedded(running, ["p", "q"], "passage"))
    assert await asyncio.to_thread(engine.begun.wait, 60)
    assert engine.batches == [["x"], ["p", "q"]]
    engine.go.set()
    await asyncio.gather(passages, *tasks)
