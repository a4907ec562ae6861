"""What happened to a question: its steps with their times, and its `method_details`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

from builtin_plugins.rag.questions.events import Step
from builtin_plugins.rag.schemas import StepTime


def plural(number: float, noun: str) -> str:
    """`1 second`, `2 seconds`, `0.5 seconds`."""
    return f"{number:g} {noun}{'' if number == 1 else 's'}"


class Trace:
    """Steps, notes and details of one question.

    `degraded` lists what was not done as requested; `details` is what the method reports.
    """

    def __init__(self) -> None:
        self.steps: list[StepTime] = []
        self.degraded: list[str] = []
        self.details: dict[str, Any] = {}
        self._told: asyncio.Queue[Step | None] = asyncio.Queue()

    @contextmanager
    def step(self, name: str, message: str) -> Iterator[None]:
        """Report that a step begins, and measure its time."""
        self._told.put_nowait(Step(name, message))
        started = time.perf_counter()
        try:
            yield
        finally:
            self.steps.append(StepTime(step=name, ms=round((time.perf_counter() - started) * 1000, 3)))

    def degrade(self, note: str) -> None:
        """Note something that was not done as requested, each note once."""
        if note not in self.degraded:
            self.degraded.append(note)

    async def told(self) -> AsyncGenerator[Step, None]:
        """Yield the steps as they begin, until `close`."""
        while (step := await self._told.get()) is not None:
            yield step

    def close(self) -> None:
        """End the stream of steps."""
        self._told.put_nowait(None)
