"""OpenDocument spreadsheets and templates (OASIS ODF 1.3): a sheet is a page, a row a tab-separated line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from zipfile import ZipFile

from lxml import etree

from builtin_plugins.documents.archives.archive import open_archive
from builtin_plugins.documents.blocks import Block, UnparsableDocument
from builtin_plugins.documents.office.from_odt import CHECKED, CONTENT, chart_texts, check_readable, object_in
from builtin_plugins.documents.office.ooxml import events, forget
from builtin_plugins.documents.office.package_properties import note_odf_properties
from builtin_plugins.documents.omissions import omit
from builtin_plugins.documents.tables.portions import FIRST_ROWS, Above, line_of, portions_of_sheet
from builtin_plugins.documents.tables.spans import MOST_COLUMNS, count_of

_NAMES: Final = (
    *("table", "table-row", "table-cell", "covered-table-cell", "annotation"),
    *("table-column", "style", "table-properties", "object"),
)
_TAGS: Final = tuple("{*}" + name for name in _NAMES)
_SPACES: Final = ("{*}s", "{*}tab", "{*}line-break")
_STYLE: Final = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_TABLE: Final = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OBJECT: Final = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}object"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_MOST_ROWS: Final = 1_048_576
_MOST_ALIKE: Final = 256
"""How often a cell or row may be repeated: empty ones are repeated to the end of the sheet."""


class OdsSheet(NamedTuple):
    """A visible sheet. `lines` are its rows, with tabs, which must be read before the next sheet; the first
    ones with merged cells are added to `wide`. Embedded objects are added to `objects`.
    """

    page: int
    title: str
    lines: Iterator[str]
    wide: dict[str, str]
    objects: list[str]


def parse(path: Path) -> Iterator[Block]:
    """Yield each sheet in portions that begin with the names of its columns; values as they are shown. The
    charts of a sheet follow it. Hidden sheets, rows and columns are left out and counted.

    Raises `UnparsableDocument` for a bomb, a password, or a broken package.
    """
    with open_archive(path, checked=CHECKED) as archive:
        check_readable(archive)
        note_odf_properties(archive)
        for sheet in _sheets(archive):
            yield Block(sheet.title, sheet.page)
            for text in portions_of_sheet(sheet.lines, sheet.wide):
                yield Block(text, sheet.page)
            for href in sheet.objects:
                if (root := object_in(archive, href)) is not None:
                    yield from (Block(text, sheet.page) for text in chart_texts(root))


def visible_sheets(path: Path) -> Iterator[OdsSheet]:
    """The sheets of a spreadsheet that aren't hidden. Raises what `parse` raises."""
    with open_archive(path, checked=CHECKED) as archive:
        check_readable(archive)
        yield from _sheets(archive)


def _sheets(archive: ZipFile) -> Iterator[OdsSheet]:
    if CONTENT not in archive.NameToInfo:
        raise UnparsableDocument("corrupt", "ods: no content")
    with archive.open(CONTENT) as part:
        objects: list[str] = []
        stream = _apart(events(part, _TAGS), objects)
        page, style, hidden_styles = 0, "", set[str]()
        for event, element in stream:
            if element.tag == f"{_STYLE}style":
                style = element.get(f"{_STYLE}name", "")
            elif element.tag == f"{_STYLE}table-properties" and element.get(f"{_TABLE}display") == "false":
                hidden_styles.add(style)
            elif event == "start" and element.tag == f"{_TABLE}table":
                page += 1
                objects.clear()
                if element.get(f"{_TABLE}style-name") in hidden_styles:
                    omit("hidden", int(any(list(_lines(stream, {})))))
                    continue
                wide = dict[str, str]()
                title = element.get(f"{_TABLE}name", "")
                yield OdsSheet(page, title, _lines(stream, wide), wide, objects)


def _apart(
    stream: Iterator[tuple[str, etree._Element]], objects: list[str]
) -> Iterator[tuple[str, etree._Element]]:
    """The stream without embedded objects, whose parts are added to `objects`."""
    for event, element in stream:
        if element.tag != _OBJECT:
            yield event, element
        elif event == "start":
            objects.append(element.get(_HREF, ""))


def _lines(stream: Iterator[tuple[str, etree._Element]], wide: dict[str, str]) -> Iterator[str]:
    """The rows of a sheet, up to its end, including those of a table within a cell; hidden rows and columns
    are counted. The first rows with merged cells are added to `wide`.
    """
    cells: list[str] = []
    spans: list[tuple[int, int, int]] = []
    above, columns, hidden, filled = Above(), 0, set[int](), set[int]()
    depth, passed = 1, 0
    for event, element in stream:
        name = element.tag.rpartition("}")[2]
        if name == "table":
            depth += 1 if event == "start" else -1
            if depth == 0:
                omit("hidden", len(filled))
                return
        elif event == "start":
            continue
        elif name == "annotation":
            element.clear(keep_tail=False)
        elif name == "table-column":
            count = _repeated(element, "columns", MOST_COLUMNS)
            if _is_hidden(element):
                hidden.update(range(columns, columns + count))
            columns += count
        elif name == "table-row":
            above.fill(cells, spans)
            if _is_hidden(element):
                omit("hidden", int(any(cells)))
            else:
                filled.update(at for at in hidden if at < len(cells) and cells[at])
                wider = [(first, last) for first, last, _ in spans if last > first]
                line = line_of(cells, wider if passed < 2 * FIRST_ROWS else (), wide, hidden)
                yield from [line] * (_repeated(element, "rows") if line.strip() else 1)
            cells, spans, passed = [], [], passed + 1
            forget(element)
        elif name in ("table-cell", "covered-table-cell"):
            wide_by = count_of(element.get(f"{_TABLE}number-columns-spanned"), MOST_COLUMNS)
            below = count_of(element.get(f"{_TABLE}number-rows-spanned"), _MOST_ROWS) - 1
            if wide_by > 1 or below > 0:
                spans.append((len(cells), len(cells) + wide_by - 1, below))
            cells += [_text(element)] * _repeated(element, "columns")


def _text(cell: etree._Element) -> str:
    for space in cell.iter(*_SPACES):
        space.text = " "
    return " ".join(" ".join("".join(p.itertext()) for p in cell.iterfind("{*}p")).split())


def _is_hidden(element: etree._Element) -> bool:
    return element.get(f"{_TABLE}visibility") in ("collapse", "filter")


def _repeated(element: etree._Element, what: str, most: int = _MOST_ALIKE) -> int:
    count = element.get(f"{_TABLE}number-{what}-repeated", "1")
    return max(1, min(int(count[:9]), most)) if count.isdecimal() else 1
