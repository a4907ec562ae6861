"""Rich text as HTML: its paragraphs and tables, without the looks of their text."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import groupby
from pathlib import Path

from builtin_plugins.documents.office.from_rtf import RtfPart, parts_of
from builtin_plugins.documents.previews.page import PreviewPage


def preview(path: Path) -> PreviewPage:
    """The text at `path`. Raises `UnparsableDocument` as its parser does."""
    groups = groupby(parts_of(path.read_bytes()), key=lambda part: part.is_row)
    html = "".join(_table(parts) if is_row else _paragraphs(parts) for is_row, parts in groups)
    return PreviewPage(f'<div class="text">{html}</div>')


def _paragraphs(parts: Iterable[RtfPart]) -> str:
    lines = (line for part in parts for line in part.text.splitlines())
    return "".join(f"<p>{escape(line)}</p>" for line in lines if line.strip())


def _table(parts: Iterable[RtfPart]) -> str:
    rows = (f"<tr>{''.join(map(_cell, part.text.split(chr(9))))}</tr>" for part in parts)
    return f'<div class="scroll"><table>{"".join(rows)}</table></div>'


def _cell(text: str) -> str:
    return f"<td>{escape(text)}</td>"
