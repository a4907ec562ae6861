"""What runs in a parser process: one parser, its text cleaned, measured and written to the sink.

Imports little: each process is forked from one that has already imported this and the built-in parsers.
"""

from __future__ import annotations

import importlib
import io
import os
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TextIO

from builtin_plugins.documents.blocks import (
    DOUBTFUL,
    SEPARATOR,
    Block,
    Heading,
    ParserUnavailable,
    UnparsableDocument,
)
from builtin_plugins.documents.cleaning import clean, pieces, shows
from builtin_plugins.documents.images.ocr import LISTENER, OPTIONS, OcrOptions
from builtin_plugins.documents.omissions import COUNTED, Omission
from builtin_plugins.documents.properties import NOTED, NotedProperties
from builtin_plugins.documents.protocol import (
    MAX_BLOCK_CHARS,
    MAX_HEADING_CHARS,
    MAX_HEADINGS,
    ParserPosition,
    Trailer,
    dump_block,
    dump_place,
    dump_trailer,
)

_MARKS: Final = re.compile(r"^\s*#{1,6}\s|\s#+$")
_JOINED_CHARS: Final = 16_384


def parse_into(path: str, target: str, sink: str, max_text_chars: int, ocr: list[Any]) -> None:
    """Parse the file at `path` by the parser `target` into `sink`.

    Raises `ParserUnavailable` when the parser can't be imported, `UnparsableDocument` for a text that is
    too long or empty, and whatever the parser raises about the file.
    """
    OPTIONS.set(OcrOptions(*ocr))
    function = _load(target)
    _write(function(Path(path)), sink, max_text_chars)


def parse_each(documents: list[list[str]], max_text_chars: int) -> list[str | None]:
    """Parse small documents one after the other; `documents` are pairs of path and parser.

    Returns what each sink would contain; None for a document that fails or is not read whole, which is then
    parsed by itself.
    """
    return [_parsed(path, target, max_text_chars) for path, target in documents]


def _parsed(path: str, target: str, max_text_chars: int) -> str | None:
    file = io.StringIO()
    sink = _Sink(file, max_text_chars)
    try:
        for block in _load(target)(Path(path)):
            sink.add(_block(block))
        sink.finish()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a boundary: the document's own process will say what is wrong with it
        return None
    return None if sink.omitted else file.getvalue()


def _load(target: str) -> Callable[[Path], Iterable[object]]:
    module, _, name = target.partition(":")
    try:
        function: Callable[[Path], Iterable[object]] = getattr(importlib.import_module(module), name)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a boundary: any import may fail in any way
        raise ParserUnavailable(f"{target}: {type(error).__name__}: {error}") from None
    return function


def _write(blocks: Iterable[object], path: str, max_text_chars: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        sink = _Sink(file, max_text_chars)
        LISTENER.set(sink.begin_page)
        for block in blocks:
            sink.add(_block(block))
        sink.finish()


def _block(value: object) -> Block:
    """Accept what a plugin's parser may yield without importing `Block`: a string, or a text and a page."""
    if isinstance(value, Block):
        return value
    if isinstance(value, str):
        return Block(value)
    if isinstance(value, tuple) and len(value) == 2:
        text, page = value
        if isinstance(text, str) and (page is None or isinstance(page, int)):
            return Block(text, page)
    raise TypeError(f"a parser yields strings or (text, page) pairs, not {type(value).__name__}")


def _placed(headings: deque[Heading], text: str, *, is_whole: bool) -> Iterator[Heading]:
    """Take the headings that are lines of a block's cleaned text, or of a part of it, with their places. One
    that is not a line of a whole block gets the place of the one before it.
    """
    place = 0
    while headings:
        line_start = _line_in(text, clean(headings[0].text), place)
        if line_start is None and not is_whole:
            return
        place = place if line_start is None else line_start
        yield _heading(headings.popleft(), place)


def _line_in(text: str, line: str, start: int) -> int | None:
    position = f"\n{text}\n".find(f"\n{line}\n", start)
    return None if position < 0 else position


def _heading(heading: Heading, place: int) -> Heading:
    text = " ".join(_MARKS.sub("", clean(heading.text)).split())
    return Heading(heading.level, text[:MAX_HEADING_CHARS], place)


class _Sink:
    """Cleans, measures and writes blocks; small neighbors on one page share a line, long blocks take several.

    Sharing a line doesn't change the text: the same separator stands between the blocks.
    """

    def __init__(self, file: TextIO, max_chars: int) -> None:
        self._file = file
        self._max_chars = max_chars
        self._chars = 0
        self._pages = 0
        self._unread = self._recognized = self._damaged = 0
        self._page: int | None = None
        self._last_page: int | None = None
        self._pending: list[str] = []
        self._pending_chars = 0
        self._headings: list[Heading] = []
        self.omitted = Counter[Omission]()
        COUNTED.set(self.omitted)
        self._properties = NotedProperties()
        NOTED.set(self._properties)

    def add(self, block: Block) -> None:
        """Take a block; raises `UnparsableDocument` when the text exceeds its limit."""
        self._pages = max(self._pages, block.page or 0)
        self._unread += block.unread
        self._recognized += block.recognized
        self._damaged += block.damaged
        if block.page != self._page:
            self._flush()
            self._page = block.page
            if block.page not in (None, self._last_page):
                self.begin_page(block.page)
        headings, is_whole = deque(block.headings), len(block.text) <= MAX_BLOCK_CHARS
        for piece in pieces(block.text, MAX_BLOCK_CHARS):
            text = clean(piece)
            self._take(text if block.recognized else text.replace(DOUBTFUL, ""), headings, is_whole=is_whole)

    def begin_page(self, page: int, pages: int = 0) -> None:
        """Report which page is being read, and of how many if that is known."""
        self._last_page = page
        self._file.write(dump_place(ParserPosition(page, pages, self._recognized)))
        self._file.flush()

    def _take(self, text: str, headings: deque[Heading], *, is_whole: bool) -> None:
        if not shows(text):
            return
        self._chars += len(text) + (len(SEPARATOR) if self._chars else 0)
        if self._chars > self._max_chars:
            raise UnparsableDocument("too_large", f"more than {self._max_chars} characters of text")
        if self._pending_chars + len(text) > _JOINED_CHARS:
            self._flush()
        before = self._pending_chars + len(SEPARATOR) * len(self._pending)
        for heading in _placed(headings, text, is_whole=is_whole) if headings else ():
            if heading.text and len(self._headings) < MAX_HEADINGS:
                self._headings.append(heading._replace(start=heading.start + before))
        self._pending.append(text)
        self._pending_chars += len(text)

    def _flush(self) -> None:
        if self._pending:
            text = SEPARATOR.join(self._pending)
            self._file.write(dump_block(Block(text, self._page, headings=self._headings)))
        self._pending, self._pending_chars, self._headings = [], 0, []

    def finish(self) -> None:
        """Write what is pending and the totals; raises `UnparsableDocument` if there was no text."""
        self._flush()
        if not self._chars:
            raise UnparsableDocument("unrecognized" if self.omitted["unrecognized"] else "no_text")
        counted = (self._unread, self._recognized, self._damaged)
        trailer = Trailer(
            self._chars,
            self._pages or None,
            *counted,
            {str(kind): count for kind, count in self.omitted.items()},
            self._properties.values_by_name,
        )
        self._file.write(dump_trailer(trailer))
