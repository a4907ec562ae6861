"""Word documents, templates and their macro variants: the body, then footnotes and endnotes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builtin_plugins.rag.parsing.archive import open_archive
from builtin_plugins.rag.parsing.blocks import Block
from builtin_plugins.rag.parsing.ooxml import main_part, relationships, texts

_NOTES: Final = frozenset({"footnotes", "endnotes"})


def parse(path: Path) -> Iterator[Block]:
    """Yield a block per paragraph and per table; Word's pages exist only on paper, so blocks have none.

    Raises `UnparsableDocument` for a bomb, a password, or a broken package.
    """
    with open_archive(path) as archive:
        main = main_part(archive)
        for text in texts(archive, main):
            yield Block(text)
        for relationship in relationships(archive, main):
            if relationship.kind in _NOTES and relationship.target in archive.NameToInfo:
                for text in texts(archive, relationship.target):
                    yield Block(text)
