"""Photos and scans, read by tesseract: every page of a TIFF, the first frame of an animated WebP."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from builtin_plugins.documents.blocks import MOST_ENTRIES, Block, UnparsableDocument
from builtin_plugins.documents.images.exif import time_taken
from builtin_plugins.documents.images.ocr import Recognizer, begin_page
from builtin_plugins.documents.properties import note_property


class _Layout(NamedTuple):
    """The layout of a TIFF: its number formats, where its first link is, and the bytes of an entry."""

    link: struct.Struct
    entries: struct.Struct
    first: int
    entry: int


_LAYOUTS: Final = {
    sign: _Layout(struct.Struct(link), struct.Struct(count), first, entry)
    for sign, link, count, first, entry in (
        (b"II*\0", "<I", "<H", 4, 12),
        (b"MM\0*", ">I", ">H", 4, 12),
        (b"II+\0", "<Q", "<Q", 8, 20),
        (b"MM\0+", ">Q", ">Q", 8, 20),
    )
}

_CHUNK_HEAD: Final = struct.Struct("<4sI")
_WEBP_CHUNKS: Final = 12
_FRAME_CHUNKS: Final = 16
_ALPHA: Final = 0x10


def parse(path: Path) -> Iterator[Block]:
    """Yield the picture's text, or that of each page of a TIFF; a damaged page is marked.

    Raises what `Recognizer.read` raises; also `corrupt` for a TIFF that is cut off or has only damaged pages.
    """
    data = path.read_bytes()
    note_property("created", time_taken(data))
    picture, recognizer = still(data), Recognizer()
    pages = count_pages(picture)
    if pages == 1:
        yield Block(recognizer.read(picture), recognized=True)
        return
    recognizer.expect(pages)
    damaged = 0
    for page in range(1, pages + 1):
        begin_page(page, pages)
        block = _page(recognizer, picture, page)
        damaged += block.damaged
        yield block
    if damaged == pages:
        raise UnparsableDocument("corrupt", "no page can be read")


def _page(recognizer: Recognizer, picture: bytes, page: int) -> Block:
    try:
        return Block(recognizer.read(picture, page), page, recognized=True)
    except UnparsableDocument as error:
        if error.code != "corrupt":
            raise
        return Block("", page, damaged=True)


def still(picture: bytes) -> bytes:
    """The first frame of an animated WebP as a picture, which tesseract can read; any other as it is.

    A WebP is a list of chunks (RFC 9649, 2.3 to 2.7), each of even length; a frame contains chunks of its
    own, after 16 bytes of position and duration.
    """
    if picture[:4] != b"RIFF" or picture[8:16] != b"WEBPVP8X":
        return picture
    frame = next((data for kind, data in _chunks(picture, _WEBP_CHUNKS) if kind == b"ANMF"), b"")
    inside = list(_chunks(frame, _FRAME_CHUNKS))
    if not inside:
        return picture
    width_and_height = frame[6:12]
    has_alpha = any(kind == b"ALPH" for kind, _ in inside)
    extended = [(b"VP8X", bytes([_ALPHA, 0, 0, 0]) + width_and_height)] if has_alpha else []
    body = b"WEBP" + b"".join(map(_chunk, extended + inside))
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _chunks(data: bytes, start: int) -> Iterator[tuple[bytes, bytes]]:
    while start + _CHUNK_HEAD.size <= len(data):
        kind, size = _CHUNK_HEAD.unpack_from(data, start)
        start += _CHUNK_HEAD.size
        yield kind, data[start : start + size]
        start += size + size % 2


def _chunk(named: tuple[bytes, bytes]) -> bytes:
    kind, data = named
    return _CHUNK_HEAD.pack(kind, len(data)) + data + bytes(len(data) % 2)


def count_pages(picture: bytes) -> int:
    """How many pages a TIFF has (TIFF 6.0, section 2: its directories are a linked list); 1 for others.

    Raises `UnparsableDocument`, `corrupt`, if the list points outside the file, as the following pages are
    lost.
    """
    layout = _LAYOUTS.get(picture[:4])
    if layout is None:
        return 1
    starts, link = set[int](), layout.first
    try:
        while len(starts) <= MOST_ENTRIES:
            (start,) = layout.link.unpack_from(picture, link)
            if start in starts or start == 0:
                break
            (entries,) = layout.entries.unpack_from(picture, start)
            starts.add(start)
            link = start + layout.entries.size + entries * layout.entry
    except (struct.error, OverflowError) as error:
        raise UnparsableDocument(
            "corrupt", f"page {len(starts) + 1} is beyond the end of the file"
        ) from error
    return max(1, len(starts))
