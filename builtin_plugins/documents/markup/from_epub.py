"""EPUB books (W3C EPUB 3.3, IDPF OPF 2.0): the chapters in the order of the spine."""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from lxml import etree

from builtin_plugins.documents.archives.archive import member, open_archive
from builtin_plugins.documents.blocks import Block, UnparsableDocument
from builtin_plugins.documents.markup.from_html import blocks_of, decoded
from builtin_plugins.documents.office.ooxml import safe_parser
from builtin_plugins.documents.properties import note_property

CONTAINER: Final = "META-INF/container.xml"
_ENCRYPTION: Final = "META-INF/encryption.xml"
_CHANGED: Final = "dcterms:modified"
_MAX_XML_BYTES: Final = 8 * 1024 * 1024
_MAX_CHAPTER_BYTES: Final = 32 * 1024 * 1024
_CHAPTER_TYPES: Final = frozenset({"application/xhtml+xml", "text/html", "text/x-oeb1-document"})
# To an HTML parser, an XHTML element closed in its own tag is still open and swallows the rest.
_EMPTY: Final = re.compile(
    r"<(title|script|style|a|p|div|span|i|b|em|td|th|tr|li|h[1-6]|section|svg|iframe)(\s[^<>]*)?/>",
    re.IGNORECASE,
)


def parse(path: Path) -> Iterator[Block]:
    """Yield the title, then a block per paragraph, heading, list or table; a book's pages are not fixed.

    Chapters that are missing or damaged are left out and counted. Raises `UnparsableDocument` for a zip bomb,
    a broken package, encrypted chapters, or if no chapter can be read.
    """
    with open_archive(path, checked=()) as archive:
        root, chapters = _open_package(archive)
        _note_properties(root)
        title = " ".join((root.findtext(".//{*}metadata//{*}title") or "").split())
        yield Block(title)
        lost = 0
        for chapter in chapters:
            page = _page(archive, chapter)
            if page is None:
                lost += 1
                yield Block("", damaged=True)
                continue
            # Many programs put the book's title or the file name into the head of each chapter.
            running_titles = (title, posixpath.basename(chapter))
            yield from (block for block in blocks_of([page]) if block.text not in running_titles)
        if lost == len(chapters):
            raise UnparsableDocument("corrupt", "epub: all chapters are missing or damaged")


def chapter_pages(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """The name and the HTML of each chapter that can be read, in order. Raises what `parse` raises."""
    for chapter in _open_package(archive)[1]:
        if (page := _page(archive, chapter)) is not None:
            yield chapter, page


def _open_package(archive: zipfile.ZipFile) -> tuple[etree._Element, list[str]]:
    package = _package_path(archive)
    root = _xml(archive, package)
    chapters = _chapters(root, posixpath.dirname(package))
    _check_readable(archive, chapters)
    return root, chapters


def _note_properties(root: etree._Element) -> None:
    """Note what the package says about the book (EPUB 3.3, 5.5)."""
    metadata = root.find(".//{*}metadata")
    if metadata is None:
        return
    note_property("title", metadata.findtext(".//{*}title"))
    note_property("author", *(one.text for one in metadata.iterfind(".//{*}creator")))
    note_property("keywords", *(one.text for one in metadata.iterfind(".//{*}subject")))
    note_property("language", metadata.findtext(".//{*}language"))
    note_property("created", metadata.findtext(".//{*}date"))
    changed = (one.text for one in metadata.iterfind(".//{*}meta") if one.get("property") == _CHANGED)
    note_property("modified", *changed)


def _page(archive: zipfile.ZipFile, chapter: str) -> str | None:
    """The page of a chapter, None if it is missing or damaged."""
    if chapter not in archive.NameToInfo:
        return None
    try:
        return _EMPTY.sub(r"<\1\2></\1>", decoded(member(archive, chapter, _MAX_CHAPTER_BYTES)))
    except (zipfile.BadZipFile, zlib.error, EOFError):
        return None


def _package_path(archive: zipfile.ZipFile) -> str:
    rootfile = _xml(archive, CONTAINER).find(".//{*}rootfile")
    if rootfile is None:
        raise UnparsableDocument("corrupt", "epub: the container names no package")
    return unquote(rootfile.get("full-path", ""))


def _xml(archive: zipfile.ZipFile, name: str) -> etree._Element:
    return etree.fromstring(member(archive, name, _MAX_XML_BYTES), safe_parser())


def _chapters(root: etree._Element, folder: str) -> list[str]:
    """Return the members of the spine, each once."""
    items = {
        item.get("id"): resolve_member(folder, item.get("href", ""))
        for item in root.iterfind(".//{*}manifest/{*}item")
        if item.get("media-type", "") in _CHAPTER_TYPES
    }
    order = (entry.get("idref") for entry in root.iterfind(".//{*}spine/{*}itemref"))
    chapters = list(dict.fromkeys(items[one] for one in order if one in items))
    if not chapters:
        raise UnparsableDocument("corrupt", "epub: no chapters in the spine")
    return chapters


def resolve_member(folder: str, href: str) -> str:
    """The member that an address in a member of this folder names."""
    return posixpath.normpath(posixpath.join("/" + folder, unquote(href.partition("#")[0]))).lstrip("/")


def _check_readable(archive: zipfile.ZipFile, chapters: list[str]) -> None:
    """Refuse a book with encrypted chapters; fonts are often obfuscated and don't count."""
    if _ENCRYPTION not in archive.NameToInfo:
        return
    scrambled = {
        resolve_member("", reference.get("URI", ""))
        for reference in _xml(archive, _ENCRYPTION).iterfind(".//{*}CipherReference")
    }
    if scrambled.intersection(chapters):
        raise UnparsableDocument("encrypted", "epub: encrypted chapters")
