"""Photos and scans as pictures: the text that tesseract recognizes. A TIFF may have several pages."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builtin_plugins.rag.parsing.blocks import MOST_ENTRIES, Block
from builtin_plugins.rag.parsing.ocr import Recognizer
from builtin_plugins.rag.parsing.pages import begin_page

_ORDERS: Final = {b"II*\0": "<", b"MM\0*": ">"}
_ENTRY_BYTES: Final = 12


def parse(path: Path) -> Iterator[Block]:
    """Yield the picture's text, of a TIFF with several pages that of each. Raises what `Recognizer.read`
    raises.
    """
    picture, recognizer = path.read_bytes(), Recognizer()
    pages = count_pages(picture)
    if pages == 1:
        yield Block(recognizer.read(picture), recognized=True)
        return
    for page in range(1, pages + 1):
        begin_page(page, pages)
        yield Block(recognizer.read(picture, page), page, recognized=True)


def count_pages(picture: bytes) -> int:
    """How many pages a TIFF has (TIFF 6.0, section 2: its directories are a linked list); 1 for others."""
    order = _ORDERS.get(picture[:4])
    if order is None:
        return 1
    found = set[int]()
    link = 4
    while link + 4 <= len(picture) and len(found) < MOST_ENTRIES:
        (start,) = struct.unpack_from(f"{order}I", picture, link)
        if start in found or not 0 < start <= len(picture) - 2:
            break
        found.add(start)
        (entries,) = struct.unpack_from(f"{order}H", picture, start)
        link = start + 2 + entries * _ENTRY_BYTES
    return max(1, len(found))
