"""Which page a parser begins to read, told to whoever shows it: of scans, each takes seconds."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar


def _nobody(_page: int, _pages: int) -> None:
    """Who reads a file without showing how far it is."""


LISTENER: ContextVar[Callable[[int, int], None]] = ContextVar("who is told of pages", default=_nobody)


def begin_page(page: int, pages: int) -> None:
    """Tell that this page, from 1, of so many is being read."""
    LISTENER.get()(page, pages)
