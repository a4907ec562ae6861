"""HTML, parsed as a stream of tags: no tree is built, so neither size nor nesting costs memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from lxml import etree

from builtin_plugins.documents.blocks import Block, Heading
from builtin_plugins.documents.cleaning import is_power
from builtin_plugins.documents.markup.formulas import Formula, placed
from builtin_plugins.documents.markup.list_numbers import ListNumbers, numbers_of
from builtin_plugins.documents.markup.main_text import Landmark, Piece, landmark_of, main_text
from builtin_plugins.documents.markup.page_properties import note_page_properties
from builtin_plugins.documents.omissions import omit
from builtin_plugins.documents.tables.names import count_head, is_caption, lines_without_marks
from builtin_plugins.documents.tables.portions import room_below
from builtin_plugins.documents.tables.spans import CellGrid, CellSpan, names_of, span_of
from builtin_plugins.documents.text.encoding import (
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
# What a style doesn't show: no box, no size, or a place off the page.
_UNSEEN: Final = re.compile(
    r"(?:^|;)(?:display:none|visibility:(?:hidden|collapse)|content-visibility:hidden"
    r"|font-size:0*\.?0*(?:[a-z]+|%)?|(?:left|top|right|bottom|text-indent|margin-left|margin-top):-\d{4,}[.\d]*[a-z]*"
    r"|clip:rect\(0(?:px)?(?:,?0(?:px)?){3}\)"
    r"|(?=(?:.*;)?overflow(?:-[xy])?:(?:hidden|clip))(?:.*;)?(?:max-)?(?:width|height):0*\.?0*(?:[a-z]+|%)?)"
    r"(?:!important)?(?:;|$)"
)
_LONGEST_STYLE: Final = 500
_DRAWN: Final = "katex-html"
"""KaTeX's class for a formula on the screen; before it, there can be the same in MathML."""
_TITLES: Final = frozenset({"title", "h1"})
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_INLINE: Final = frozenset({"a", "img", "area"})
_NO_CONTAINERS: Final = frozenset({"br", "hr", "p", "td", "th", "tr", "li", "title"})
"""Elements that are never what surrounds a text."""
_FILE_NAME: Final = re.compile(r"\S+\.(?:png|jpe?g|gif|svg|webp|bmp|tiff?)|[\W_]*", re.IGNORECASE)
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

    Scripts, styles, navigation and form controls are left out, and so is what surrounds the main text; the
    title comes first.
    """
    portions = _portions(path)
    first = next(portions, "")
    note_page_properties(first)
    yield from main_text(_pieces(chain((first,), portions)))


def saved_page(text: str) -> Iterator[Block]:
    """Yield what `parse` yields, of a page in memory."""
    yield from main_text(_pieces([text]))


def blocks_of(portions: Iterable[str]) -> Iterator[Block]:
    """Yield all blocks of a page that comes in portions and has no main text: a chapter, a letter."""
    yield from (piece.block for piece in _pieces(portions))


def _pieces(portions: Iterable[str]) -> Iterator[Piece]:
    collector = BlockCollector()
    parser = etree.HTMLParser(target=collector, no_network=True, huge_tree=True)
    for portion in portions:
        parser.feed(portion)
        yield from collector.take_pieces()
    parser.close()
    collector.end_paragraph()
    yield from collector.take_pieces()


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
    charset = _CHARSET.search(head)
    if not charset or (detect_encoding(head) or "utf").startswith("utf"):
        return None
    try:
        head.decode(name := codec_meant(charset[1].decode("ascii"), head), "replace")
    except (LookupError, UnicodeError):
        return None
    return name


@dataclass
class _Around:
    """A landmark around what is being read, and how many elements of its tag are open."""

    tag: str
    landmark: Landmark
    depth: int = 1


class BlockCollector:
    """The parser's target: turns tags and text into blocks, keeping only the paragraph that is being read."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._landmarks: list[_Around] = []
        self._is_title = False  # the block that is being read
        self._level = 0  # of the heading that is being read
        self._links = self._linked = 0  # open links, and characters in links since the last block
        self._lists: list[ListNumbers | None] = []
        self._label = ""  # of a list's item, until its text
        self._lines: list[str] = []
        self._spread: dict[str, str] = {}  # lines of a table with wide cells repeated
        self._line: list[str] = []
        self._ignoring: list[str] = []
        self._hides = False  # what is being ignored is not shown
        self._is_hidden = False  # and nothing of it was counted yet
        self._preformatted = 0
        self._size = 0
        self._length = 0  # of the lines
        self._in_cell = False
        self._formula: Formula | None = None
        self._after_formula = False
        self._is_raised = False  # the next text is superscript
        self._row_is_empty = False
        self._in_terms = False  # reading terms that share the definition below them
        self._grid = CellGrid()
        self._spans: list[CellSpan] = []  # of the cells in the current row
        self._begins_with_names = False
        self._head: list[Sequence[str]] | None = None  # rows of names, until another row follows
        self._row_is_head = False
        self._caption = ""  # of the table, which is repeated above its portions
        self._above: list[str] = []  # the caption, from the second portion on
        self._repeated = 0  # rows at the beginning of each portion

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """A tag opens."""
        name = tag.rpartition(":")[2]
        if self._formula is None and name == _FORMULA and (not self._ignoring or self._is_within_hidden):
            self._formula = Formula()
        if self._formula is not None:
            self._formula.start(name, attributes)
        elif tag in _IGNORED or tag in self._ignoring[-1:] or self._is_beside(tag, attributes):
            if tag != _TEMPLATE or not _SHADOW.intersection(attributes) or self._ignoring:
                self._ignoring.append(tag)
        elif not self._ignoring and _is_unseen(tag, attributes):
            self._ignoring.append(tag)
            self._is_hidden = self._hides = True
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
                self._write(self.placed(text))
                self._after_formula = True
        elif self._ignoring:
            if tag == self._ignoring[-1]:
                self._ignoring.pop()
                if not self._ignoring:
                    self._is_hidden = self._hides = False
        else:
            self._close(tag)

    def data(self, data: str) -> None:
        """Text between tags; long text comes in several calls."""
        if self._formula is not None:
            self._formula.data(data)
        elif self._is_hidden and self._is_within_hidden and data.strip():
            omit("hidden")
            self._is_hidden = False
        elif not self._ignoring and data != _PERMALINK:
            if data.strip():
                self._after_formula = False
            self._write(data)

    def _write(self, data: str) -> None:
        if self._label and data.strip():
            self._line.append(self._label)
            self._label = ""
        if self._is_raised and is_power("".join(self._line[-1:]), data):
            self._line.append("^")
        self._is_raised = False
        self._line.append(data if self._preformatted else data.replace("\t", " "))
        self._size += len(data)
        if self._links:
            self._linked += len(data.strip())

    @property
    def _is_within_hidden(self) -> bool:
        """Whether what is being ignored is so because it is not shown. Formulas are read even there: many
        sites hide them behind their picture.
        """
        return bool(self._ignoring) and self._ignoring[-1] not in _IGNORED and self._hides

    def placed(self, formula: str) -> str:
        """A formula as it follows what was read."""
        return placed(formula, "".join(self._line[-1:]))

    def comment(self, text: str) -> None:
        """Comments are not text."""

    def close(self) -> None:
        """The document ends; the last blocks are fetched with `take`."""

    def take(self) -> list[Block]:
        """Return the finished blocks, and an unfinished one once it is long (on pages without paragraphs)."""
        return [piece.block for piece in self.take_pieces()]

    def take_pieces(self) -> list[Piece]:
        """Return what `take` returns, with its place in the page."""
        if self._size > HEAD_BYTES:
            self.end_paragraph()
        pieces, self._pieces = self._pieces, []
        return pieces

    def _add(self, text: str) -> None:
        around = [one.landmark for one in self._landmarks]
        landmark = next((one for one in around if one != "listing"), None)
        linked, self._linked = self._linked, 0
        headings = [Heading(self._level, text)] if self._level and "\n" not in text else ()
        self._pieces.append(
            Piece(Block(text, headings=headings), landmark, self._is_title, "listing" in around, linked)
        )

    def end_paragraph(self) -> None:
        """Finish the block that is being read."""
        self._end_line()
        self._end_block()

    def _end_block(self) -> None:
        if self._lines:
            self._add("\n".join([*self._above, *lines_without_marks(self._lines, self._spread)]))
        self._spread = {}
        self._lines, self._above, self._size, self._length, self._repeated = [], [], 0, 0, 0

    def _open(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._is_raised = tag == "sup" or (self._is_raised and tag == "a")
        if tag in _INLINE:
            self._open_inline(tag, attributes)
            return
        self._open_landmark(tag, attributes)
        self._open_item(tag, attributes)
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
            self._grid = CellGrid()

    def _open_inline(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "a":
            self._links += 1
            return
        alternative = " ".join(attributes.get("alt", "").split())
        if alternative and not self._after_formula and not _FILE_NAME.fullmatch(alternative):
            self._write(f" {alternative} ")

    def _open_landmark(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag in _NO_CONTAINERS:
            return
        if self._landmarks and self._landmarks[-1].tag == tag:
            self._landmarks[-1].depth += 1
        if (tag not in _NO_PART or tag == "main") and (landmark := landmark_of(tag, attributes)):
            self._end_for_landmark()
            self._landmarks.append(_Around(tag, landmark))

    def _close_landmark(self, tag: str) -> None:
        if self._landmarks and self._landmarks[-1].tag == tag:
            self._landmarks[-1].depth -= 1
            if not self._landmarks[-1].depth:
                self._end_for_landmark()
                self._landmarks.pop()
                self._close_landmark(tag)

    def _end_for_landmark(self) -> None:
        if not self._in_cell:
            self.end_paragraph()

    def _open_item(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Keep the number of a list's item until its text."""
        if tag in _LISTS:
            self._lists.append(numbers_of(attributes) if tag == "ol" else None)
        elif tag == "li":
            numbers = self._lists[-1] if self._lists else None
            self._label = numbers.label(attributes) if numbers else ""

    def _open_paragraph(self, tag: str) -> None:
        while tag in _LISTS and self._line and self._line[-1].isspace():
            self._line.pop()  # not shared terms: entries of a table of contents, the last with a nested list
        self.end_paragraph()
        self._in_terms = False
        self._is_title, self._level = tag in _TITLES, _HEADINGS.get(tag, 0)
        self._preformatted += tag == "pre"
        if tag == "table":
            self._begins_with_names, self._head, self._caption = True, [], ""

    def _close(self, tag: str) -> None:
        if tag == "a":
            self._links = max(0, self._links - 1)
        elif tag in _LISTS:
            if self._lists:
                self._lists.pop()
            self._label = ""
        elif tag == "li":
            self._label = ""
        self._close_element(tag)
        self._close_landmark(tag)

    def _close_element(self, tag: str) -> None:
        if tag in _CELLS:
            self._in_cell = False
        elif self._in_cell and tag in _WITHIN_CELLS:
            self._line.append(_LINE_BREAK if tag in _LINES else _BREAK)
        elif tag in _PARAGRAPHS:
            if tag == "caption" and is_caption(text := _tidy("".join(self._line))):
                self._caption = text
            self.end_paragraph()
            self._in_terms = self._is_title = False
            self._level = 0
            self._preformatted -= tag == "pre"
        elif tag == "tr":
            self._end_row()
        elif tag in _LINES and not (self._in_terms and tag in _WITHIN_TERMS):
            self._end_line()
        if tag in _ROW_GROUPS:
            self._grid = CellGrid()

    def _open_cell(self, tag: str, span: CellSpan) -> None:
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
            self._keep_spread(row)
        if _only_arranges(text):
            self._end_block()
            for piece in filter(None, map(_tidy_lines, _PIECE.findall(text))):
                self._add(piece)
            return
        for line in [text.strip("\n")] if self._preformatted else _defined(text):
            if line.strip():
                self._lines.append(line)
                self._length += len(line) + 1

    def _keep_spread(self, row: Sequence[str]) -> None:
        """Keep what wide cells span, which decides over a name above a number and its mark."""
        wide = self._grid.spread(row)
        if wide != row:
            tidy, tidy_wide = ("\t".join(map(_tidy, cells)) for cells in (row, wide))
            self._spread[tidy.rstrip()] = tidy_wide

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
            self._add("\n".join(titles))
            self._caption = self._caption or titles[-1]
        self._lines = ["\t".join(names)] if names else []
        self._size = self._length = sum(len(line) + 1 for line in self._lines)

    def _end_row(self) -> None:
        """End the portion before the last row if it is full; that row begins the next one, below the column
        names.
        """
        if self._row_is_empty:
            self._grid.row((), ())  # cells above still span it
        self._end_line()
        least = max(1, self._repeated)
        if len(self._lines) > least + 1 and self._length > room_below(self._lines[:least]):
            self._add("\n".join([*self._above, *lines_without_marks(self._lines[:-1], self._spread)]))
            head = count_head([line.split("\t") for line in self._lines[:-1]])
            self._repeated = max(head, self._begins_with_names)
            del self._lines[self._repeated : -1]
            self._above = [self._caption] if self._caption and self._lines[1:] else []
            self._size = sum(map(len, self._lines))
            self._length = self._size + len(self._lines)


def _is_unseen(tag: str, attributes: Mapping[str, str]) -> bool:
    """Whether an element is not displayed, by its own attributes: a style sheet may show it after all."""
    if tag in _NO_PART or not attributes:
        return False
    if attributes.get("hidden", "until-found").lower() != "until-found":
        return True
    style = attributes.get("style", "")[:_LONGEST_STYLE]
    return bool(style) and _UNSEEN.search("".join(style.lower().split())) is not None


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
