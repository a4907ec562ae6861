"""PowerPoint presentations, shows and templates, with or without macros: a slide and its notes are a page."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from builtin_plugins.rag.parsing.archive import open_archive
from builtin_plugins.rag.parsing.blocks import Block
from builtin_plugins.rag.parsing.ooxml import events, main_part, relationships, texts
from builtin_plugins.rag.parsing.ooxml_drawings import in_drawings
from builtin_plugins.rag.parsing.pptx_numbering import Numbering

_RELATIONSHIP_IDS: Final = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id",
    "{http://purl.oclc.org/ooxml/officeDocument/relationships}id",
)


def parse(path: Path) -> Iterator[Block]:
    """Yield the paragraphs and tables of each slide in the order of the show, then the text of its diagrams
    and charts, its notes and comments; each slide is a page.

    Raises `UnparsableDocument` for a bomb, a password, or a broken package.
    """
    with open_archive(path) as archive:
        for page, slide in enumerate(_slides(archive), start=1):
            yield Block("", page)
            for text in texts(archive, slide, Numbering().label):
                yield Block(text, page)
            for text in in_drawings(archive, slide):
                yield Block(text, page)
            for text in chain(_notes(archive, slide), _comments(archive, slide)):
                yield Block(text, page)


def _slides(archive: zipfile.ZipFile) -> list[str]:
    main = main_part(archive)
    targets = {r.id: r.target for r in relationships(archive, main) if r.kind == "slide"}
    with archive.open(main) as file:
        entries = [element for event, element in events(file, ("{*}sldId",)) if event == "end"]
    ids = [entry.get(name) for entry in entries for name in _RELATIONSHIP_IDS]
    return [targets[identifier] for identifier in ids if identifier in targets]


def _notes(archive: zipfile.ZipFile, slide: str) -> Iterator[str]:
    for relationship in relationships(archive, slide):
        if relationship.kind == "notesSlide":
            yield from texts(archive, relationship.target)


def _comments(archive: zipfile.ZipFile, slide: str) -> Iterator[str]:
    """The comments on a slide: paragraphs since PowerPoint 2021, plain text before."""
    parts = dict.fromkeys(one.target for one in relationships(archive, slide) if one.kind == "comments")
    for part in parts:
        if part in archive.NameToInfo:
            yield from texts(archive, part)
            with archive.open(part) as file:
                for event, element in events(file, ("{*}text",)):
                    if event == "end" and element.text and element.text.strip():
                        yield element.text
