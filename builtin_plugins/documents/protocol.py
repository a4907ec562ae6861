"""The file that a parser process writes and the platform reads: the sink.

The sink is UTF-8 JSON lines: `[page, text]` per block, `[page, text, [[level, heading, start], …]]` for one
with headings, and at the end `{"char_count", "page_count", "unread_pages", "recognized_pages",
"damaged_pages", "omitted", "properties"}`. Its last line proves that it is complete.
Between blocks, `#page pages recognized` says how far the parser is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from builtin_plugins.documents.blocks import Block, Heading, UnparsableDocument
from builtin_plugins.documents.properties import Properties, checked_properties

MAX_BLOCK_CHARS: Final = 65_536
MAX_HEADING_CHARS: Final = 200
MAX_HEADINGS: Final = 500
"""Headings of one line of the sink: further ones are left out."""
_MAX_LINE_BYTES: Final = 1024 * 1024
_TRAILER_BYTES: Final = 64 * 1024
_PLACE: Final = re.compile(rb"^#(\d{1,9}) (\d{1,9}) (\d{1,9})$", re.MULTILINE)


class Trailer(NamedTuple):
    """The totals of a sink: characters of the parsed text including separators, pages if there are any, how
    many of these nothing here can read, were recognized in pictures, or are damaged, how often what was left
    out (`omissions`), and what the file says about itself.
    """

    char_count: int
    page_count: int | None
    unread_pages: int = 0
    recognized_pages: int = 0
    damaged_pages: int = 0
    omitted: Mapping[str, int] = {}
    properties: Properties = {}


class ParserPosition(NamedTuple):
    """How far a parser is: the page being read, of how many (0 if unknown), and how many it has recognized in
    pictures so far.
    """

    page: int
    pages: int = 0
    recognized: int = 0


def dump_block(block: Block) -> str:
    """Return a block as a line of the sink."""
    headings = [block.headings] if block.headings else []
    return json.dumps([block.page, block.text, *headings], ensure_ascii=False) + "\n"


def dump_place(place: ParserPosition) -> str:
    """Return a place as a line of the sink."""
    return f"#{place.page} {place.pages} {place.recognized}\n"


def dump_trailer(trailer: Trailer) -> str:
    """Return the last line of the sink."""
    return json.dumps(trailer._asdict(), ensure_ascii=False) + "\n"


def read_blocks(sink: Path) -> Iterator[Block]:
    """Yield the blocks of a sink one by one; raises `UnparsableDocument` if it is incomplete."""
    with sink.open("rb") as file:
        yield from blocks_in(file)


def blocks_in(file: BinaryIO) -> Iterator[Block]:
    """Yield the blocks of an open sink one by one; raises `UnparsableDocument` when it is not whole."""
    while line := file.readline(_MAX_LINE_BYTES):
        if line.startswith(b"{"):
            return
        if not line.startswith(b"#"):
            yield _load_block(line)
    raise UnparsableDocument("corrupt", "parsed text without its end")


def _load_block(line: bytes) -> Block:
    try:
        page, text, *more = json.loads(line)
        headings = [Heading(level, title, start) for level, title, start in (more[0] if more else ())]
    except (ValueError, TypeError) as error:
        raise UnparsableDocument("corrupt", "parsed text is malformed") from error
    if not isinstance(text, str) or not isinstance(page, (int, type(None))):
        raise UnparsableDocument("corrupt", "parsed text is malformed")
    if not all(_is_heading(one, text) for one in headings):
        raise UnparsableDocument("corrupt", "parsed text is malformed")
    return Block(text, page, headings=headings)


def _is_heading(heading: Heading, text: str) -> bool:
    is_typed = type(heading.level) is int and isinstance(heading.text, str) and type(heading.start) is int
    return is_typed and len(heading.text) <= MAX_HEADING_CHARS and 0 <= heading.start < len(text)


def last_place(sink: Path) -> ParserPosition | None:
    """How far the parser writing this sink is; None if it has not reported lately."""
    try:
        with sink.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - 2 * MAX_BLOCK_CHARS))
            places = _PLACE.findall(file.read())
    except OSError:
        return None
    return ParserPosition(*map(int, places[-1])) if places else None


def read_trailer(sink: Path) -> Trailer:
    """Return the totals at the end of a sink; raises `UnparsableDocument` when there are none."""
    with sink.open("rb") as file:
        return trailer_in(file)


def trailer_in(file: BinaryIO) -> Trailer:
    """The same of an open sink."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _TRAILER_BYTES))
    last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    try:
        trailer = Trailer(**json.loads(last))
        if any(type(count) is not int for count in dict(trailer.omitted).values()):
            raise ValueError("a count is no number")
        return trailer._replace(properties=checked_properties(trailer.properties))
    except (ValueError, TypeError) as error:
        raise UnparsableDocument("corrupt", "parsed text without its end") from error
