"""What a PDF says about itself: its document information, and for what that lacks, its XMP."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

import pypdfium2
from lxml import etree

from builtin_plugins.documents.office.ooxml import safe_parser
from builtin_plugins.documents.properties import listed, note_property

_START, _END = b"<x:xmpmeta", b"</x:xmpmeta>"
_MAX_BYTES: Final = 256 * 1024
_SEARCHED_BYTES: Final = 64 * 1024 * 1024


def note_pdf_properties(document: pypdfium2.PdfDocument, path: Path) -> None:
    """Note what the document that is open from `path` says about itself."""
    with suppress(pypdfium2.PdfiumError, UnicodeDecodeError):
        metadata = document.get_metadata_dict(skip_empty=True)
        note_property("title", metadata.get("Title"))
        note_property("subject", metadata.get("Subject"))
        note_property("author", *metadata.get("Author", "").split(";"))
        note_property("keywords", *listed(metadata.get("Keywords")))
        note_property("created", metadata.get("CreationDate"))
        note_property("modified", metadata.get("ModDate"))
    with suppress(etree.XMLSyntaxError, ValueError, OSError):
        _note_xmp(path)


def _note_xmp(path: Path) -> None:
    """Note what is in the only packet of XMP (ISO 16684-1); of several, most are of pictures."""
    packets = list(islice(_packets(path), 2))
    if len(packets) != 1:
        return
    root = etree.fromstring(packets[0], safe_parser())
    note_property("title", *_items(root, "title")[:1])
    note_property("author", *_items(root, "creator"))
    note_property("keywords", *_items(root, "subject"))
    note_property("language", *_items(root, "language")[:1])
    note_property("created", _text(root, "CreateDate"))
    note_property("modified", _text(root, "ModifyDate"))


def _text(root: etree._Element, name: str) -> str | None:
    """A simple property, which is an element or an attribute."""
    key = f"{{http://ns.adobe.com/xap/1.0/}}{name}"
    described = (one.get(key) for one in root.iterfind(".//{*}Description"))
    return root.findtext(f".//{key}") or next(filter(None, described), None)


def _items(root: etree._Element, name: str) -> list[str]:
    return [
        one.text or "" for one in root.iterfind(f".//{{http://purl.org/dc/elements/1.1/}}{name}//{{*}}li")
    ]


def _packets(path: Path) -> Iterator[bytes]:
    if not path.stat().st_size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        place = 0
        while (start := data.find(_START, place, _SEARCHED_BYTES)) >= 0:
            end = data.find(_END, start, start + _MAX_BYTES)
            if end < 0:
                return
            place = end + len(_END)
            yield data[start:place]
