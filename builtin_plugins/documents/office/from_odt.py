"""OpenDocument texts, presentations and their templates (OASIS ODF 1.3): the body in document order."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from lxml import etree

from builtin_plugins.documents.archives.archive import open_archive
from builtin_plugins.documents.blocks import Block, UnparsableDocument, first_line, with_first_line
from builtin_plugins.documents.markup.formulas import formula_in
from builtin_plugins.documents.markup.from_html import BlockCollector
from builtin_plugins.documents.office.odt_numbering import OdtNumbering, attribute
from builtin_plugins.documents.office.ooxml import safe_parser
from builtin_plugins.documents.office.package_properties import note_odf_properties

CONTENT: Final = "content.xml"
CHECKED: Final = (CONTENT,)
"""Macros, toolbars and old manifests may have document type declarations, but aren't read as XML."""
_MANIFEST: Final = "META-INF/manifest.xml"
_MANIFEST_BYTES: Final = 1024 * 1024
_PORTION_BYTES: Final = 65_536
_MAX_SPACES: Final = 100
_IGNORED: Final = "script"
_STYLES: Final = "styles.xml"
_MAX_STYLES_BYTES: Final = 8 * 1024 * 1024
_MAX_OBJECT_BYTES: Final = 1024 * 1024
_MOST_POINTS: Final = 1_000
_CHART: Final = "{urn:oasis:names:tc:opendocument:xmlns:chart:1.0}"
_NUMBERED: Final = frozenset({"p", "h"})
_LOWEST: Final = 6
_COMMENT: Final = "annotation"
_UNREAD: Final = frozenset({"tracked-changes", _COMMENT})
_HEADER_OR_FOOTER: Final = re.compile("}(?:header|footer)(?:-left|-first)?$")
_RAISED: Final = re.compile("super|[1-9]")  # raised by a percentage of the font size
_STYLING: Final = frozenset({"style", "text-properties", "drawing-page-properties", "span"})
_HIDEABLE: Final = frozenset({"p", "h", "span", "section", "page"})
_HIDDEN: Final = "hidden"  # stands for such an element in the collector
# The HTML equivalents of elements, for the HTML collector, which makes the blocks.
_AS_HTML: Final = {
    "p": "p",
    "h": "h1",
    "list": "ul",
    "table": "table",
    "table-row": "tr",
    "table-cell": "td",
    "covered-table-cell": "td",
    "list-item": "li",
    "line-break": "br",
    "tracked-changes": _IGNORED,
    _COMMENT: _IGNORED,
    "note-citation": _IGNORED,
    "ruby-text": _IGNORED,
    "automatic-styles": _IGNORED,
    "scripts": _IGNORED,
}


def parse(path: Path) -> Iterator[Block]:
    """Yield a block per paragraph, heading and table, then comments, headers and footers; cells are separated
    by tabs. Pages are not stored.

    Raises `UnparsableDocument` for a bomb, a password, or a broken package.
    """
    walk = _Walk(OdtNumbering())
    yield from _walked(path, walk)
    yield from walk.beside
    with open_archive(path, checked=CHECKED) as archive:
        if (info := archive.NameToInfo.get(_STYLES)) and info.file_size <= _MAX_STYLES_BYTES:
            with suppress(etree.XMLSyntaxError):  # broken styles only cost the headers
                yield from dict.fromkeys(_part(archive, _STYLES, _HeadersAndFooters()))


def parse_slides(path: Path) -> Iterator[Block]:
    """Yield the same for a presentation, with notes; its slides are the pages. Raises what `parse` does."""
    yield from _walked(path, _Slides())


def _walked(path: Path, walk: _Walk) -> Iterator[Block]:
    with open_archive(path, checked=CHECKED) as archive:
        check_readable(archive)
        note_odf_properties(archive)
        walk.take_parts(archive)
        yield from _part(archive, CONTENT, walk)


