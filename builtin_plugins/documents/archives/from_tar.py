"""Tar archives (.tar, .tar.gz, .tar.bz2, .tar.xz) and single compressed files (.gz, .bz2, .xz).

Read as a stream: what is skipped is unpacked, too, but never kept.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tarfile import HeaderError, ReadError
from typing import IO, Any, Final, Self, cast

from builtin_plugins.documents.archives.archive import (
    MAX_UNPACKED_BYTES,
    MOST_NAME_CHARS,
    is_chaff,
    listed,
    names_archive,
    portions,
)
from builtin_plugins.documents.blocks import MOST_ENTRIES, Block, UnparsableDocument
from builtin_plugins.documents.detection import is_tar, starts_archive
from builtin_plugins.documents.extraction import ExtractedFile
from builtin_plugins.documents.text.encoding import is_utf_8, read_head

# RecursionError: a long chain of headers that only announce the next one.
_FAULTS: Final = (
    *(tarfile.TarError, OSError, EOFError, ValueError, zlib.error, lzma.LZMAError),
    RecursionError,
)
# The end mark, or nothing at all: some programs write none.
_ENDS: Final = (tarfile.EOFHeaderError, tarfile.EmptyHeaderError)  # type: ignore[attr-defined]
_GZIP: Final = b"\x1f\x8b"
_READERS: Final[dict[bytes, Any]] = {_GZIP: gzip, b"BZh": bz2, b"\xfd7zXZ\0": lzma}
_HEAD_BYTES: Final = 512
_UNNAMED: Final = "file"
# A gzip header (RFC 1952, 2.3): ten bytes, then extra fields and a name, each if its flag is set.
_EXTRA: Final = 4
_NAMED: Final = 8
_FIXED_BYTES: Final = 10


class _Header(tarfile.TarInfo):
    """Raises for any damaged header; `tarfile` takes all but the first for the end of the archive."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        """The next header of a tar. Raises `ReadError`."""
        try:
            return super().fromtarfile(tarfile)
        except _ENDS:
            raise
        except HeaderError as error:
            raise ReadError(str(error)) from error


def parse(path: Path) -> Iterator[Block]:
    """Yield the names of the archive's files.

    Raises `UnparsableDocument`: `too_many` for more than 10,000 entries, `too_large` for more than 512 MB
    unpacked, `corrupt`, `no_text` for an archive without files.
    """
    if not is_tar(path):
        yield from listed([_name_before(path) or _UNNAMED])
        return
    with _opened(path) as archive:
        names = [_name(info) for info in _files(archive)]
    yield from listed(names)


def extract(path: Path) -> Iterator[ExtractedFile]:
    """Yield the files, without links and nested archives. A single compressed file may have no name."""
    if not is_tar(path):
        yield ExtractedFile(_name_before(path), _unzipped(path))
        return
    with _opened(path) as archive:
        for info in _files(archive):
            yield _extracted(archive, info)


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with _unpacked(path) as file, tarfile.open(fileobj=file, mode="r|", tarinfo=_Header) as archive:
            yield archive
    except _FAULTS as error:
        raise UnparsableDocument("corrupt", f"tar: {error}") from error


def _unpacked(path: Path) -> IO[bytes]:
    """Open the unpacked stream. These readers notice a truncated file; tarfile's own takes it for the end."""
    opened = (module.open for sign, module in _READERS.items() if read_head(path).startswith(sign))
    return cast("IO[bytes]", next(opened, open)(path, "rb"))


def _files(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the files and links; each must be read before the next is taken."""
    unpacked = 0
    for number, info in enumerate(archive):
        unpacked += info.size
        if number >= MOST_ENTRIES:
            raise UnparsableDocument("too_many", "tar: too many entries")
        if unpacked > MAX_UNPACKED_BYTES:
            raise UnparsableDocument("too_large", f"tar: unpacks to more than {MAX_UNPACKED_BYTES} bytes")
        if (info.isreg() or info.issym() or info.islnk()) and not is_chaff(info.name):
            yield info


def _name(info: tarfile.TarInfo) -> str:
    name = info.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return name.removeprefix("./")[-MOST_NAME_CHARS:]


def _extracted(archive: tarfile.TarFile, info: tarfile.TarInfo) -> ExtractedFile:
    name = _name(info)
    file = archive.extractfile(info) if info.isreg() else None
    if file is None:
        return ExtractedFile(name, b"", "link")
    if not names_archive(name):
        return ExtractedFile(name, portions(file))
    head = file.read(_HEAD_BYTES)
    return (
        ExtractedFile(name, b"", "archive")
        if starts_archive(head)
        else ExtractedFile(name, _after(head, file))
    )


def _after(head: bytes, file: IO[bytes]) -> Iterator[bytes]:
    yield head
    yield from portions(file)


def _unzipped(path: Path) -> Iterator[bytes]:
    with _unpacked(path) as file:
        yield from portions(file)


def _name_before(path: Path) -> str:
    """The original name of a compressed file, which only gzip may store; else empty. Raises `corrupt`."""
    head = read_head(path)
    if not head.startswith(_GZIP):
        return ""
    if len(head) <= _FIXED_BYTES:
        raise UnparsableDocument("corrupt", "gzip: nothing but a header")
    start = _FIXED_BYTES
    if head[3] & _EXTRA:
        start += 2 + int.from_bytes(head[start : start + 2], "little")
    name = head[start:].partition(b"\0")[0] if head[3] & _NAMED else b""
    return name.decode("utf-8" if is_utf_8(name) else "latin-1")[-MOST_NAME_CHARS:]
