"""HTML as a stream of tags: no tree is built, so neither size nor nesting costs memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from lxml import etree

from builtin_plugins.rag.parsing.blocks import Block
from builtin_plugins.rag.parsing.encoding import (
    HEAD_BYTES,
    codec_meant,
    detect_encoding,
    open_text,
    read_head,
    repair,
)

_PORTION_CHARS: Final = 65_536
_IGNORED: Final = frozenset(
    {
        *("script", "style", "noscript", "template", "svg", "math", "iframe", "object", "canvas"),
        *("nav", "select", "button", "audio", "video", "dialog"),
    }
)
_PARAGRAPHS: Final = frozenset(
    {
        *("title", "h1", "h2", "h3", "h4", "h5", "h6", "p", "pre", "div", "section", "article", "main"),
        *("header", "footer", "aside", "blockquote", "ul", "ol", "dl", "table", "figure", "figcaption"),
        *("form", "fieldset", "details", "address", "body", "hr"),
    }
)
_LINES: Final = frozenset({"li", "dt", "dd", "tr", "caption", "summary", "legend", "option", "br"})
_CELLS: Final = frozenset({"td", "th"})
_CHARSET: Final = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)


def parse(path: Path) -> Iterator[Block]:
    """Yield a block per paragraph, heading, list or table; items and rows are lines, tabs part cells.

    Scripts, styles, navigation and form controls are left out; the title comes first.
    """
    yield from blocks_of(_portions(path))


def blocks_of(portions: Iterable[str]) -> Iterator[Block]:
    """Yield the blocks of a page that comes in portions."""
    collector = Collector()
    parser = etree.HTMLParser(target=collector, no_network=True, huge_tree=True)
    for portion in portions:
        parser.feed(portion)
        yield from collector.take()
    parser.close()
    collector.end_paragraph()
    yield from collector.take()


def _portions(path: Path) -> Iterator[str]:
    head = read_head(path)
    declared = _declared_encoding(head)
    with path.open(encoding=declared, errors="replace") if declared else open_text(path) as file:
        while portion := file.read(_PORTION_CHARS):
            yield repair(portion)


def decoded(data: bytes) -> str:
    """Return the text of a page that is held in memory."""
    head = data[:HEAD_BYTES]
    return data.decode(_declared_encoding(head) or detect_encoding(head) or "utf-8", "replace")


def _declared_encoding(head: bytes) -> str | None:
    """Return the page's own charset unless the bytes show another: UTF-8 is certain, the rest are claims."""
    found = _CHARSET.search(head)
    if not found or (detect_encoding(head) or "utf").startswith("utf"):
        return None
    try:
        head.decode(name := codec_meant(found[1].decode("ascii"), head), "replace")
    except (LookupError, UnicodeError):
        return None
    return name


class Collector:
    """The parser's target: turns tags and text into blocks, keeping only the paragraph that is being read."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._lines: list[str] = []
        self._line: list[str] = []
        self._ignoring: list[str] = []
        self._preformatted = 0
        self._size = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """A tag opens."""
        if tag in _IGNORED:
            self._ignoring.append(tag)
        elif not self._ignoring:
            self._open(tag)

    def end(self, tag: str) -> None:
        """A tag closes, or the parser closes it for the author."""
        if self._ignoring:
            if tag == self._ignoring[-1]:
                self._ignoring.pop()
        elif tag in _PARAGRAPHS:
            self.end_paragraph()
            self._preformatted -= tag == "pre"
        elif tag in _LINES:
            self._end_line()

    def data(self, data: str) -> None:
        """Text between tags; long text comes in several calls."""
        if not self._ignoring:
            self._line.append(data if self._preformatted else data.replace("\t", " "))
            self._size += len(data)

    def comment(self, text: str) -> None:
        """Comments are not text."""

    def close(self) -> None:
        """The document ends; what is left is fetched with `take`."""

    def take(self) -> list[Block]:
        """Return the finished blocks, and with them what a page without paragraphs has piled up."""
        if self._size > HEAD_BYTES:
            self.end_paragraph()
        taken, self._blocks = self._blocks, []
        return taken

    def end_paragraph(self) -> None:
        """Finish the block that is being read."""
        self._end_line()
        if self._lines:
            self._blocks.append(Block("\n".join(self._lines)))
        self._lines, self._size = [], 0

    def _open(self, tag: str) -> None:
        if tag in _PARAGRAPHS:
            self.end_paragraph()
            self._preformatted += tag == "pre"
        elif tag in _LINES:
            self._end_line()
        elif tag in _CELLS and "".join(self._line).strip():
            self._line.append("\t")

    def _end_line(self) -> None:
        if not self._line:
            return
        text = "".join(self._line)
        text = text.strip("\n") if self._preformatted else _tidy(text)
        if text.strip():
            self._lines.append(text)
        self._line = []


def _tidy(text: str) -> str:
    """Collapse white space as a browser does; the tabs in the text are ours, between cells."""
    return "\t".join(" ".join(cell.split()) for cell in text.split("\t")).strip()
