"""Parsers that plugins bring (`kernel.contracts`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DocumentParser:
    """A parser of further document types (`register_parsers`). Raises ValueError for an invalid one.

    `target` (``package.module:function``) takes the file's path and yields texts or ``(text, page)`` pairs;
    it runs in a limited subprocess. `detect` is called with the first 64 KiB of an upload and returns one of
    the media types, or None.
    """

    name: str
    media_types: Sequence[str]
    target: str
    detect: Callable[[bytes], str | None]

    def __post_init__(self) -> None:
        if not self.name or not self.media_types or isinstance(self.media_types, str):
            raise ValueError("a parser needs a name and a list of media types")
        if not _TARGET.fullmatch(self.target):
            raise ValueError(
                f"the target of the parser '{self.name}' must have the form 'package.module:function'"
            )


_TARGET = re.compile(r"[\w.]+:\w+")
