"""Old Word documents and presentations, read by office_oxide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import office_oxide

from builtin_plugins.documents.api import Block, UnparsableDocument, blocks_of, omit
from builtin_plugins.old_office.embedded import omit_unread


def parse_document(path: Path) -> Iterator[Block]:
    """Yield a block per paragraph, heading, list or portion of a table of a Word document.

    Hidden text is left out. Raises `UnparsableDocument` for a password or a damaged file.
    """
    yield from blocks_of([_opened(path, "doc").to_html()])
    omit_unread(path)


def parse_slides(path: Path) -> Iterator[Block]:
    """Yield the texts of each slide, then its notes; a slide is a page.

    Hidden slides are left out and counted. Raises `UnparsableDocument` for a password or a damaged file.
    """
    slides = _opened(path, "ppt").to_ir()["sections"]
    some_are_shown = any(not slide.get("hidden") for slide in slides)
    for page, slide in enumerate(slides, start=1):
        if slide.get("hidden") and some_are_shown:
            omit("hidden")
            continue
        for part in ("elements", "speaker_notes"):
            for element in slide.get(part) or ():
                text = "\n".join(_lines(element))
                if text.strip():
                    yield Block(text, page)
    omit_unread(path)


def _opened(path: Path, kind: Literal["doc", "ppt"]) -> Any:
    try:
        return office_oxide.Document.from_bytes(path.read_bytes(), kind)
    except office_oxide.OfficeOxideError as error:
        locked = "encrypted" in str(error)
        raise UnparsableDocument("encrypted" if locked else "corrupt", str(error)) from None


def _lines(node: Any) -> Iterator[str]:
    """The lines of an element: paragraphs, list items, and rows of tables with tabs between their cells."""
    if isinstance(node, list):
        for part_node in node:
            yield from _lines(part_node)
    elif isinstance(node, Mapping):
        if node.get("type") in ("heading", "paragraph"):
            yield "".join(run.get("text") or "" for run in node["content"]).strip()
        elif "rows" in node:
            for row in node["rows"]:
                yield "\t".join(" ".join(_lines(cell)) for cell in row["cells"])
        else:
            for part in ("content", "items", "elements", "children"):
                yield from _lines(node.get(part))
