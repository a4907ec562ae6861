"""Archives (.zip): a list of what is in them, as a text; the files become separate documents."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from builtin_plugins.rag.parsing.archive import MAX_DIRECTORY_BYTES, ZIP_FAULTS, directory_bytes
from builtin_plugins.rag.parsing.blocks import MOST_ENTRIES, Block, UnparsableDocument
from builtin_plugins.rag.parsing.code_pages import code_page_of_names
from builtin_plugins.rag.parsing.encoding import is_utf_8
from builtin_plugins.rag.parsing.extracting import Extracted

_PORTION_BYTES: Final = 65_536
_MAX_NAME_CHARS: Final = 255
_ZIP: Final = b"PK\x03\x04"
_UTF_8: Final = 0x800  # the flag of a name in UTF-8; without it the code page is that of the writer's system
_DOS: Final = "cp437"
_SAMPLE_BYTES: Final = 16_384
# What archivers write for themselves.
_CHAFF: Final = ("__MACOSX/", ".DS_Store", "Thumbs.db", "desktop.ini")
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def parse(path: Path) -> Iterator[Block]:
    """Yield one block: the names of the archive's files.

    Raises `UnparsableDocument`: `encrypted`, `too_many` for more than 10,000 entries, `corrupt`, `no_text`
    for an archive without files.
    """
    with path.open("rb") as file:
        infos = _files(file)
    code_page = _code_page(infos)
    names = [_name(info, code_page) for info in infos]
    if not names:
        raise UnparsableDocument("no_text", "zip: no files")
    yield Block("Archive of " + (f"{len(names)} files:" if len(names) > 1 else "one file:"))
    for start in range(0, len(names), 50):
        yield Block("\n".join(names[start : start + 50]))


def extract(path: Path) -> Iterator[Extracted]:
    """Yield the files. Links are left out, and archives in the archive."""
    with path.open("rb") as file:
        infos = _files(file)
        code_page = _code_page(infos)
        with zipfile.ZipFile(file) as archive:
            for info in infos:
                yield _extracted(archive, info, _name(info, code_page))


def _extracted(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Extracted:
    if stat.S_ISLNK(info.external_attr >> 16):
        return Extracted(name, b"", "link")
    if info.compress_type not in _METHODS:
        return Extracted(name, b"", "damaged")
    try:
        if _is_archive(archive, info):
            return Extracted(name, b"", "archive")
    except (OSError, *ZIP_FAULTS):
        return Extracted(name, b"", "damaged")
    return Extracted(name, _portions(archive, info))


def _is_archive(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bool:
    """Whether a member is a zip by name and content; office files are zips too, by content alone."""
    if not info.filename.lower().endswith((".zip", ".jar", ".war")):
        return False
    with archive.open(info) as member:
        return member.read(len(_ZIP)) == _ZIP


def _portions(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(info) as member:
        while portion := member.read(_PORTION_BYTES):
            yield portion


def _files(file: BinaryIO) -> list[zipfile.ZipInfo]:
    size = directory_bytes(file)
    if size is None:
        raise UnparsableDocument("corrupt", "zip: no end record")
    if size > MAX_DIRECTORY_BYTES:
        raise UnparsableDocument("too_large", f"zip: directory of {size} bytes")
    try:
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
    except (OSError, *ZIP_FAULTS) as error:
        raise UnparsableDocument("corrupt", f"zip: {error}") from error
    if len(infos) > MOST_ENTRIES:
        raise UnparsableDocument("too_many", f"zip: {len(infos)} entries")
    if any(info.flag_bits & 1 for info in infos):
        raise UnparsableDocument("encrypted", "zip: encrypted member")
    return [info for info in infos if not info.is_dir() and not _is_chaff(info.filename)]


def _is_chaff(name: str) -> bool:
    return name.startswith(_CHAFF[0]) or name.rpartition("/")[2] in _CHAFF


def _name(info: zipfile.ZipInfo, code_page: str) -> str:
    name = info.filename
    if (raw := _raw_name(info)) is not None:
        name = raw.decode(code_page, "replace")
    return name[-_MAX_NAME_CHARS:]


def _raw_name(info: zipfile.ZipInfo) -> bytes | None:
    """The bytes of a name whose encoding the archive does not say, which `zipfile` reads as cp437."""
    told = info.flag_bits & _UTF_8 or info.filename != info.orig_filename
    if told or info.filename.isascii():
        return None
    return info.filename.encode(_DOS, "replace")


def _code_page(infos: list[zipfile.ZipInfo]) -> str:
    """Which code page the names are in: all of them decide together, as a single name is short.

    Some archivers write UTF-8 and do not say so.
    """
    raw = b"\n".join(name for info in infos if (name := _raw_name(info)) is not None)
    return "utf-8" if not raw or is_utf_8(raw) else code_page_of_names(raw[:_SAMPLE_BYTES])
