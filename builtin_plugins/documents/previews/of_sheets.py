"""Workbooks (also of OpenDocument) and CSV files as tables, sheet by sheet, with letters and numbers."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from html import escape
from itertools import islice
from pathlib import Path
from typing import Final

from openpyxl.utils import get_column_letter

from builtin_plugins.documents.office import from_ods
from builtin_plugins.documents.office.from_xlsx import visible_sheets
from builtin_plugins.documents.previews.page import PreviewPage
from builtin_plugins.documents.tables.sheets import Layout
from builtin_plugins.documents.text.from_csv import rows_of

_MOST_CELLS: Final = 50_000
_MOST_COLUMNS: Final = 200
_LONGEST: Final = 2_000
_NUMBER: Final = re.compile(r"[(\-+]?(?:[^\d\s,.]{1,3}\s?)?\d[\d,.' ]*(?:\s?[%€$£]|\s?[A-Z]{3})?\)?")
_PLAIN: Final = Layout({}, set(), set())


class _Room:
    """How many cells may still be shown, of all sheets."""

    def __init__(self) -> None:
        self.cells = _MOST_CELLS


def preview(path: Path) -> PreviewPage:
    """The visible sheets of a workbook. Raises `UnparsableDocument` as its parser does."""
    room = _Room()
    sheets = (
        _sheet(sheet.title, sheet.rows, sheet.layout, room) for sheet in visible_sheets(path) if room.cells
    )
    return PreviewPage("".join(sheets))


def preview_ods(path: Path) -> PreviewPage:
    """The visible sheets of an OpenDocument spreadsheet. Raises `UnparsableDocument` as its parser does."""
    room, sheets = _Room(), []
    for sheet in from_ods.visible_sheets(path):
        sheets.append(_sheet(sheet.title, (line.split("\t") for line in sheet.lines), _PLAIN, room))
        if not room.cells:
            break
        deque(sheet.lines, maxlen=0)
    return PreviewPage("".join(sheets))


def preview_csv(path: Path) -> PreviewPage:
    """The rows of a file with delimiters. Raises `UnparsableDocument` as its parser does."""
    return PreviewPage(_sheet("", rows_of(path), _PLAIN, _Room()))


def _sheet(title: str, rows: Iterable[list[str]], layout: Layout, room: _Room) -> str:
    lines, columns, names, left_out = list[tuple[int, list[str]]](), 0, -1, False
    for number, cells in enumerate(rows, start=1):
        if number in layout.rows:
            continue
        width = max((at for at, cell in enumerate(cells, start=1) if cell), default=0)
        if not width and (not lines or not any(lines[-1][1])):
            continue
        if room.cells < width + 1:
            left_out = True
            break
        room.cells -= width + 1
        visible_cells = cells[: min(width, _MOST_COLUMNS)]
        columns = max(columns, len(visible_cells))
        if names < 0 and len(list(filter(None, visible_cells))) > 1:
            names = number
        lines.append((number, visible_cells))
    visible = [at for at in range(columns) if at not in layout.columns]
    head = "".join(f"<th>{get_column_letter(at + 1)}</th>" for at in visible)
    body = "".join(_rows(lines, visible, layout, names))
    heading = f"<h2>{escape(title)}</h2>" if title else ""
    note = '<p class="note">The rest of the rows is not shown here.</p>' if left_out else ""
    return (
        f'<div class="sheet">{heading}<div class="scroll"><table><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{note}</div>"
    )


def _rows(
    lines: list[tuple[int, list[str]]], visible: list[int], layout: Layout, names: int
) -> Iterator[str]:
    covered = set[tuple[int, int]]()
    for number, cells in lines:
        spans = {one.left: one for one in layout.merged.get(number, ())}
        html_cells = []
        for at in visible:
            if (number, at) in covered:
                continue
            text = cells[at] if at < len(cells) else ""
            size = ""
            if span := spans.get(at):
                right, bottom = min(span.right, visible[-1]), min(span.bottom, lines[-1][0])
                covered.update(
                    (row, column)
                    for row in islice(range(number, bottom + 1), _MOST_COLUMNS)
                    for column in range(at, right + 1)
                )
                wide = sum(at <= column <= right for column in visible)
                tall = sum(number <= other <= bottom for other, _ in lines)
                size = f' colspan="{wide}" rowspan="{min(tall, _MOST_COLUMNS)}"'
            kind = ' class="n"' if _NUMBER.fullmatch(text) else ""
            html_cells.append(f"<td{kind}{size}>{escape(text[:_LONGEST])}</td>")
        mark = ' class="names"' if number == names else ""
        yield f"<tr{mark}><th>{number}</th>{''.join(html_cells)}</tr>"
