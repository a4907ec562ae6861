"""OpenDocument presentations as HTML: each slide in its proportions, with texts, tables, pictures in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from lxml import etree

from builtin_plugins.documents.archives.archive import member, open_archive
from builtin_plugins.documents.office.from_odt import CHECKED, CONTENT, check_readable
from builtin_plugins.documents.office.ooxml import safe_parser
from builtin_plugins.documents.previews.of_odt import OdfWalk, common_looks, looks_in
from builtin_plugins.documents.previews.page import PreviewPage

_STYLES: Final = "styles.xml"
_MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_STYLE_BYTES: Final = 8 * 1024 * 1024
_MOST_SLIDES: Final = 300
_MOST_SHAPES: Final = 500
"""On one slide."""
_DEEPEST: Final = 8
_NS: Final = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_DRAW, _STYLE, _SHOW, _FO, _SVG, _TEXT, _TABLE = (
    _NS % name
    for name in ("drawing", "style", "presentation", "xsl-fo-compatible", "svg-compatible", "text", "table")
)
_POINTS: Final = {"cm": 28.3465, "mm": 2.83465, "in": 72.0, "pt": 1.0, "pc": 12.0, "px": 0.75}
_LENGTH: Final = re.compile(r"(-?[0-9.]{1,12})(cm|mm|in|pt|pc|px)")
_SIZE: Final = re.compile(r"font-size: ([0-9.]{1,8})pt;")
_USUAL: Final = {"title": 40.0, "subtitle": 28.0, "outline": 24.0}
_PLAIN: Final = 18.0
_WIDTH, _HEIGHT = 793.7, 595.3  # of a slide in points, if it says nothing
_SHAPES: Final = frozenset(
    f"{_DRAW}{name}"
    for name in ("frame", "custom-shape", "rect", "ellipse", "circle", "polygon", "path", "text-box")
)


def preview(path: Path) -> PreviewPage:
    """The slides that aren't hidden. Raises `UnparsableDocument` for a bomb, a password, a broken package."""
    with open_archive(path, checked=CHECKED) as archive:
        check_readable(archive)
        root = etree.fromstring(member(archive, CONTENT, _MOST_BYTES), safe_parser())
        drawing = _Drawing(archive, root)
        slides = [slide for slide in root.iter(f"{_DRAW}page") if not drawing.is_hidden(slide)]
        html = "".join(drawing.slide(slide) for slide in slides[:_MOST_SLIDES])
    if len(slides) > _MOST_SLIDES:
        html += f'<p class="note">The first {_MOST_SLIDES} slides.</p>'
    return PreviewPage(html, placed=True)


class _Slide(OdfWalk):
    """What is in a shape of a slide: its pictures fill their places."""

    def picture(self, image: etree._Element) -> str:
        return self.pictured(image, "width: 100%; height: 100%;")


