"""PowerPoint presentations, shows and templates, with or without macros: a slide and its notes are a page."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from builtin_plugins.documents.archives.archive import open_archive
from builtin_plugins.documents.blocks import Block, first_line, with_first_line
from builtin_plugins.documents.office.ooxml import events, main_part, relationships, texts
from builtin_plugins.documents.office.ooxml_drawings import in_drawings
from builtin_plugins.documents.office.package_properties import note_core_properties
from builtin_plugins.documents.office.pptx_numbering import PptxNumbering
from builtin_plugins.documents.omissions import omit

_RELATIONSHIP_IDS: Final = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id",
    "{http://purl.oclc.org/ooxml/officeDocument/relationships}id",
)
_TITLES: Final = ("title", "ctrTitle")


def parse(path: Path) -> Iterator[Block]:
    """Yield the paragraphs and tables of each slide in the order of the show, then the text of its diagrams
    and charts, its notes and comments; each slide is a page. Hidden slides are left out and counted.

    Raises `UnparsableDocument` for a bomb, a password, or a broken package.
    """
    with open_archive(path) as archive:
        note_core_properties(archive)
        slides = _slides(archive)
        hidden = {slide for slide in slides if _is_hidden(archive, slide)}
        for page, slide in enumerate(slides, start=1):
            if slide in hidden and len(hidden) < len(set(slides)):
                omit("hidden")
                continue
            yield Block("", page)
            for block in _titled([*texts(archive, slide, PptxNumbering().label)], _title(archive, slide)):
                yield block._replace(page=page)
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


def _title(archive: zipfile.ZipFile, slide: str) -> str:
    """The title of a slide, or empty."""
    with archive.open(slide) as file:
        for event, shape in events(file, ("{*}sp",)):
            kind = shape.find("{*}nvSpPr/{*}nvPr/{*}ph") if event == "end" else None
            if kind is not None and kind.get("type") in _TITLES:
                return _bare("".join(text.text or " " for text in shape.iter("{*}t", "{*}br")))
    return ""


def _titled(paragraphs: Sequence[str], title: str) -> Iterator[Block]:
    """The texts of a slide, its title as a heading, or else its first line."""
    titles = [at for at, text in enumerate(paragraphs) if title and _bare(text) == title]
    heading = next(chain(titles, (at for at, text in enumerate(paragraphs) if first_line(text))), None)
    for at, text in enumerate(paragraphs):
        yield with_first_line(Block(text)) if at == heading else Block(text)


def _bare(text: str) -> str:
    return " ".join(text.split())


def _is_hidden(archive: zipfile.ZipFile, slide: str) -> bool:
    """Whether a slide is not part of the show."""
    with archive.open(slide) as file:
        root = next((element for _, element in events(file, ("{*}sld",))), None)
        return root is not None and root.get("show") in ("0", "false")


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
