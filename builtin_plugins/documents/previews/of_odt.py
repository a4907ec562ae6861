"""OpenDocument texts as HTML: headings, lists, tables, pictures and the looks of their text."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from lxml import etree

from builtin_plugins.documents.archives.archive import member, open_archive
from builtin_plugins.documents.office.from_odt import CHECKED, CONTENT, check_readable
from builtin_plugins.documents.office.ooxml import safe_parser
from builtin_plugins.documents.previews.page import PreviewPage
from builtin_plugins.documents.previews.pictures import EmbeddedPictures

_STYLES: Final = "styles.xml"
_MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_STYLE_BYTES: Final = 8 * 1024 * 1024
_MOST_PICTURE_BYTES: Final = 8 * 1024 * 1024
_DEEPEST: Final = 200
_LOWEST: Final = 6
_MOST_ALIKE: Final = 64
_NS: Final = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_TEXT, _TABLE, _STYLE, _DRAW = (_NS % name for name in ("text", "table", "style", "drawing"))
_LOOKS_NS: Final = _NS % "xsl-fo-compatible"
_SVG: Final = _NS % "svg-compatible"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_LOOKS: Final = {
    **{name: name for name in ("color", "background-color", "font-style", "font-weight", "font-size")},
    "text-align": "text-align",
}
_SIDES: Final = {"start": "left", "end": "right"}
_UNREAD: Final = frozenset({"tracked-changes", "annotation", "scripts", "forms", "sequence-decls", "note"})
_ELEMENTS: Final = {
    **{f"{_TEXT}{name}": element for name, element in (("list", "ul"), ("list-item", "li"))},
    f"{_TEXT}list-header": "li",
    f"{_TEXT}span": "span",
    f"{_TEXT}p": "p",
    f"{_TABLE}table-header-rows": "",
}


def preview(path: Path) -> PreviewPage:
    """The body of a text. Raises `UnparsableDocument` for a bomb, a password or a broken package."""
    with open_archive(path, checked=CHECKED) as archive:
        check_readable(archive)
        root = etree.fromstring(member(archive, CONTENT, _MOST_BYTES), safe_parser())
        walk = OdfWalk(archive, looks_in(root) | common_looks(archive))
        body = root.find(f".//{_NS % 'office'}text")
        html = "".join(walk.inside(body, 0)) if body is not None else ""
    return PreviewPage(f'<div class="text">{html}</div>')


def common_looks(archive: ZipFile) -> dict[str, str]:
    """The CSS of the styles that all of the file shares, by their names."""
    info = archive.NameToInfo.get(_STYLES)
    if info is None or info.file_size > _MOST_STYLE_BYTES:
        return {}
    try:
        return looks_in(etree.fromstring(archive.read(info), safe_parser()))
    except etree.XMLSyntaxError:  # broken styles only cost the looks
        return {}


def looks_in(root: etree._Element) -> dict[str, str]:
    """The CSS of each style by its name."""
    return {style.get(f"{_STYLE}name", ""): " ".join(_looks(style)) for style in root.iter(f"{_STYLE}style")}


def _looks(style: etree._Element) -> Iterator[str]:
    for properties in style:
        for name, value in properties.attrib.items():
            css = _LOOKS.get(str(name).removeprefix(_LOOKS_NS)) if str(name).startswith(_LOOKS_NS) else None
            if css:
                yield f"{css}: {_SIDES.get(str(value), str(value))};"
            elif name == f"{_STYLE}text-underline-style" and value != "none":
                yield "text-decoration: underline;"


class OdfWalk:
    """Writes what is in an element of an OpenDocument file as HTML; `looks` are the CSS of styles by name."""

    def __init__(self, archive: ZipFile, looks: dict[str, str]) -> None:
        self._archive = archive
        self._looks = looks
        self._pictures = EmbeddedPictures()

    def inside(self, element: etree._Element, depth: int) -> Iterator[str]:
        """The HTML of what is in an element."""
        yield escape(element.text or "")
        for child in element:
            if isinstance(child.tag, str) and depth < _DEEPEST:
                yield from self._element(child, depth + 1)
            yield escape(child.tail or "")

    def _element(self, element: etree._Element, depth: int) -> Iterator[str]:
        name = etree.QName(element).localname
        if name in _UNREAD:
            return
        if element.tag == f"{_TEXT}h":
            level = element.get(f"{_TEXT}outline-level", "1")
            yield from self._as(f"h{min(int(level), _LOWEST) if level.isdecimal() else 1}", element, depth)
        elif element.tag == f"{_TEXT}s":
            yield " "
        elif element.tag in (f"{_TEXT}line-break", f"{_TEXT}tab"):
            yield "<br>" if name == "line-break" else " "
        elif element.tag == f"{_TABLE}table":
            yield f'<div class="scroll"><table>{"".join(self.inside(element, depth))}</table></div>'
        elif element.tag == f"{_TABLE}table-row":
            yield from self._as("tr", element, depth)
        elif element.tag == f"{_TABLE}table-cell":
            yield from self._cell(element, depth)
        elif element.tag == f"{_DRAW}image":
            yield self.picture(element)
        elif wrapped := _ELEMENTS.get(str(element.tag)):
            yield from self._as(wrapped, element, depth)
        else:
            yield from self.inside(element, depth)

    def _as(self, name: str, element: etree._Element, depth: int) -> Iterator[str]:
        looks = escape(self._looks.get(element.get(f"{_TEXT}style-name", ""), ""))
        yield f'<{name} style="{looks}">' if looks else f"<{name}>"
        yield from self.inside(element, depth)
        yield f"</{name}>"

    def _cell(self, cell: etree._Element, depth: int) -> Iterator[str]:
        wide = cell.get(f"{_TABLE}number-columns-spanned", "1")
        tall = cell.get(f"{_TABLE}number-rows-spanned", "1")
        text = "".join(self.inside(cell, depth))
        repeated = cell.get(f"{_TABLE}number-columns-repeated", "1")
        for _ in range(min(int(repeated), _MOST_ALIKE) if repeated.isdecimal() else 1):
            yield f'<td colspan="{escape(wide)}" rowspan="{escape(tall)}">{text}</td>'

    def picture(self, image: etree._Element) -> str:
        """A picture as wide as its frame, or a box that stands for it."""
        frame = image.getparent()
        looks = "" if frame is None else f"width: {frame.get(f'{_SVG}width', 'auto')};"
        return self.pictured(image, looks)

    def pictured(self, image: etree._Element, looks: str) -> str:
        """A picture with this CSS, or a box with its name that stands for it."""
        frame = image.getparent()
        name = "" if frame is None else frame.get(f"{_DRAW}name", "")
        info = self._archive.NameToInfo.get(image.get(_HREF, "").removeprefix("./"))
        if info is None or info.file_size > _MOST_PICTURE_BYTES:
            return self._pictures.element(b"", name, looks)
        return self._pictures.element(self._archive.read(info), name, looks)
