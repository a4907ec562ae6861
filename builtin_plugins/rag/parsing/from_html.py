"""HTML, parsed as a stream of tags: no tree is built, so neither size nor nesting costs memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from lxml import etree

from builtin_plugins.rag.parsing.blocks import Block
from builtin_plugins.rag.parsing.cleaning import is_power
from builtin_plugins.rag.parsing.encoding import (
    HEAD_BYTES,
    codec_meant,
    detect_encoding,
    open_text,
    read_head,
    repair,
)
from builtin_plugins.rag.parsing.formulas import Formula, placed
from builtin_plugins.rag.parsing.portions import names_columns, room_below
from builtin_plugins.rag.parsing.spans import Grid, Span, names_of, span_of

_PORTION_CHARS: Final = 65_536
_IGNORED: Final = frozenset(
    {
        *("script", "style", "noscript", "template", "svg", "iframe", "object", "canvas"),
        *("nav", "select", "button", "audio", "video", "dialog"),
        *("rt", "rp"),  # the pronunciation above Asian letters, which would part their words
    }
)
_PARAGRAPHS: Final = frozenset(
    {
        *("title", "h1", "h2", "h3", "h4", "h5", "h6", "p", "pre", "div", "section", "article", "main"),
        *("header", "footer", "aside", "blockquote", "ul", "ol", "dl", "table", "caption"),
        *("figure", "figcaption"),
        *("form", "fieldset", "details", "address", "body", "hr"),
    }
)
_LINES: Final = frozenset({"li", "dt", "dd", "tr", "summary", "legend", "option", "br"})
_CELLS: Final = frozenset({"td", "th"})
_ROW_GROUPS: Final = frozenset({"table", "thead", "tbody", "tfoot"})
"""Cells don't span rows beyond these."""
_WITHIN_CELLS: Final = (_PARAGRAPHS | _LINES) - {
    "table",
    "tr",
    "pre",
    "body",
    *(f"h{n}" for n in range(1, 7)),
}
"""Elements that divide the text of a cell, which stays in its row."""
# Separate the paragraphs and the lines of a cell; Python treats them as white space.
_BREAK: Final = "\x1e"
_LINE_BREAK: Final = "\x1d"
_FORMULA: Final = "math"
_TEMPLATE: Final = "template"
_SHADOW: Final = frozenset({"shadowrootmode", "shadowroot"})
"""Attributes of a template that is shown, in place of the element around it."""
_BESIDE: Final = frozenset({"navheader", "navfooter"})
_DRAWN: Final = "katex-html"
"""KaTeX's class for a formula on the screen; before it, there can be the same in MathML."""
_NO_PART: Final = frozenset({"html", "body", "main"})
_LISTS: Final = frozenset({"dl", "ol", "ul"})
_PERMALINK: Final = "¶"
_WITHIN_TERMS: Final = frozenset({"dt", "br"})
# Separates the terms that share a definition; Python treats it as white space.
_NEXT_TERM: Final = "\x1f"
_DEFINED: Final = "\x1c"  # follows the last of them
_LONGEST_CELL: Final = 300
"""Characters of a cell with several paragraphs; with more, the table only arranges them on the screen."""
_MOST_HEADS: Final = 4  # rows
_PARTED: Final = re.compile(f"[{_BREAK}{_LINE_BREAK}]")
_PIECE: Final = re.compile(rf"[^\t{_BREAK}]+")
_CHARSET: Final = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)