def _part(archive: zipfile.ZipFile, name: str, walk: _Walk) -> Iterator[Block]:
    parser = etree.XMLParser(
        target=walk, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    with archive.open(name) as part:
        while portion := part.read(_PORTION_BYTES):
            parser.feed(portion)
            yield from walk.take()
    parser.close()
    walk.collector.end_paragraph()
    yield from walk.take()


def check_readable(archive: zipfile.ZipFile) -> None:
    """Raise for an encrypted package: its manifest is readable and marks each part (ODF 1.3 part 2, 4.8)."""
    if _MANIFEST in archive.NameToInfo:
        with archive.open(_MANIFEST) as part:
            if b"encryption-data" in part.read(_MANIFEST_BYTES):
                raise UnparsableDocument("encrypted", "odf: encrypted parts")


class _Walk:
    """The parser's target: passes to the collector what an HTML parser would.

    Paragraphs in a cell or a note become part of its line.
    """

    def __init__(self, numbering: OdtNumbering) -> None:
        self.collector = BlockCollector()
        self._numbering = numbering
        self._archive: zipfile.ZipFile | None = None
        self._label = ""
        self._paragraphs: list[str | None] = []  # the HTML tags of those that are open
        self._unread: list[str] = []
        self._comment: list[str] | None = None  # of the current paragraph of a comment
        self.beside: list[Block] = []
        self._inline = 0
        self._note_begins = False
        self._style = ""
        self._raised = set[str]()  # styles
        self._hidden = set[str]()  # styles
        self._open: list[bool] = []  # whether each of the elements around is hidden, of those that can be

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = tag.rpartition("}")[2]
        html = self._as_html(name, attributes)
        self._number(name, attributes)
        if name in _HIDEABLE:
            self._open.append(self._is_hidden(attributes))
            if self._open[-1]:
                self.collector.start(_HIDDEN, {"hidden": ""})
        if name == "s":
            self.collector.data(" " * _spaces(attributes))
        elif name in _STYLING:
            self._take_style(name, attributes)
        elif name == "note-body":
            self.collector.data(" (")
        elif name == "object":
            self.data(self.collector.placed(self._object(attribute(attributes, "href"))))
        elif name == "tab" or (self._inline and html not in (None, _IGNORED)):
            self.collector.data("" if self._note_begins else " ")
        elif html is not None:
            self.collector.start(html, {})
        self._inline += _is_inline(name)
        self._note_begins = name == "note-body"

    def _as_html(self, name: str, attributes: Mapping[str, str]) -> str | None:
        """The HTML tag that an element is read as."""
        html = _AS_HTML.get(name)
        if name in _NUMBERED:
            level = self.heading_level(name, attributes)
            html = f"h{min(level, _LOWEST)}" if level else html
            self._paragraphs.append(html)
        return html

    def heading_level(self, name: str, attributes: Mapping[str, str]) -> int:
        """The level of a heading, from 1; 0 for other paragraphs."""
        level = attribute(attributes, "outline-level")
        return int(level) if name == "h" and len(level) < 3 and level.isdecimal() else name == "h"

    def _number(self, name: str, attributes: Mapping[str, str]) -> None:
        """Keep the number of a paragraph until its text, as an empty one isn't shown."""
        if name in _UNREAD:
            self._unread.append(name)
        if name in _NUMBERED and self._unread == [_COMMENT]:
            self._comment = []
        if not self._unread:
            self._numbering.learn(name, attributes)
            self._numbering.start(name, attributes)
            if name in _NUMBERED:
                self._label = self._numbering.label(name, attributes)

    def _take_style(self, name: str, attributes: Mapping[str, str]) -> None:
        """Note a style's properties; styles precede the text."""
        if name == "style":
            self._style = attribute(attributes, "name")
        elif attribute(attributes, "display") == "none" or attribute(attributes, "visibility") == "hidden":
            self._hidden.add(self._style)
        elif name == "text-properties" and _RAISED.match(attribute(attributes, "text-position")):
            self._raised.add(self._style)
        elif name == "span" and attribute(attributes, "style-name") in self._raised:
            self.collector.start("sup", {})

    def _is_hidden(self, attributes: Mapping[str, str]) -> bool:
        """Whether an element is not shown, by its style or by itself (a section)."""
        is_hidden = attribute(attributes, "style-name") in self._hidden
        return is_hidden or attribute(attributes, "display") == "none"

    def end(self, tag: str) -> None:
        name = tag.rpartition("}")[2]
        html = self._paragraphs.pop() if name in _NUMBERED else _AS_HTML.get(name)
        if name in _HIDEABLE and self._open.pop():
            self.collector.end(_HIDDEN)
        if name in _UNREAD:
            self._unread.pop()
        if not self._unread:
            self._numbering.end(name)
        if name in _NUMBERED:
            self._end_paragraph()
        self._inline -= _is_inline(name)
        if name == "note-body":
            self.collector.data(")")
        elif html is not None and (not self._inline or html == _IGNORED):
            self.collector.end(html)

    def _end_paragraph(self) -> None:
        self._label = ""
        if text := " ".join("".join(self._comment or ()).split()):
            self.beside.append(Block(text))
        self._comment = None

    def take(self) -> list[Block]:
        """Return the finished blocks."""
        return self.collector.take()

    def data(self, data: str) -> None:
        if self._label and not self._unread and data.strip():
            self.collector.data(f"{self._label} ")
            self._label = ""
        if self._comment is not None:
            self._comment.append(data)
        self.collector.data(data)

    def _object(self, href: str) -> str:
        """The formula in a part of its own; empty for any other object. A chart goes beside the text."""
        root = object_in(self._archive, href) if self._archive else None
        if root is None:
            return ""
        if root.tag.endswith("}math"):
            return formula_in(root)
        self.beside += map(Block, chart_texts(root))
        return ""

    def take_parts(self, archive: zipfile.ZipFile) -> None:
        """Keep the package for its formulas, and learn how headings and lists are numbered from the part that
        has the named styles.
        """
        self._archive = archive
        info = archive.NameToInfo.get(_STYLES)
        if info is None or info.file_size > _MAX_STYLES_BYTES:
            return
        with suppress(etree.XMLSyntaxError):  # broken styles only cost the numbers
            for element in etree.fromstring(archive.read(info), safe_parser()).iter(etree.Element):
                self._numbering.learn(element.tag.rpartition("}")[2], element.attrib)

    def close(self) -> None:
        """Nothing to do: the rest is fetched from the collector."""


class _Slides(_Walk):
    """Adds to each block the slide that it is on. A slide's title is a heading, or else its first line."""

    def __init__(self) -> None:
        super().__init__(OdtNumbering(of_slides=True))
        self._page = 0
        self._slide: list[Block] = []  # what was read of it
        self._finished: list[Block] = []
        self._frames: list[bool] = []  # whether each of those around is for a title

    def heading_level(self, name: str, attributes: Mapping[str, str]) -> int:
        return 1 if any(self._frames) else super().heading_level(name, attributes)

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag.endswith("}page"):
            self._end_slide()
            self._page += 1
            self._finished.append(Block("", self._page))
        elif tag.endswith("}frame"):
            self._frames.append(attribute(attributes, "class") == "title")
        super().start(tag, attributes)

    def end(self, tag: str) -> None:
        super().end(tag)
        if tag.endswith("}frame"):
            self._frames.pop()

    def close(self) -> None:
        self._end_slide()

    def take(self) -> list[Block]:
        self._slide += self.collector.take()
        blocks, self._finished = self._finished, []
        return blocks

    def _end_slide(self) -> None:
        self.collector.end_paragraph()
        blocks = [*self._slide, *self.collector.take()]
        if not any(block.headings for block in blocks):
            first = next((at for at, block in enumerate(blocks) if first_line(block.text)), None)
            if first is not None:
                blocks[first] = with_first_line(blocks[first])
        page = self._page or None
        self._finished += (block._replace(page=page) for block in (*blocks, *self.beside))
        self._slide, self.beside = [], []


class _HeadersAndFooters(_Walk):
    """Reads only the headers and footers of a text, from the part that has its styles."""

    def __init__(self) -> None:
        super().__init__(OdtNumbering())
        self._within = False

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._within = self._within or _HEADER_OR_FOOTER.search(tag) is not None
        if self._within:
            super().start(tag, attributes)

    def end(self, tag: str) -> None:
        if self._within:
            super().end(tag)
        self._within = self._within and not _HEADER_OR_FOOTER.search(tag)

    def data(self, data: str) -> None:
        if self._within:
            super().data(data)


def object_in(archive: zipfile.ZipFile, href: str) -> etree._Element | None:
    """The content of an embedded object, None if it is missing, broken, or above 1 MiB."""
    info = archive.NameToInfo.get(f"{posixpath.normpath(href)}/{CONTENT}")
    if info is not None and info.file_size <= _MAX_OBJECT_BYTES:
        with suppress(etree.XMLSyntaxError):  # a broken object only costs itself
            return etree.fromstring(archive.read(info), safe_parser())
    return None


def chart_texts(root: etree._Element) -> Iterator[str]:
    """The title of a chart, and the table of its numbers; nothing for an object of another kind."""
    chart = root.find(f"{{*}}body/{{*}}chart/{_CHART}chart")
    if chart is None:
        return
    for title in chart.iterfind(f"{_CHART}title"):
        yield " ".join("".join(title.itertext()).split())
    rows = islice(chart.iterfind("{*}table//{*}table-row"), _MOST_POINTS)
    cells = (
        (" ".join("".join(cell.itertext()).split()) for cell in row.iterfind("{*}table-cell")) for row in rows
    )
    lines = ["\t".join(row).rstrip() for row in cells]
    if any(lines):
        yield "\n".join(lines)


def _is_inline(name: str) -> bool:
    return name == "note-body" or _AS_HTML.get(name) == "td"


def _spaces(attributes: Mapping[str, str]) -> int:
    count = attribute(attributes, "c") or "1"
    return min(int(count[:9]), _MAX_SPACES) if count.isdecimal() else 1
