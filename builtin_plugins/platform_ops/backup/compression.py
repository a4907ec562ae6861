"""Zstandard (RFC 8878) for pieces of archives: Python's own module from 3.14, its backport before."""

from __future__ import annotations

import sys
from types import ModuleType

_LEVEL = 3


class Damaged(Exception):
    """The data is not a complete frame, or its content is too large."""


def compressed(content: bytes) -> bytes:
    """One frame with a checksum."""
    zstd = _library()
    level, checksum = zstd.CompressionParameter.compression_level, zstd.CompressionParameter.checksum_flag
    return bytes(zstd.compress(content, options={level: _LEVEL, checksum: 1}))


def decompressed(frame: bytes, most: int) -> bytes:
    """The content of exactly one complete frame, with its checksum verified; at most `most` bytes.

    Raises Damaged.
    """
    zstd = _library()
    try:
        size = zstd.get_frame_info(frame).decompressed_size
        if size is not None and size > most:
            raise Damaged("larger than it may be")
        reader = zstd.ZstdDecompressor()
        content = bytes(reader.decompress(frame, max_length=most + 1))  # one more, to read the frame's end
    except zstd.ZstdError as error:
        raise Damaged(str(error)) from None
    if not reader.eof or reader.unused_data or len(content) > most:
        raise Damaged("not one whole frame")
    return content


def _library() -> ModuleType:
    """Loaded when a backup is first made or read."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    module: ModuleType = zstd
    return module
