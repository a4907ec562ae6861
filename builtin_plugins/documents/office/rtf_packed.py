"""Unpacks the RTF text of Outlook messages ([MS-OXRTFCP])."""

from __future__ import annotations

import struct
from typing import Final

_HEADER: Final = struct.Struct("<II4sI")
_PACKED, _PLAIN = b"LZFu", b"MELA"
_WINDOW: Final = 4096
_KNOWN: Final = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor "
    rb"MS Sans SerifSymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
"""What the window contains at the beginning."""


def unpacked(data: bytes) -> bytes:
    """The RTF text, as far as the data goes; empty for data of another kind."""
    if len(data) < _HEADER.size:
        return b""
    _, size, kind, _ = _HEADER.unpack_from(data)
    if kind == _PLAIN:
        return data[_HEADER.size :][:size]
    return bytes(_unpack(data, size)) if kind == _PACKED else b""


def _unpack(data: bytes, size: int) -> bytearray:
    """Each bit of a control byte tells whether a byte or a reference to earlier text follows."""
    text = bytearray(_KNOWN)
    at, end = _HEADER.size, len(_KNOWN) + size
    while at < len(data) and len(text) < end:
        control = data[at]
        at += 1
        for bit in range(8):
            if not control >> bit & 1:
                text += data[at : at + 1]
                at += 1
            elif not _repeat(text, data[at : at + 2]):
                return text[len(_KNOWN) : end]
            else:
                at += 2
    return text[len(_KNOWN) : end]


def _repeat(text: bytearray, reference: bytes) -> bool:
    """Append earlier text; False at the end, which is marked by a reference to the current position."""
    if len(reference) < 2:
        return False
    place, length = divmod(int.from_bytes(reference, "big"), 16)
    back = (len(text) - place) % _WINDOW
    if not 0 < back <= len(text):
        return False
    for _ in range(length + 2):
        text.append(text[-back])
    return True
