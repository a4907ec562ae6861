"""When a picture was taken (Exif 2.3, 4.6). Nothing else is read: no place, no camera, no serial number."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

_EXIF: Final = b"Exif\0\0"
_MOST_SEGMENTS: Final = 100
_MOST_ENTRIES: Final = 500
_ASCII: Final = 2
_EXIF_DIRECTORY: Final = 0x8769
_CHANGED, _TAKEN, _ZONE = 0x0132, 0x9003, 0x9011
_ORDERS: Final = {b"II*\0": "<", b"MM\0*": ">"}


def time_taken(picture: bytes) -> str | None:
    """When a picture was taken, as `2026:03:01 09:30:00`, or in ISO 8601 if the zone is known; None if it
    doesn't say.
    """
    for data in _exif_in(picture):
        try:
            return _time_in(data)
        except (struct.error, UnicodeDecodeError):
            return None
    return None


def _exif_in(picture: bytes) -> Iterator[bytes]:
    """The Exif data of a TIFF, JPEG, PNG or WebP."""
    if picture[:4] in _ORDERS:
        yield picture
    elif picture[:2] == b"\xff\xd8":
        yield from _in_jpeg(picture)
    elif picture[:8] == b"\x89PNG\r\n\x1a\n":
        yield from _in_chunks(picture, 8, ">I4s", b"eXIf", checksum=4)
    elif picture[:4] == b"RIFF" and picture[8:12] == b"WEBP":
        yield from _in_chunks(picture, 12, "<4sI", b"EXIF")


def _in_jpeg(picture: bytes) -> Iterator[bytes]:
    place = 2
    for _ in range(_MOST_SEGMENTS):
        if len(picture) < place + 4 or picture[place] != 0xFF or picture[place + 1] == 0xDA:
            return
        (size,) = struct.unpack_from(">H", picture, place + 2)
        content = picture[place + 4 : place + 2 + size]
        if picture[place + 1] == 0xE1 and content.startswith(_EXIF):
            yield content[len(_EXIF) :]
        place += 2 + size


def _in_chunks(
    picture: bytes, place: int, head: str, chunk_kind: bytes, checksum: int = 0
) -> Iterator[bytes]:
    for _ in range(_MOST_SEGMENTS):
        if len(picture) < place + 8:
            return
        first, second = struct.unpack_from(head, picture, place)
        kind, size = (second, first) if isinstance(second, bytes) else (first, second)
        if kind == chunk_kind:
            yield picture[place + 8 : place + 8 + size].removeprefix(_EXIF)
        place += 8 + size + (checksum or size % 2)


def _time_in(data: bytes) -> str | None:
    order = _ORDERS.get(data[:4])
    if order is None:
        return None
    main = _directory(data, order, *struct.unpack_from(f"{order}I", data, 4))
    exif = _directory(data, order, main[_EXIF_DIRECTORY][1]) if _EXIF_DIRECTORY in main else {}
    time = _text(data, exif.get(_TAKEN)) or _text(data, main.get(_CHANGED))
    if not time:
        return None
    zone = _text(data, exif.get(_ZONE)) if _TAKEN in exif else ""
    return f"{time[:10].replace(':', '-')}T{time[11:19]}{zone}" if zone else time


def _directory(data: bytes, order: str, start: int) -> dict[int, tuple[int, int, int]]:
    """The entries of a directory: by tag the number of values, the value or its place, and the entry's."""
    (count,) = struct.unpack_from(f"{order}H", data, start)
    entries = {}
    for number in range(min(count, _MOST_ENTRIES)):
        place = start + 2 + 12 * number
        tag, kind, length, value = struct.unpack_from(f"{order}HHII", data, place)
        if kind == _ASCII or tag == _EXIF_DIRECTORY:
            entries[tag] = (length, value, place + 8)
    return entries


def _text(data: bytes, entry: tuple[int, int, int] | None) -> str:
    if entry is None or entry[0] > 64:
        return ""
    length, value, place = entry
    start = place if length <= 4 else value
    return data[start : start + length].rstrip(b"\0 ").decode("ascii")
