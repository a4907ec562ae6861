"""The pieces that archives consist of: at most 4 MiB, compressed, named by the SHA-256 of their content.

What two archives share is stored once. A piece that is read is verified by its name, and decompression never
exceeds the limit.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator

from builtin_plugins.platform_ops.backup.compression import Damaged, compressed, decompressed
from builtin_plugins.platform_ops.backup.errors import ArchiveBroken
from builtin_plugins.platform_ops.backup.storage import BackupStore

PIECE = 4 * 1024 * 1024
"""The maximum of bytes in a piece, before compression."""
FOLDER = "objects"
_SMALLEST = 256 * 1024
# What compression may add to incompressible data.
_STORED = PIECE + 64 * 1024


class Objects:
    """The pieces at one place. Call `load_sizes` before writing; not for several threads at once."""

    def __init__(self, place: BackupStore) -> None:
        self._place = place
        self._sizes: dict[str, int] = {}
        self.written = 0

    def load_sizes(self) -> None:
        """List what is already stored, to avoid writing it again."""
        self._sizes = {_digest(entry.name): entry.size for entry in self._place.entries(FOLDER)}

    def stored(self) -> set[str]:
        """The names of all stored pieces."""
        return {_digest(entry.name) for entry in self._place.entries(FOLDER)}

    def size_of(self, digests: Iterable[str]) -> int:
        """The bytes that these pieces take at the place."""
        return sum(self._sizes.get(digest, 0) for digest in set(digests))

    def write(self, piece: bytes) -> str:
        """Store a piece unless it is there; returns its name."""
        digest = hashlib.sha256(piece).hexdigest()
        if digest not in self._sizes:
            stored = compressed(piece)
            self._place.write(_name(digest), stored)
            self._sizes[digest] = len(stored)
            self.written += len(stored)
        return digest

    def read(self, digest: str) -> bytes:
        """A piece, verified. Raises ArchiveBroken."""
        try:
            stored = self._place.read(_name(digest), _STORED)
        except FileNotFoundError:
            raise ArchiveBroken(
                f"the piece {digest[:12]}… is missing from '{FOLDER}', the folder next to the archive"
            ) from None
        try:
            piece = decompressed(stored, PIECE)
        except Damaged:
            raise ArchiveBroken(f"the piece {digest[:12]}… is damaged") from None
        if hashlib.sha256(piece).hexdigest() != digest:
            raise ArchiveBroken(f"the piece {digest[:12]}… is damaged")
        return piece

    def read_all(self, digests: Iterable[str]) -> Iterator[bytes]:
        """The pieces of a stored object, in order. Raises ArchiveBroken."""
        return map(self.read, digests)

    def remove_all_but(self, digests: set[str]) -> int:
        """Remove pieces that no archive needs any more; returns how many there were."""
        unused = [entry.name for entry in self._place.entries(FOLDER) if _digest(entry.name) not in digests]
        for name in unused:
            self._place.remove(name)
        return len(unused)


def _name(digest: str) -> str:
    return f"{FOLDER}/{digest[:2]}/{digest[2:]}.zst"


def _digest(name: str) -> str:
    return "".join(name.removeprefix(f"{FOLDER}/").removesuffix(".zst").split("/"))


class LineCutter:
    """Cuts a growing text into pieces, at places that depend on the surrounding lines.

    An added or removed line only changes the piece that it is in; later pieces stay the same.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._waiting = bytearray()
        self.pieces: list[str] = []

    def add(self, line: bytes) -> None:
        """Append a line."""
        self._waiting += line
        if len(self._waiting) >= _SMALLEST and zlib.crc32(line) & 0xFF == 0:
            self._cut(len(self._waiting))
        while len(self._waiting) >= PIECE:
            self._cut(PIECE)

    def end(self) -> list[str]:
        """Store the rest; returns all pieces."""
        if self._waiting:
            self._cut(len(self._waiting))
        return self.pieces

    def _cut(self, size: int) -> None:
        self.pieces.append(self._objects.write(bytes(self._waiting[:size])))
        del self._waiting[:size]


def lines_of(pieces: Iterable[bytes], longest: int) -> Iterator[bytes]:
    """The lines of a text in pieces, without line breaks. Raises ArchiveBroken past `longest` bytes."""
    waiting = b""
    for piece in pieces:
        *lines, waiting = (waiting + piece).split(b"\n")
        yield from lines
        if len(waiting) > longest:
            raise ArchiveBroken("a row is too long")
    if waiting:
        raise ArchiveBroken("a table ends in the middle of a row")