class _Drawing:
    def __init__(self, archive: ZipFile, root: etree._Element) -> None:
        common = _common_styles(archive)
        styles = [
            style for part in (common, root) if part is not None for style in part.iter(f"{_STYLE}style")
        ]
        self._styles = {style.get(f"{_STYLE}name", ""): style for style in styles}
        self._width, self._height = _page_size(common)
        looks = common_looks(archive) | looks_in(root)
        self._looks = {name: self._scaled(css) for name, css in looks.items()}
        self._walk = _Slide(archive, self._looks)

    def is_hidden(self, slide: etree._Element) -> bool:
        return self._property(slide.get(f"{_DRAW}style-name"), f"{_SHOW}visibility") == "hidden"

    def slide(self, slide: etree._Element) -> str:
        shapes = "".join(self._shapes(slide, [_MOST_SHAPES], 0))
        color = self._fill(slide.get(f"{_DRAW}style-name"))
        style = f"aspect-ratio: {self._width:.1f} / {self._height:.1f}; {color}"
        notes = " ".join("".join(slide.find(f"{_SHOW}notes").itertext()).split()) if _has_notes(slide) else ""
        below = f'<p class="notes">{escape(notes)}</p>' if notes else ""
        return f'<section class="slide" style="{escape(style)}">{shapes}</section>{below}'

    def _shapes(self, parent: etree._Element, left: list[int], depth: int) -> Iterator[str]:
        for child in parent:
            if left[0] <= 0 or depth > _DEEPEST:
                return
            if child.tag == f"{_DRAW}g":
                yield from self._shapes(child, left, depth + 1)
            elif child.tag in _SHAPES:
                left[0] -= 1
                yield self._shape(child)

    def _shape(self, shape: etree._Element) -> str:
        kind = shape.get(f"{_SHOW}class", "")
        name = shape.get(f"{_SHOW}style-name") or shape.get(f"{_DRAW}style-name")
        looks = f"{self._font_size(_USUAL.get(kind, _PLAIN))} {self._inherited(name)} {self._fill(name)}"
        inside = "".join(self._content(shape))
        return f'<div style="{self._place(shape)} {escape(looks)}">{inside}</div>'

    def _content(self, shape: etree._Element) -> Iterator[str]:
        """A frame offers the same in several ways, the best first; what can't be shown leaves a mark."""
        if shape.tag != f"{_DRAW}frame":
            yield from self._walk.inside(shape, 0)
            return
        ways = {etree.QName(way).localname: way for way in shape if isinstance(way.tag, str)}
        if "text-box" in ways:
            yield from self._walk.inside(ways["text-box"], 0)
        elif "table" in ways:
            rows = "".join(self._walk.inside(ways["table"], 0))
            yield f'<table style="{self._font_size(_PLAIN)}">{rows}</table>'
        elif "image" in ways:
            yield self._walk.picture(ways["image"])
        elif ways:
            mark = escape(shape.get(f"{_DRAW}name", ""))
            yield f'<span class="no-picture" style="width: 100%; height: 100%;">{mark}</span>'

    def _place(self, shape: etree._Element) -> str:
        sides = [_points(shape.get(f"{_SVG}{name}")) for name in ("x", "y", "width", "height")]
        left, top, width, height = (0.0 if side is None else side for side in sides)
        ends = "" if sides[3] is None else f" height: {height / self._height:.2%};"
        return (
            f"left: {left / self._width:.2%}; top: {top / self._height:.2%}; "
            f"width: {(width or self._width) / self._width:.2%};{ends} overflow: visible;"
        )

    def _font_size(self, points: float) -> str:
        return f"font-size: {100 * points / self._width:.2f}cqw;"

    def _scaled(self, css: str) -> str:
        """The CSS with sizes that shrink with the slide."""
        return _SIZE.sub(lambda size: self._font_size(float(size[1])), css)

    def _inherited(self, name: str | None) -> str:
        """The CSS of a style with those that it is based on, which come first."""
        looks: list[str] = []
        while name and name in self._styles and len(looks) < _DEEPEST:
            looks.append(self._looks.get(name, ""))
            name = self._styles[name].get(f"{_STYLE}parent-style-name")
        return " ".join(reversed(looks))

    def _property(self, name: str | None, attribute: str) -> str | None:
        for _ in range(_DEEPEST):
            style = self._styles.get(name or "")
            if style is None:
                return None
            for properties in style:
                if (value := properties.get(attribute)) is not None:
                    return str(value)
            name = style.get(f"{_STYLE}parent-style-name")
        return None

    def _fill(self, name: str | None) -> str:
        color = self._property(name, f"{_DRAW}fill-color")
        is_solid = self._property(name, f"{_DRAW}fill") == "solid"
        return f"background-color: {color};" if is_solid and color else ""


def _has_notes(slide: etree._Element) -> bool:
    return slide.find(f"{_SHOW}notes") is not None


def _common_styles(archive: ZipFile) -> etree._Element | None:
    info = archive.NameToInfo.get(_STYLES)
    if info is None or info.file_size > _MOST_STYLE_BYTES:
        return None
    try:
        return etree.fromstring(archive.read(info), safe_parser())
    except etree.XMLSyntaxError:  # broken styles only cost the looks
        return None


def _page_size(styles: etree._Element | None) -> tuple[float, float]:
    """The size of the slides in points: that of the first design."""
    master = None if styles is None else styles.find(f".//{_STYLE}master-page")
    if styles is None or master is None:
        return _WIDTH, _HEIGHT
    layout = master.get(f"{_STYLE}page-layout-name")
    for page_layout in styles.iter(f"{_STYLE}page-layout"):
        if page_layout.get(f"{_STYLE}name") == layout:
            for properties in page_layout:
                width, height = (_points(properties.get(f"{_FO}page-{side}")) for side in ("width", "height"))
                if width and height:
                    return width, height
    return _WIDTH, _HEIGHT


def _points(length: str | None) -> float | None:
    match = _LENGTH.fullmatch(length or "")
    try:
        return None if match is None else float(match[1]) * _POINTS[match[2]]
    except ValueError:  # several dots
        return None
