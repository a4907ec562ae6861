"""OpenDocument spreadsheets and templates (OASIS ODF 1.3): a sheet is a page, a row a tab-separated line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lxml import etree

from builtin_plugins.rag.parsing.archive import open_archive
from builtin_plugins.rag.parsing.blocks import Block, UnparsableDocument
from builtin_plugins.rag.parsing.from_odt import CHECKED, CONTENT, check_readable
from builtin_plugins.rag.parsing.ooxml import events, forget
from builtin_plugins.rag.parsing.portions import FIRST_ROWS, line_of, portions_of_sheet
from builtin_plugins.rag.parsing.spans import MOST_COLUMNS, count_of

_NAMES: Final = ("table", "table-row", "table-cell", "covered-table-cell", "annotation")
_TAGS: Final = tuple("{*}" + name for name in _NAMES)
_SPACES: Final = ("{*}s", "{*}tab", "{*}line-break")
_TABLE: Final = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_MOST_ALIKE: Final = 256
"""How often a cell or row may be repeated: empty ones are repeated to the end of the sheet."""


def parse(path: Path) -> Iterator[Block]:
    """Yield each sheet in portions that begin with the names of its columns; values as they are shown.

    Raises `UnparsableDocument` for a bomb, a password, or a broken package.
    """
    with open_archive(path, checked=CHECKED) as archive:
        check_readable(archive)
        if CONTENT not in archive.NameToInfo:
            raise UnparsableDocument("corrupt", "ods: no content")
        with archive.open(CONTENT) as part:
            stream = events(part, _TAGS)
            page = 0
            for event, element in stream:
                if event == "start" and element.tag == f"{_TABLE}table":
                    page += 1
                    yield Block(element.get(f"{_TABLE}name", ""), page)
                    wide = set[str]()
                    for text in portions_of_sheet(_lines(stream, wide), wide):
                        yield Block(text, page)


def _lines(stream: Iterator[tuple[str, etree._Element]], wide: set[str]) -> Iterator[str]:
    """The rows of a sheet, up to its end, including those of a table within a cell. The first rows with
    merged cells are added to `wide`.
    """
    cells: list[str] = []
    spans: list[tuple[int, int]] = []
    depth, passed = 1, 0
    for event, element in stream:
        name = element.tag.rpartition("}")[2]
        if name == "table":
            depth += 1 if event == "start" else -1
            if depth == 0:
                return
        elif event == "start":
            continue
        elif name == "annotation":
            element.clear(keep_tail=False)
        elif name == "table-row":
            line = line_of(cells, spans if passed < 2 * FIRST_ROWS else (), wide)
            cells, spans, passed = [], [], passed + 1
            yield from [line] * (_repeated(element, "rows") if line.strip() else 1)
            forget(element)
        else:
            if (columns := count_of(element.get(f"{_TABLE}number-columns-spanned"), MOST_COLUMNS)) > 1:
                spans.append((len(cells), len(cells) + columns - 1))
            cells += [_text(element)] * _repeated(element, "columns")


def _text(cell: etree._Element) -> str:
    for space in cell.iter(*_SPACES):
        space.text = " "
    return " ".join(" ".join("".join(p.itertext()) for p in cell.iterfind("{*}p")).split())


def _repeated(element: etree._Element, what: str) -> int:
    count = element.get(f"{_TABLE}number-{what}-repeated", "1")
    return max(1, min(int(count[:9]), _MOST_ALIKE)) if count.isdecimal() else 1
