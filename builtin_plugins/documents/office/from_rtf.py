"""Rich Text Format (Microsoft RTF 1.9.1): the text, without its formatting and pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from striprtf.striprtf import rtf_to_text

from builtin_plugins.documents.blocks import Block, UnparsableDocument
from builtin_plugins.documents.cleaning import is_power, pieces
from builtin_plugins.documents.office.rtf_formulas import with_formulas
from builtin_plugins.documents.office.rtf_groups import (
    CELL_END,
    RAISED,
    ROW_END,
    ROW_START,
    arranged,
    end_of_document,
    without_binary,
)
from builtin_plugins.documents.office.rtf_hidden import without_hidden
from builtin_plugins.documents.tables.portions import portions_of_sheet

_MAX_BYTES: Final = 32 * 1024 * 1024
_PIECE_CHARS: Final = 32_768
# The converter is slow, character by character, and hexadecimal pictures are most of a large file.
_PICTURE: Final = re.compile(rb"[0-9a-fA-F\s]{512,}+")


def parse(path: Path) -> Iterator[Block]:
    """Yield the text in pieces of at most 32,768 characters, tables in portions; notes, comments, text
    boxes, headers and footers come last.

    Raises `UnparsableDocument`: `corrupt` when the file ends within a group, `too_large` for more than 32 MB
    apart from pictures.
    """
    yield from blocks_of(path.read_bytes())


def blocks_of(rtf: bytes) -> Iterator[Block]:
    """Yield what `parse` yields, for RTF in memory."""
    rows: list[str] = []
    for part in parts_of(rtf):
        if part.is_row:
            rows.append(part.text)
        else:
            yield from [*_table(rows), *_prose(part.text)]
            rows = []
    yield from _table(rows)


class RtfPart(NamedTuple):
    """A row of a table, its cells separated by tabs, or text between tables."""

    text: str
    is_row: bool


def parts_of(rtf: bytes) -> Iterator[RtfPart]:
    """Yield the text of RTF in memory. Raises what `parse` raises."""
    data = _PICTURE.sub(b" ", without_binary(rtf[max(0, rtf.find(b"{")) :]))
    if len(data) > _MAX_BYTES:
        raise UnparsableDocument("too_large", f"rtf: {len(data)} bytes without pictures")
    if not data.rstrip(b"\x00\x1a\r\n\t ").endswith(b"}"):
        data = data[: end_of_document(data)]
        if not data:
            raise UnparsableDocument("corrupt", "rtf: the file ends inside a group")
    data = arranged(with_formulas(without_hidden(data)))
    text = str(rtf_to_text(data.decode("latin-1"), errors="replace"))  # type: ignore[no-untyped-call]
    *parts, last = _with_powers(text).split(ROW_END)
    for part in parts:
        prose, _, row = part.partition(ROW_START)
        if prose.strip():
            yield RtfPart(_plain(prose), is_row=False)
        yield RtfPart(_line(row), is_row=True)
    yield RtfPart(_plain(last), is_row=False)


def _with_powers(text: str) -> str:
    first, *raised = text.split(RAISED)
    pairs = pairwise([first, *raised])
    return first + "".join(f"^{text}" if is_power(before, text) else text for before, text in pairs)


def _plain(text: str) -> str:
    """Text outside tables, or in unfinished rows."""
    return text.replace(ROW_START, "").replace(CELL_END, "\t")


def _prose(text: str) -> Iterator[Block]:
    return map(Block, pieces(text, _PIECE_CHARS))


def _table(rows: list[str]) -> Iterator[Block]:
    return map(Block, portions_of_sheet(row for row in rows if row)) if any(rows) else iter(())


def _line(row: str) -> str:
    """A row's cells; what follows the last one only repeats the layout."""
    cells = row.replace(ROW_START, "").split(CELL_END)
    return "\t".join(" ".join(cell.split()) for cell in cells[: max(1, len(cells) - 1)]).rstrip()
