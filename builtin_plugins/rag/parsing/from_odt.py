"""OpenDocument texts, presentations and their templates (OASIS ODF 1.3): the body in document order."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from lxml import etree

from builtin_plugins.rag.parsing.archive import open_archive
from builtin_plugins.rag.parsing.blocks import Block, UnparsableDocument
from builtin_plugins.rag.parsing.from_html import Collector

CONTENT: Final = "content.xml"
CHECKED: Final = (CONTENT,)
"""Macros, toolbars and old manifests may have document type declarations, but aren't read as XML."""
_MANIFEST: Final = "META-INF/manifest.xml"
_MANIFEST_BYTES: Final = 1024 * 1024
_PORTION_BYTES: Final = 65_536
_MAX_SPACES: Final = 100
_IGNORED: Final = "script"
_RAISED: Final = re.compile("super|[1-9]")  # raised by a percentage of the font size
_STYLING: Final = frozenset({"style", "text-properties", "span"})
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
    "annotation": _IGNORED,
    "note-citation": _IGNORED,
    "automatic-styles": _IGNORED,
    "scripts": _IGNORED,
}


def parse(path: Path) -> Iterator[Block]:
    """Yield a block per paragraph, heading and table; cells are separated by tabs. Pages are not stored.

    Raises `UnparsableDocument` for a bomb, a password, or a broken package.
    """
    yield from _walked(path, _Walk())


def parse_slides(path: Path) -> Iterator[Block]:
    """Yield the same for a presentation, with notes; its slides are the pages. Raises what `parse` does."""
    yield from _walked(path, _Slides())


def _walked(path: Path, walk: _Walk) -> Iterator[Block]:
    with open_archive(path, checked=CHECKED) as archive:
        check_readable(archive)
        parser = etree.XMLParser(
            target=walk, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
        )
        with archive.open(CONTENT) as part:
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

    def __init__(self) -> None:
        self.collector = Collector()
        self._inline = 0
        self._note_begins = False
        self._style = ""
        self._raised = set[str]()  # styles

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = tag.rpartition("}")[2]
        html = _AS_HTML.get(name)
        if name == "s":
            self.collector.data(" " * _spaces(attributes))
        elif name in _STYLING:
            self._take_style(name, attributes)
        elif name == "note-body":
            self.collector.data(" (")
        elif name == "tab" or (self._inline and html not in (None, _IGNORED)):
            self.collector.data("" if self._note_begins else " ")
        elif html is not None:
            self.collector.start(html, {})
        self._inline += _is_inline(name)
        self._note_begins = name == "note-body"

    def _take_style(self, name: str, attributes: Mapping[str, str]) -> None:
        """Note a style's properties; styles precede the text."""
        if name == "style":
            self._style = _attribute(attributes, "name")
        elif name == "text-properties" and _RAISED.match(_attribute(attributes, "text-position")):
            self._raised.add(self._style)
        elif name == "span" and _attribute(attributes, "style-name") in self._raised:
            self.collector.start("sup", {})

    def end(self, tag: str) -> None:
        name = tag.rpartition("}")[2]
        html = _AS_HTML.get(name)
        self._inline -= _is_inline(name)
        if name == "note-body":
            self.collector.data(")")
        elif html is not None and (not self._inline or html == _IGNORED):
            self.collector.end(html)

    def take(self) -> list[Block]:
        """Return the finished blocks."""
        return self.collector.take()

    def data(self, data: str) -> None:
        self.collector.data(data)

    def close(self) -> None:
        """Nothing to do: the rest is fetched from the collector."""


class _Slides(_Walk):
    """Adds to each block the slide that it is on."""

    def __init__(self) -> None:
        super().__init__()
        self._page = 0
        self._finished: list[Block] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag.endswith("}page"):
            self.collector.end_paragraph()
            self._finished = self.take()
            self._page += 1
            self._finished.append(Block("", self._page))
        super().start(tag, attributes)

    def take(self) -> list[Block]:
        page = self._page or None
        taken = [*self._finished, *(block._replace(page=page) for block in self.collector.take())]
        self._finished = []
        return taken


def _is_inline(name: str) -> bool:
    return name == "note-body" or _AS_HTML.get(name) == "td"


def _spaces(attributes: Mapping[str, str]) -> int:
    count = _attribute(attributes, "c") or "1"
    return min(int(count[:9]), _MAX_SPACES) if count.isdecimal() else 1


def _attribute(attributes: Mapping[str, str], own: str) -> str:
    return next((value for name, value in attributes.items() if name.endswith("}" + own)), "")
