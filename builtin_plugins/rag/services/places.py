"""Where a passage is in its document, in the payload of its point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from builtin_plugins.rag.answering.passages import Pages

PLACE = ("page", "char_start", "char_end")
PAGES = "pages"
"""The key of the later pages that begin in a passage: missing for most, and in older passages."""


class Placed(Protocol):
    """Anything with a place in a document."""

    @property
    def page(self) -> int | None: ...

    @property
    def char_start(self) -> int: ...

    @property
    def char_end(self) -> int: ...

    @property
    def pages(self) -> Sequence[tuple[int, int | None]]: ...


def place_of(item: Placed) -> dict[str, Any]:
    """A place in the form of a payload."""
    place = {name: getattr(item, name) for name in PLACE}
    return {**place, PAGES: list(item.pages)} if item.pages else place


def place_in(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The place from a larger payload."""
    place = {name: payload.get(name) for name in PLACE}
    return {**place, PAGES: payload[PAGES]} if PAGES in payload else place


def pages_of(payload: Mapping[str, Any]) -> Pages:
    """The later pages that begin in a passage."""
    return tuple((start, page) for start, page in payload.get(PAGES, ()))
