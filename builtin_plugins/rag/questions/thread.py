"""The thread in which questions are computed: one for all of them, first come, first served.

Python code runs in one thread at a time, so extra threads would not finish questions any sooner. They would
only slow down the event loop, and with it every other request. When fifty questions arrive at once, they are
computed one after the other.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import ParamSpec, TypeVar

from builtin_plugins.rag.services.languages import LANGUAGES
from kernel.sdk import Platform, ResourceKey

P = ParamSpec("P")
T = TypeVar("T")

QUESTION_THREAD: ResourceKey[ThreadPoolExecutor] = ResourceKey("rag question thread")


async def in_thread(platform: Platform, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `fn` in that thread, in the caller's context (contextvars)."""
    work = partial(contextvars.copy_context().run, fn, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(platform.resource(QUESTION_THREAD), work)


async def language_of(platform: Platform, question: str) -> str | None:
    """The language of a question as an ISO 639 code; None if it can't be detected.

    Once the model is loaded, this doesn't use the thread: detection takes less time than the switch, and
    would delay the question's embedding, which runs at the same time.
    """
    detector = platform.resource(LANGUAGES)
    return detector.of(question) if detector.is_loaded else await in_thread(platform, detector.of, question)


@asynccontextmanager
async def open_question_thread(_platform: Platform) -> AsyncIterator[ThreadPoolExecutor]:
    """Open this process's thread, which starts with the first question."""
    threads = ThreadPoolExecutor(1, "platform-questions")
    try:
        yield threads
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
