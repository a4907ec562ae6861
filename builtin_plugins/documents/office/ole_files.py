"""Files that Office embeds as objects: as they are, or packed with their name ([MS-OLEDS], 2.3.6)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

WHOLE: Final = ("Package", "CONTENTS")
"""Streams of an object that are whole files: of Office since 2007, and of others, such as PDF."""
PACKED: Final = "\x01Ole10Native"
_START: Final = 6
_KIND: Final = b"\0\0\x03\0"
_SIZE: Final = struct.Struct("<I")


class EmbeddedFile(NamedTuple):
    """A file with its name, empty if it has none."""

    name: str
    content: bytes


def unpacked(native: bytes) -> EmbeddedFile | None:
    """The file that is packed in an object; None if it is something else, such as a picture."""
    name, _, rest = native[_START:].partition(b"\0")
    _, _, rest = rest.partition(b"\0")  # where the file was
    if not name or not rest.startswith(_KIND):
        return None
    try:
        (skipped,) = _SIZE.unpack_from(rest, len(_KIND))
        at = len(_KIND) + _SIZE.size + skipped
        (size,) = _SIZE.unpack_from(rest, at)
    except struct.error:
        return None
    return EmbeddedFile(name.decode("cp1252", "replace"), rest[at + _SIZE.size :][:size])


def embedded_in(compound: Any, storage: Sequence[str]) -> EmbeddedFile | None:
    """The file that an object's storage in a compound file (olefile) holds; None if it is something else."""
    if compound.exists([*storage, PACKED]):
        return unpacked(compound.openstream([*storage, PACKED]).read())
    name = next((name for name in WHOLE if compound.exists([*storage, name])), None)
    return None if name is None else EmbeddedFile("", compound.openstream([*storage, name]).read())
