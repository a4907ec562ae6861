"""Rich Text Format (Microsoft RTF 1.9.1): the text, without its formatting and pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from striprtf.striprtf import rtf_to_text

from builtin_plugins.rag.parsing.blocks import Block, UnparsableDocument
from builtin_plugins.rag.parsing.cleaning import cut_point

_MAX_BYTES: Final = 32 * 1024 * 1024
_PIECE_CHARS: Final = 32_768
# The converter looks at each character; pictures are most of a large file, and hexadecimal.
_PICTURE: Final = re.compile(rb"[0-9a-fA-F\s]{512,}+")


def parse(path: Path) -> Iterator[Block]:
    """Yield the text in pieces of at most 32,768 characters.

    Raises `UnparsableDocument`: `corrupt` when the file ends before its last group does, `too_large` for more
    than 32 MB that are not pictures.
    """
    data = _PICTURE.sub(b" ", path.read_bytes())
    if len(data) > _MAX_BYTES:
        raise UnparsableDocument("too_large", f"rtf: {len(data)} bytes without pictures")
    if not data.rstrip(b"\x00\x1a\r\n\t ").endswith(b"}"):
        raise UnparsableDocument("corrupt", "rtf: the file ends inside a group")
    text = str(rtf_to_text(data.decode("latin-1"), errors="replace"))  # type: ignore[no-untyped-call]
    while len(text) > _PIECE_CHARS:
        end = cut_point(text, _PIECE_CHARS)
        yield Block(text[:end])
        text = text[end:]
    yield Block(text)
