"""Untrusted containers, limited before they are opened and while they are read; helpers for archives."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, BinaryIO, Final
from xml.parsers import expat

from builtin_plugins.documents.blocks import Block, UnparsableDocument

MAX_DIRECTORY_BYTES: Final = 2 * 1024 * 1024
MAX_UNPACKED_BYTES: Final = 512 * 1024 * 1024
MOST_NAME_CHARS: Final = 255
_PROLOG_BYTES: Final = 65_536
_PORTION_BYTES: Final = 65_536
# Archivers' own files; macOS adds a "._name" for each file with extended attributes.
_CHAFF: Final = (".DS_Store", "Thumbs.db", "desktop.ini")
_CHAFF_STARTS: Final = "._"
_CHAFF_FOLDER: Final = "__MACOSX/"
_ARCHIVES: Final = (".zip", ".jar", ".war", ".tar", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz")
APPLE_PART: Final = "Index/Document.iwa"
"""What the zips have that Pages, Numbers and Keynote write: documents in a format that nothing here reads."""
_END: Final = b"PK\x05\x06"
_END_SIZE: Final = 22
_END64: Final = b"PK\x06\x06"
_LOCATOR: Final = b"PK\x06\x07"
_END64_SIZE: Final = 56
_LOCATOR_SIZE: Final = 20

BOUNDED: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compression methods that `zipfile` unpacks up to the requested size only. With any other, a few bytes
can become gigabytes, so it is used only in processes whose memory is limited.
"""

# zipfile raises NotImplementedError for a compression that it does not know, RuntimeError for a password.
ZIP_FAULTS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)
# How zipfile, zlib and lxml (whose XMLSyntaxError is a SyntaxError) report a damaged package.
_DAMAGE: Final = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, SyntaxError)


def is_chaff(name: str) -> bool:
    """Whether a file in an archive only serves the archiver or the file manager."""
    own = name.rpartition("/")[2]
    return name.startswith(_CHAFF_FOLDER) or own.startswith(_CHAFF_STARTS) or own in _CHAFF


def names_archive(name: str) -> bool:
    """Whether a name says that a file is an archive; office files are zips too, by content alone."""
    return name.lower().endswith(_ARCHIVES)


def portions(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the rest of a file in pieces."""
    while portion := file.read(_PORTION_BYTES):
        yield portion


def listed(names: list[str]) -> Iterator[Block]:
    """Yield the text of an archive: its number of files and their names. Raises `no_text` if it has none."""
    if not names:
        raise UnparsableDocument("no_text", "archive: no files")
    yield Block("Archive of " + (f"{len(names)} files:" if len(names) > 1 else "one file:"))
    for start in range(0, len(names), 50):
        yield Block("\n".join(names[start : start + 50]))


def directory_bytes(file: BinaryIO) -> int | None:
    """Return the size of a zip's directory from its end record, None without one.

    `zipfile` loads the whole directory, which takes ten times its size in memory, so this is checked first.
    It looks where `zipfile` looks (PKWARE APPNOTE 4.3.14 to 4.3.16), so both see the same directory.
    """
    file.seek(0, 2)
    size = file.tell()
    file.seek(max(0, size - _END_SIZE - 65_535 - _LOCATOR_SIZE - _END64_SIZE))
    tail = file.read()
    end = len(tail) - _END_SIZE
    if not (end >= 0 and tail.startswith(_END, end) and tail.endswith(b"\x00\x00")):
        end = tail.rfind(_END)
    if end < 0 or end + _END_SIZE > len(tail):
        return None
    wide = end - _LOCATOR_SIZE - _END64_SIZE
    if wide >= 0 and tail.startswith(_END64, wide) and tail.startswith(_LOCATOR, wide + _END64_SIZE):
        return int(struct.unpack_from("<Q", tail, wide + 40)[0])
    return int(struct.unpack_from("<L", tail, end + 12)[0])


class CheckedArchive(zipfile.ZipFile):
    """A zip that refuses a document type declaration in the `checked` members (None: all) once one is opened.
    What nobody opens may contain anything: a web page, a drawing.
    """

    def __init__(self, file: IO[bytes], checked: Collection[str] | None = None) -> None:
        super().__init__(file)
        self._checked = checked
        self._passed = set[str]()

    def open(self, name: Any, *arguments: Any, **options: Any) -> IO[bytes]:
        info = name if isinstance(name, zipfile.ZipInfo) else self.getinfo(name)
        if info.filename not in self._passed and (self._checked is None or info.filename in self._checked):
            with super().open(info) as part:
                _refuse_doctype(part, info)
            self._passed.add(info.filename)
        return super().open(name, *arguments, **options)

    def as_it_is(self, name: str, limit: int) -> bytes:
        """Read a member that is no XML, such as a web page."""
        self._passed.add(name)
        return member(self, name, limit)


@contextmanager
def open_archive(
    path: Path | BinaryIO, *, checked: Collection[str] | None = None
) -> Iterator[CheckedArchive]:
    """Open a document's zip, refusing bombs, passwords and, in the `checked` members (by default, all that
    are opened), document type declarations.

    Raises `UnparsableDocument`: `too_large` when the directory or the declared contents exceed the limits
    (`zipfile` never inflates a member beyond its declared size), `encrypted`, `corrupt`.
    """
    with path.open("rb") if isinstance(path, Path) else nullcontext(path) as file:
        _check_directory(directory_bytes(file))
        try:
            with CheckedArchive(file, checked) as archive:
                _check_members(archive.infolist())
                yield archive
        except _DAMAGE as error:
            raise UnparsableDocument("corrupt", f"package: {error}") from error


def member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """Read a member of at most `limit` bytes. Raises `UnparsableDocument`: `corrupt` when it is missing."""
    info = archive.NameToInfo.get(name)
    if info is None:
        raise UnparsableDocument("corrupt", f"zip: no {name}")
    if info.file_size > limit:
        raise UnparsableDocument("too_large", f"zip: {name} of {info.file_size} bytes")
    return archive.read(info)


def _check_directory(size: int | None) -> None:
    if size is None:
        raise UnparsableDocument("corrupt", "zip: no end record")
    if size > MAX_DIRECTORY_BYTES:
        raise UnparsableDocument("too_large", f"zip: directory of {size} bytes")


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    unpacked = sum(info.file_size for info in members)
    if unpacked > MAX_UNPACKED_BYTES:
        raise UnparsableDocument("too_large", f"zip: unpacks to {unpacked} bytes")
    if any(info.flag_bits & 1 for info in members):
        raise UnparsableDocument("encrypted", "zip: encrypted member")


class _RootReached(Exception):
    """Stops reading at the root element: a document type declaration can only precede it."""


def _refuse_doctype(part: IO[bytes], info: zipfile.ZipInfo) -> None:
    """Refuse entity bombs: Office Open XML forbids document type declarations (ECMA-376-2, 8.1.4).

    Checks a member whatever its name, as names don't tell which members are XML.
    """
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _on_doctype
    parser.StartElementHandler = _on_root
    try:
        parser.Parse(part.read(_PROLOG_BYTES), False)
    except _RootReached:
        return
    except expat.ExpatError:
        # Not XML, or a broken part, which its reader will report if it needs it.
        return
    if info.file_size > _PROLOG_BYTES:
        raise UnparsableDocument("corrupt", f"{info.filename}: no root element in sight")


def _on_doctype(*_: object) -> None:
    raise UnparsableDocument("corrupt", "xml: document type declaration")


def _on_root(*_: object) -> None:
    raise _RootReached
