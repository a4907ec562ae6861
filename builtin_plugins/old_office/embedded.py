"""Files that old Office files embed as objects; each becomes a document of its own."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import olefile

from builtin_plugins.documents.api import EmbeddedFile, ExtractedFile, embedded_in, omit

_OBJECT_POOL: Final = "ObjectPool"  # of Word; Excel's objects are at the top
_OF_EXCEL: Final = "MBD"
_SLIDES: Final = "PowerPoint Document"
_RECORD: Final = struct.Struct("<HHI")
_OBJECT: Final = 0x1011  # ExOleObjStg ([MS-PPT], 2.10.34)
_COMPRESSED: Final = 0x10  # its instance: the size of the storage, then the storage itself
_MOST_BYTES: Final = 256 * 1024 * 1024
_FAULTS: Final = (OSError, ValueError, IndexError, zlib.error)


def extract(path: Path) -> Iterator[ExtractedFile]:
    """Yield the embedded files; one without a name is numbered."""
    for number, file in enumerate(_objects(path), start=1):
        if file is not None:
            yield ExtractedFile(file.name or f"object {number}", file.content)


def omit_unread(path: Path) -> None:
    """Count the objects that are no files, such as old workbooks in a text, and can't be read."""
    omit("part", sum(file is None for file in _objects(path)))


def _objects(path: Path) -> Iterator[EmbeddedFile | None]:
    try:
        with olefile.OleFileIO(str(path)) as compound:
            yield from _files_of(compound)
            if compound.exists(_SLIDES):
                for storage in _storages(compound.openstream(_SLIDES).read()):
                    with olefile.OleFileIO(io.BytesIO(storage)) as embedded:
                        yield embedded_in(embedded, [])
    except _FAULTS:  # a damaged directory: the text may still be whole
        return


def _files_of(compound: Any) -> Iterator[EmbeddedFile | None]:
    for storage in compound.listdir(streams=False, storages=True):
        is_words = len(storage) == 2 and storage[0] == _OBJECT_POOL
        if is_words or (len(storage) == 1 and storage[0].startswith(_OF_EXCEL)):
            yield embedded_in(compound, storage)


def _storages(slides: bytes) -> Iterator[bytes]:
    """The storages of the objects of a presentation."""
    at = 0
    while at + _RECORD.size <= len(slides):
        instance, kind, size = _RECORD.unpack_from(slides, at)
        at += _RECORD.size
        if kind == _OBJECT:
            content = slides[at : at + size]
            yield (
                zlib.decompressobj().decompress(content[4:], _MOST_BYTES)
                if instance & _COMPRESSED
                else content
            )
        at += size