def parse(path: Path) -> Iterator[Block]:
    """Yield a block per paragraph, heading, list or portion of a table; items and rows are lines, and tabs
    separate cells.

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
    """Return the declared charset unless the bytes contradict it; only UTF-8 can be told for certain."""
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
        self._length = 0  # of the lines
        self._in_cell = False
        self._formula: Formula | None = None
        self._after_formula = False
        self._is_raised = False  # the next text is superscript
        self._row_is_empty = False
        self._in_terms = False  # reading terms that share the definition below them
        self._grid = Grid()
        self._spans: list[Span] = []  # of the cells in the current row
        self._begins_with_names = False
        self._head: list[Sequence[str]] | None = None  # rows of names, until another row follows
        self._row_is_head = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """A tag opens."""
        name = tag.rpartition(":")[2]
        if self._formula is None and name == _FORMULA and not self._ignoring:
            self._formula = Formula()
        if self._formula is not None:
            self._formula.start(name, attributes)
        elif tag in _IGNORED or tag in self._ignoring[-1:] or self._is_beside(tag, attributes):
            if tag != _TEMPLATE or not _SHADOW.intersection(attributes) or self._ignoring:
                self._ignoring.append(tag)
        elif not self._ignoring:
            self._open(tag, attributes)

    def _is_beside(self, tag: str, attributes: Mapping[str, str]) -> bool:
        """Whether a part of a page is navigation, by its role or DocBook's class, or a formula once more."""
        if not attributes or tag in _NO_PART:
            return False
        kind = attributes.get("class")
        again = self._after_formula and kind == _DRAWN
        return again or kind in _BESIDE or attributes.get("role") == "navigation"

    def end(self, tag: str) -> None:
        """A tag closes, explicitly or implied by the parser."""
        if self._formula is not None:
            self._formula.end()
            if self._formula.is_complete:
                text, self._formula = self._formula.text, None
                self.data(self.placed(text))
                self._after_formula = True
        elif self._ignoring:
            if tag == self._ignoring[-1]:
                self._ignoring.pop()
        else:
            self._close(tag)

    def data(self, data: str) -> None:
        """Text between tags; long text comes in several calls."""
        if self._formula is not None:
            self._formula.data(data)
        elif not self._ignoring and data != _PERMALINK:
            self._after_formula = False
            if self._is_raised and is_power("".join(self._line[-1:]), data):
                self._line.append("^")
            self._is_raised = False
            self._line.append(data if self._preformatted else data.replace("\t", " "))
            self._size += len(data)

    def placed(self, formula: str) -> str:
        """A formula as it follows what was read."""
        return placed(formula, "".join(self._line[-1:]))

    def comment(self, text: str) -> None:
        """Comments are not text."""

    def close(self) -> None:
        """The document ends; the last blocks are fetched with `take`."""

    def take(self) -> list[Block]:
        """Return the finished blocks, and an unfinished one once it is long (on pages without paragraphs)."""
        if self._size > HEAD_BYTES:
            self.end_paragraph()
        taken, self._blocks = self._blocks, []
        return taken

    def end_paragraph(self) -> None:
        """Finish the block that is being read."""
        self._end_line()
        self._end_block()

    def _end_block(self) -> None:
        if self._lines:
            self._blocks.append(Block("\n".join(self._lines)))
        self._lines, self._size, self._length = [], 0, 0

    def _open(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._is_raised = tag == "sup" or (self._is_raised and tag == "a")
        if tag in _CELLS:
            self._open_cell(tag, span_of(attributes))
        elif self._in_cell and tag in _WITHIN_CELLS:
            self._line.append(_LINE_BREAK if tag in _LINES else _BREAK)
        elif tag in _PARAGRAPHS:
            self._open_paragraph(tag)
        elif self._in_terms and tag in _WITHIN_TERMS:
            self._line.append(_NEXT_TERM)
        elif self._in_terms and tag == "dd":
            self._line.append(_DEFINED)
            self._in_terms = False
        elif tag in _LINES:
            self._end_line()
            self._row_is_empty = self._row_is_head = tag == "tr"
            self._in_terms = tag == "dt"
        if tag in _ROW_GROUPS:
            self._grid = Grid()

    def _open_paragraph(self, tag: str) -> None:
        while tag in _LISTS and self._line and self._line[-1].isspace():
            self._line.pop()  # not shared terms: entries of a table of contents, the last with a nested list
        self.end_paragraph()
        self._in_terms = False
        self._preformatted += tag == "pre"
        if tag == "table":
            self._begins_with_names, self._head = True, []

    def _close(self, tag: str) -> None:
        if tag in _CELLS:
            self._in_cell = False
        elif self._in_cell and tag in _WITHIN_CELLS:
            self._line.append(_LINE_BREAK if tag in _LINES else _BREAK)
        elif tag in _PARAGRAPHS:
            self.end_paragraph()
            self._in_terms = False
            self._preformatted -= tag == "pre"
        elif tag == "tr":
            self._end_row()
        elif tag in _LINES and not (self._in_terms and tag in _WITHIN_TERMS):
            self._end_line()
        if tag in _ROW_GROUPS:
            self._grid = Grid()

    def _open_cell(self, tag: str, span: Span) -> None:
        self._in_cell, self._row_is_empty = True, False
        self._row_is_head = self._row_is_head and tag == "th"
        if not self._lines and tag == "td":
            self._begins_with_names = False
        if self._spans or "".join(self._line).strip():
            self._line.append("\t")
        self._spans.append(span)

    def _end_line(self) -> None:
        text, spans = "".join(self._line), self._spans
        self._line, self._spans = [], []
        cells = text.split("\t") if spans else []
        if spans and len(cells) == len(spans):  # one span too few if text precedes the first cell
            row = self._grid.row(cells, spans)
            self._take_head(row)
            text = "\t".join(row)
        if _only_arranges(text):
            self._end_block()
            self._blocks += [Block(found) for piece in _PIECE.findall(text) if (found := _tidy_lines(piece))]
            return
        for line in [text.strip("\n")] if self._preformatted else _defined(text):
            if line.strip():
                self._lines.append(line)
                self._length += len(line) + 1

    def _take_head(self, row: Sequence[str]) -> None:
        """Keep a row of column names; at the first other row, merge several rows of names into one."""
        head = self._head
        if head is not None and self._row_is_head and len(head) < _MOST_HEADS:
            head.append(self._grid.spread([_tidy(cell) for cell in row]))
            return
        self._head = None
        if not head or len(head) < 2 or len(self._lines) != len(head):
            return
        titles, names = names_of(head)
        if titles:
            self._blocks.append(Block("\n".join(titles)))
        self._lines = ["\t".join(names)] if names else []
        self._size = self._length = sum(len(line) + 1 for line in self._lines)

    def _end_row(self) -> None:
        """End the portion before the last row if it is full; that row begins the next one, below the column
        names.
        """
        if self._row_is_empty:
            self._grid.row((), ())  # cells above still span it
        self._end_line()
        if len(self._lines) > 2 and self._length > room_below(self._lines[:1]):
            self._blocks.append(Block("\n".join(self._lines[:-1])))
            named = self._begins_with_names or names_columns(self._lines[0].split("\t"))
            del self._lines[1 if named else 0 : -1]
            self._size = sum(map(len, self._lines))
            self._length = self._size + len(self._lines)


def _only_arranges(row: str) -> bool:
    """Whether the cells of a row are columns of paragraphs rather than values."""
    if not _PARTED.search(row):
        return False
    cells = [cell.strip() for cell in row.split("\t") if cell.strip()]
    return len(cells) < 2 or any(len(cell) > _LONGEST_CELL and _PARTED.search(cell) for cell in cells)


def _defined(text: str) -> list[str]:
    """One line with the terms, one with their definition; terms without one, or other text, line by line."""
    if _NEXT_TERM not in text and _DEFINED not in text:
        return [_tidy(text)]
    terms, mark, definition = text.partition(_DEFINED)
    tidy = list(filter(None, map(_tidy, terms.split(_NEXT_TERM))))
    return [", ".join(tidy), _tidy(definition)] if mark else tidy


def _tidy_lines(text: str) -> str:
    return "\n".join(filter(None, map(_tidy, text.split(_LINE_BREAK))))


def _tidy(text: str) -> str:
    """Collapse white space as a browser does; the remaining tabs are ours and separate cells."""
    if "\t" not in text:
        return " ".join(text.split())
    cells = [" ".join(cell.split()) for cell in text.split("\t")]
    row = "\t".join(cells)
    return row.rstrip() if sum(map(bool, cells)) > 1 else row.strip()
