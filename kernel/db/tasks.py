"""A unit of work that a thread is to run."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

from kernel.db.units import checked


class Task:
    """A function to call in a thread. It is either started or withdrawn, never both."""

    __slots__ = ("_first", "args", "context", "fn", "future", "kwargs")

    def __init__(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.context = contextvars.copy_context()
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._first = threading.Lock()

    def claim(self) -> bool:
        """True for the first caller: the thread that starts it or the loop that withdraws it."""
        return self._first.acquire(blocking=False)

    def run(self, argument: Any) -> Any:
        """Call the function in its caller's context (contextvars)."""
        return checked(self.context.run(self.fn, argument, *self.args, **self.kwargs))
