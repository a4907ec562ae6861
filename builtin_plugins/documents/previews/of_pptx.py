"""Presentations as HTML: each slide in its proportions, with texts, tables and pictures in their places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from lxml import etree
from pptx import Presentation
from pptx.enum.dml import MSO_COLOR_TYPE, MSO_FILL
from pptx.enum.text import PP_ALIGN
from pptx.oxml.ns import qn
from pptx.shapes.group import GroupShape
from pptx.shapes.picture import Picture

from builtin_plugins.documents.archives.archive import open_archive
from builtin_plugins.documents.office.ooxml import safe_parser
from builtin_plugins.documents.previews.page import PreviewPage
from builtin_plugins.documents.previews.pictures import EmbeddedPictures

_MOST_SLIDES: Final = 300
_MOST_SHAPES: Final = 500
"""On one slide."""
_DEEPEST: Final = 8
_EMU_PER_POINT: Final = 12_700
_TABLE_SIZE: Final = 14.0
_LEVELS: Final = 5
_SIDES: Final = {
    PP_ALIGN.LEFT: "left",
    PP_ALIGN.CENTER: "center",
    PP_ALIGN.RIGHT: "right",
    PP_ALIGN.JUSTIFY: "justify",
}
_MASTER_SIDES: Final = {"ctr": "center", "r": "right", "just": "justify"}
_FAULTS: Final = (AttributeError, KeyError, ValueError, TypeError, IndexError, NotImplementedError)
"""What python-pptx raises for a part of a slide that is missing, not as the standard has it, or unknown to it
(`NotImplementedError`): the other parts are shown.
"""
_HEX: Final = re.compile(r"[0-9A-Fa-f]{6}")
_VISUAL_TAGS: Final = (qn("p:graphicFrame"), qn("p:pic"))
"""Tables, charts, diagrams, objects and pictures: where one can't be shown, a box stands for it."""
_COLORS: Final = {"tx1": "dk1", "tx2": "dk2", "bg1": "lt1", "bg2": "lt2"}


class _Frame(NamedTuple):
    """How the coordinates of a group become those of its slide, in EMU."""

    left: float = 0
    top: float = 0
    across: float = 1
    down: float = 1


def preview(path: Path) -> PreviewPage:
    """The slides that aren't hidden. Raises `UnparsableDocument` for a bomb, a password, a broken package."""
    with open_archive(path), path.open("rb") as file:
        deck = Presentation(file)
        drawing = _Drawing(deck.slide_width, deck.slide_height)
        slides = [slide for slide in deck.slides if slide.element.get("show") not in ("0", "false")]
        html = "".join(drawing.slide(slide) for slide in slides[:_MOST_SLIDES] or deck.slides)
    if len(slides) > _MOST_SLIDES:
        html += f'<p class="note">The first {_MOST_SLIDES} slides.</p>'
    return PreviewPage(html, placed=True)


class _TextStyle(NamedTuple):
    """A design's text of one kind and level: its size in points, and its alignment."""

    size: float
    side: str | None = None


_PLAIN: Final = [_TextStyle(18.0)]
_USUAL: Final = {
    "title": [_TextStyle(40.0)],
    "body": [_TextStyle(size) for size in (28.0, 24.0, 20.0, 18.0, 18.0)],
}


