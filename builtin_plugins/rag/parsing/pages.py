"""Reports which page a parser is reading, for display: a scanned page takes seconds."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar


def _nobody(_page: int, _pages: int) -> None:
    """The default: progress is not shown."""


LISTENER: ContextVar[Callable[[int, int], None]] = ContextVar("who is told of pages", default=_nobody)


def begin_page(page: int, pages: int) -> None:
    """Report that page `page` (from 1) of `pages` is being read."""
    LISTENER.get()(page, pages)
