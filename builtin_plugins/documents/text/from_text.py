"""Plain text, in pieces that end at a blank line where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.cleaning import cut_point
from builtin_plugins.documents.text.encoding import read_portions, without_ansi

PIECE_CHARS: Final = 32_768


def parse(path: Path) -> Iterator[Block]:
    """Yield the text in pieces of at most 32,768 characters; no more than two are in memory at once."""
    rest = ""
    for portion in read_portions(path, PIECE_CHARS):
        rest = without_ansi(rest + portion)
        while len(rest) > PIECE_CHARS:
            end = cut_point(rest, PIECE_CHARS)
            yield Block(rest[:end])
            rest = rest[end:]
    yield Block(rest)