class _Drawing:
    def __init__(self, width: int | None, height: int | None) -> None:
        self._width, self._height = width or 9_144_000, height or 6_858_000
        self._pictures = EmbeddedPictures()
        self._colors: dict[str, str] = {}
        self._styles: dict[str, list[_TextStyle]] = _USUAL

    def slide(self, slide: Any) -> str:
        layout = slide.slide_layout
        self._colors = _theme_colors(layout.slide_master)
        self._styles = {kind: _text_styles(layout.slide_master, kind) for kind in _USUAL}
        behind = [
            shape
            for part in (layout.slide_master, layout)
            for shape in part.shapes
            if not shape.is_placeholder and isinstance(shape, Picture)
        ]
        left = [_MOST_SHAPES]
        shapes = "".join(
            self._shape(shape, _Frame(), 0, left) for shape in [*behind, *slide.shapes] if left[0] > 0
        )
        background = self._background(slide)
        style = f"aspect-ratio: {self._width} / {self._height}; {background}"
        return f'<section class="slide" style="{style}">{shapes}</section>{_notes(slide)}'

    def _shape(self, shape: Any, frame: _Frame, depth: int, left: list[int]) -> str:
        left[0] -= 1
        if left[0] < 0 or depth > _DEEPEST:
            return ""
        place = self._place(shape, frame)
        if isinstance(shape, GroupShape):
            inner = _inner(shape, frame)
            return "".join(self._shape(child, inner, depth + 1, left) for child in shape.shapes)
        with suppress(*_FAULTS):
            if getattr(shape, "has_table", False):
                return f'<div style="{place}">{self._table(shape.table)}</div>'
            if getattr(shape, "has_chart", False):
                return f'<div style="{place} {self._size(_TABLE_SIZE)}">{_chart(shape.chart)}</div>'
            if hasattr(shape, "image"):
                return f'<div style="{place}">{self._pictures.element(shape.image.blob, shape.name)}</div>'
            if shape.has_text_frame:
                return f'<div style="{place} {self._fill(shape)}">{self._text(shape)}</div>'
        if shape.element.tag in _VISUAL_TAGS:
            return f'<div class="no-picture" style="{place}">{escape(shape.name)}</div>'
        return ""

    def _place(self, shape: Any, frame: _Frame) -> str:
        with suppress(*_FAULTS):
            if shape.left is not None and shape.width is not None:
                left = (frame.left + shape.left * frame.across) / self._width
                top = (frame.top + shape.top * frame.down) / self._height
                width = shape.width * frame.across / self._width
                height = shape.height * frame.down / self._height
                ends = "overflow: visible;" if getattr(shape, "has_text_frame", False) else ""
                return f"left: {left:.2%}; top: {top:.2%}; width: {width:.2%}; height: {height:.2%}; {ends}"
        return "left: 5%; top: 5%; width: 90%;"

    def _size(self, points: float) -> str:
        return f"font-size: {100 * points * _EMU_PER_POINT / self._width:.2f}cqw;"

    def _text(self, shape: Any) -> str:
        kind = str(shape.placeholder_format.type) if shape.is_placeholder else ""
        is_list = "BODY" in kind or "OBJECT" in kind
        is_title = "TITLE" in kind and "SUB" not in kind
        styles = self._styles["title" if is_title else "body"] if kind else _PLAIN
        lines = [
            (is_list and bool(paragraph.text.strip()), self._paragraph(paragraph, styles))
            for paragraph in shape.text_frame.paragraphs
        ]
        parts = []
        for listed, group in groupby(lines, key=lambda line: line[0]):
            texts = [text for _, text in group]
            if listed:
                parts.append(f"<ul>{''.join(f'<li>{text}</li>' for text in texts)}</ul>")
            else:
                parts += texts
        return "".join(parts)

    def _paragraph(self, paragraph: Any, styles: list[_TextStyle]) -> str:
        usual = styles[min(paragraph.level, len(styles) - 1)]
        side = _SIDES.get(paragraph.alignment, usual.side)
        style = self._size(usual.size) + (f" text-align: {side};" if side else "")
        style += f" margin-left: {paragraph.level}em;" if paragraph.level else ""
        return f'<p style="{style}">{"".join(self._runs(paragraph)) or "<br>"}</p>'

    def _runs(self, paragraph: Any) -> Iterator[str]:
        """The runs, with the line breaks and fields between them."""
        rest = paragraph.text
        for run in paragraph.runs:
            before, _, rest = rest.partition(run.text)
            yield _lines(before)
            yield self._run(run)
        yield _lines(rest)

    def _run(self, run: Any) -> str:
        font = run.font
        looks = self._size(font.size.pt) if font.size else ""
        looks += " font-weight: 700;" if font.bold else ""
        looks += " font-style: italic;" if font.italic else ""
        looks += " text-decoration: underline;" if font.underline else ""
        with suppress(*_FAULTS):
            if font.fill.type == MSO_FILL.SOLID and (color := self._color(font.color)):
                looks += f" color: {color};"
        text = _lines(run.text)
        return f'<span style="{looks.strip()}">{text}</span>' if looks else text

    def _fill(self, shape: Any) -> str:
        with suppress(*_FAULTS):
            if shape.fill.type == MSO_FILL.SOLID and (color := self._color(shape.fill.fore_color)):
                return f"background-color: {color};"
        return ""

    def _background(self, slide: Any) -> str:
        with suppress(*_FAULTS):
            fill = slide.background.fill
            if fill.type == MSO_FILL.SOLID and (color := self._color(fill.fore_color)):
                return f"background-color: {color};"
        return ""

    def _color(self, color: Any) -> str | None:
        if color.type == MSO_COLOR_TYPE.RGB:
            return f"#{color.rgb}"
        name = color.theme_color.xml_value if color.type == MSO_COLOR_TYPE.SCHEME else ""
        return self._colors.get(_COLORS.get(name, name))

    def _table(self, table: Any) -> str:
        rows = []
        for row in table.rows:
            cells = "".join(
                f'<td colspan="{cell.span_width}" rowspan="{cell.span_height}">{escape(cell.text)}</td>'
                for cell in row.cells
                if not cell.is_spanned
            )
            rows.append(f"<tr>{cells}</tr>")
        return f'<table style="{self._size(_TABLE_SIZE)}">{"".join(rows)}</table>'


