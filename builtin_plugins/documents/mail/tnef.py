"""Extracts the files that Outlook packs into a winmail.dat ([MS-OXTNEF]), unseen by other programs."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

_SIGNATURE: Final = b"\x78\x9f\x3e\x22"
_START: Final = 6
_ATTRIBUTE: Final = struct.Struct("<BII")
_CHECKSUM_BYTES: Final = 2
_BEGINS, _TITLE, _DATA, _PROPERTIES = 0x00069002, 0x00018010, 0x0006800F, 0x00069005
# PR_ATTACH_LONG_FILENAME with one value, whose length follows; the title may be a short form (REPORT~1.PDF).
_LONG_NAMES: Final = (
    (struct.pack("<HHI", 0x001F, 0x3707, 1), "utf-16-le"),
    (struct.pack("<HHI", 0x001E, 0x3707, 1), "cp1252"),
)
_LENGTH: Final = struct.Struct("<I")
_MOST_NAME_BYTES: Final = 510


def files_in_tnef(data: bytes) -> list[tuple[str, bytes]]:
    """Names and contents; none if the data is something else, or damaged before the first file."""
    files: list[tuple[str, bytes]] = []
    name, content = "", b""
    for tag, value in _attributes(data):
        if tag == _BEGINS:
            files.append((name, content))
            name, content = "", b""
        elif tag == _TITLE:
            name = name or value.split(b"\0")[0].decode("cp1252", "replace")
        elif tag == _DATA:
            content = value
        elif tag == _PROPERTIES:
            name = _long_name(value) or name
    files.append((name, content))
    return [(name or "attachment", content) for name, content in files if content]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = _START
    while data.startswith(_SIGNATURE) and at + _ATTRIBUTE.size <= len(data):
        _, tag, size = _ATTRIBUTE.unpack_from(data, at)
        at += _ATTRIBUTE.size
        if at + size > len(data):
            return
        yield tag, data[at : at + size]
        at += size + _CHECKSUM_BYTES


def _long_name(properties: bytes) -> str:
    for sign, codec in _LONG_NAMES:
        at = properties.find(sign) + len(sign)
        if at >= len(sign) and at + _LENGTH.size <= len(properties):
            (size,) = _LENGTH.unpack_from(properties, at)
            written = properties[at + _LENGTH.size :][: min(size, _MOST_NAME_BYTES)]
            return written.decode(codec, "replace").rstrip("\0")
    return ""
