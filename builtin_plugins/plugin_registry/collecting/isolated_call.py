"""Calls a hook of a single plugin, isolated so that it can't harm others."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from kernel.sdk import Platform, in_abandonable_thread

Data = Mapping[str, Any] | None
Question = Callable[[], Awaitable[Data]]


class TookTooLong(Exception):
    """The plugin did not answer in time."""


def question_to(platform: Platform, spec: Any, plugin: str) -> Question | None:
    """A call of one hook of a plugin in service; None if the plugin doesn't implement it."""
    for implementation in platform.hooks.implementations(spec):
        if implementation.plugin == plugin:
            call = partial(implementation.call, {"platform": platform})
            return (
                call if inspect.iscoroutinefunction(implementation.function) else partial(_in_a_thread, call)
            )
    return None


async def _in_a_thread(call: Callable[[], Any]) -> Data:
    answer = await in_abandonable_thread(call)
    data: Data = await answer if isinstance(answer, Awaitable) else answer
    return data


async def ask_alone(question: Question, seconds: float) -> Data:
    """The plugin's answer. Raises TookTooLong, and whatever the plugin raises.

    A plugin that takes too long is abandoned: nobody waits for it to stop.
    """
    task = asyncio.ensure_future(question())
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    finally:
        task.cancel()
    if not done:
        raise TookTooLong()
    return task.result()