def _lines(text: str) -> str:
    return escape(text).replace("\v", "<br>")


def _text_styles(master: Any, kind: str) -> list[_TextStyle]:
    """The styles of a design's titles or bodies, by level."""
    styles = []
    for level in range(_LEVELS if kind == "body" else 1):
        usual = _USUAL[kind][level]
        own = master.element.find(f".//{qn(f'p:{kind}Style')}/{qn(f'a:lvl{level + 1}pPr')}")
        if own is not None:
            font = own.find(qn("a:defRPr"))
            size = "" if font is None else font.get("sz", "")
            side = _MASTER_SIDES.get(own.get("algn", ""))
            usual = _TextStyle(int(size) / 100 if size.isdecimal() else usual.size, side)
        styles.append(usual)
    return styles


def _inner(group: Any, frame: _Frame) -> _Frame:
    """The frame of what is in a group, which has coordinates of its own (`chOff`, `chExt`)."""
    with suppress(*_FAULTS):
        own = group.element.grpSpPr.find(qn("a:xfrm"))
        offset, size = own.find(qn("a:chOff")), own.find(qn("a:chExt"))
        across = frame.across * group.width / max(1, int(size.get("cx")))
        down = frame.down * group.height / max(1, int(size.get("cy")))
        return _Frame(
            frame.left + group.left * frame.across - int(offset.get("x")) * across,
            frame.top + group.top * frame.down - int(offset.get("y")) * down,
            *(across, down),
        )
    return frame


def _theme_colors(master: Any) -> dict[str, str]:
    """The colors of a design by their names, such as `accent1`."""
    with suppress(*_FAULTS, etree.XMLSyntaxError):
        part = next(one.target_part for one in master.part.rels.values() if one.reltype.endswith("/theme"))
        scheme = etree.fromstring(part.blob, safe_parser()).find(f".//{qn('a:clrScheme')}")
        return {
            etree.QName(color).localname: f"#{value}"
            for color in scheme
            if _HEX.fullmatch(value := color[0].get("lastClr") or color[0].get("val", ""))
        }
    return {}


def _chart(chart: Any) -> str:
    """What a chart shows, as a table: its series by category."""
    plot = chart.plots[0]
    series = list(plot.series)
    head = "".join(f"<th>{escape(one.name or '')}</th>" for one in series)
    rows = "".join(
        f"<tr><th>{escape(str(label))}</th>"
        + "".join(f"<td>{one.values[at]}</td>" if at < len(one.values) else "<td></td>" for one in series)
        + "</tr>"
        for at, label in enumerate(plot.categories)
    )
    return f"<table><tr><th></th>{head}</tr>{rows}</table>"


def _notes(slide: Any) -> str:
    with suppress(*_FAULTS):
        text = slide.notes_slide.notes_text_frame.text.strip() if slide.has_notes_slide else ""
        if text:
            return f'<p class="notes">{escape(text)}</p>'
    return ""
