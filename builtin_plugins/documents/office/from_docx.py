"""Word documents, templates and their macro variants: the body, then charts, notes, headers and so on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from builtin_plugins.documents.archives.archive import ZIP_FAULTS, CheckedArchive, open_archive
from builtin_plugins.documents.blocks import Block, UnparsableDocument
from builtin_plugins.documents.mail.from_eml import body_of, message_of
from builtin_plugins.documents.markup.from_html import blocks_of, decoded
from builtin_plugins.documents.office.docx_numbering import DocxNumbering
from builtin_plugins.documents.office.from_rtf import blocks_of as blocks_of_rtf
from builtin_plugins.documents.office.ooxml import block_of, main_part, relationships, texts
from builtin_plugins.documents.office.ooxml_drawings import in_drawings
from builtin_plugins.documents.office.package_properties import note_core_properties
from builtin_plugins.documents.omissions import omit
from builtin_plugins.documents.text.encoding import HEAD_BYTES, detect_encoding

_MOST_INSERTED_BYTES: Final = 32 * 1024 * 1024
_PACKAGE: Final = b"PK\x03\x04"
_RTF: Final = b"{\\rtf"
_MAIL: Final = re.compile(rb"^MIME-Version:", re.IGNORECASE | re.MULTILINE)
_MARKUP: Final = re.compile(rb"<(?:html|body|p|div|table|!doctype)\b")
_BESIDE: Final = ("footnotes", "endnotes", "comments", "header", "footer")
"""The kinds of parts besides the body, in reading order."""


def parse(path: Path) -> Iterator[Block]:
    """Yield a block per paragraph and per table; Word's pages exist only on paper, so blocks have none.

    Raises `UnparsableDocument` for a bomb, a password, or a broken package.
    """
    with open_archive(path) as archive:
        note_core_properties(archive)
        main = main_part(archive)
        numbering, inserted = DocxNumbering(archive, main), partial(_inserted, archive, main)
        yield from map(block_of, texts(archive, main, numbering.label, inserted, numbering.heading_level))
        for text in in_drawings(archive, main):
            yield Block(text)
        texts_beside = set[str]()
        for text in _beside(archive, main):
            if text not in texts_beside:  # each section has its own headers, mostly identical
                texts_beside.add(text)
                yield Block(text)


def _inserted(archive: CheckedArchive, main: str, identifier: str) -> Iterator[str]:
    """The texts of a document that was inserted whole (`altChunk`); one that can't be read is counted."""
    targets = {one.id: one.target for one in relationships(archive, main)}
    name = targets.get(identifier, "")
    try:
        data = archive.as_it_is(name, _MOST_INSERTED_BYTES)
        yield from (block.text for block in _blocks_of(data))
    except (UnparsableDocument, *ZIP_FAULTS):
        omit("part")


def _blocks_of(data: bytes) -> Iterator[Block]:
    head = data[:HEAD_BYTES]
    if head.startswith(_PACKAGE):
        with open_archive(BytesIO(data)) as archive:
            yield from map(Block, texts(archive, main_part(archive)))
    elif head.startswith(_RTF):
        yield from blocks_of_rtf(data)
    elif _MAIL.search(head):
        yield from body_of(message_of(data))
    elif _MARKUP.search(head.lower()):
        yield from blocks_of([decoded(data)])
    elif codec := detect_encoding(head):
        yield Block(data.decode(codec, "replace"))
    else:
        raise UnparsableDocument("corrupt", "an inserted document of an unknown kind")


def _beside(archive: ZipFile, main: str) -> Iterator[str]:
    parts = [one for one in relationships(archive, main) if one.target in archive.NameToInfo]
    for kind in _BESIDE:
        for part in dict.fromkeys(one.target for one in parts if one.kind == kind):
            yield from texts(archive, part)
