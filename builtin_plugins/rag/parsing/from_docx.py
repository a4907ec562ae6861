"""Word documents, templates and their macro variants: the body, then charts, notes, headers and so on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from builtin_plugins.rag.parsing.archive import open_archive
from builtin_plugins.rag.parsing.blocks import Block
from builtin_plugins.rag.parsing.docx_numbering import Numbering
from builtin_plugins.rag.parsing.ooxml import main_part, relationships, texts
from builtin_plugins.rag.parsing.ooxml_drawings import in_drawings

_BESIDE: Final = ("footnotes", "endnotes", "comments", "header", "footer")
"""The kinds of parts besides the body, in reading order."""


def parse(path: Path) -> Iterator[Block]:
    """Yield a block per paragraph and per table; Word's pages exist only on paper, so blocks have none.

    Raises `UnparsableDocument` for a bomb, a password, or a broken package.
    """
    with open_archive(path) as archive:
        main = main_part(archive)
        for text in texts(archive, main, Numbering(archive, main).label):
            yield Block(text)
        for text in in_drawings(archive, main):
            yield Block(text)
        said = set[str]()
        for text in _beside(archive, main):
            if text not in said:  # each section has its own headers, mostly identical
                said.add(text)
                yield Block(text)


def _beside(archive: ZipFile, main: str) -> Iterator[str]:
    parts = [one for one in relationships(archive, main) if one.target in archive.NameToInfo]
    for kind in _BESIDE:
        for part in dict.fromkeys(one.target for one in parts if one.kind == kind):
            yield from texts(archive, part)
