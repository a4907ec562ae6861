"""Zip archives: their text is a list of the files, which become separate documents."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from builtin_plugins.documents.archives.archive import (
    MAX_DIRECTORY_BYTES,
    MOST_NAME_CHARS,
    ZIP_FAULTS,
    directory_bytes,
    is_chaff,
    listed,
    names_archive,
    portions,
)
from builtin_plugins.documents.blocks import MOST_ENTRIES, Block, UnparsableDocument
from builtin_plugins.documents.detection import starts_archive
from builtin_plugins.documents.extraction import ExtractedFile
from builtin_plugins.documents.text.encoding import code_page_of_names, is_utf_8

_UTF_8: Final = 0x800  # the flag of a UTF-8 name; without it, the code page is that of the writer's system
_DOS: Final = "cp437"
_SAMPLE_BYTES: Final = 16_384
_HEAD_BYTES: Final = 512
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def parse(path: Path) -> Iterator[Block]:
    """Yield the names of the archive's files.

    Raises `UnparsableDocument`: `encrypted`, `too_many` for more than 10,000 entries, `corrupt`, `no_text`
    for an archive without files.
    """
    with path.open("rb") as file:
        infos = _files(file)
    code_page = _code_page(infos)
    yield from listed([_name(info, code_page) for info in infos])


def extract(path: Path) -> Iterator[ExtractedFile]:
    """Yield the files, without links and nested archives."""
    with path.open("rb") as file:
        infos = _files(file)
        code_page = _code_page(infos)
        with zipfile.ZipFile(file) as archive:
            for info in infos:
                yield _extracted(archive, info, _name(info, code_page))


def _extracted(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> ExtractedFile:
    if stat.S_ISLNK(info.external_attr >> 16):
        return ExtractedFile(name, b"", "link")
    if info.compress_type not in _METHODS:
        return ExtractedFile(name, b"", "damaged")
    try:
        if _is_archive(archive, info):
            return ExtractedFile(name, b"", "archive")
    except (OSError, *ZIP_FAULTS):
        return ExtractedFile(name, b"", "damaged")
    return ExtractedFile(name, _portions(archive, info))


def _is_archive(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bool:
    """Whether a member is an archive by name and content."""
    if not names_archive(info.filename):
        return False
    with archive.open(info) as member:
        return starts_archive(member.read(_HEAD_BYTES))


def _portions(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(info) as member:
        yield from portions(member)


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
    return [info for info in infos if not info.is_dir() and not is_chaff(info.filename)]


def _name(info: zipfile.ZipInfo, code_page: str) -> str:
    name = info.filename
    if (raw := _raw_name(info)) is not None:
        name = raw.decode(code_page, "replace")
    return name[-MOST_NAME_CHARS:]


def _raw_name(info: zipfile.ZipInfo) -> bytes | None:
    """The bytes of a name whose encoding the archive doesn't tell; `zipfile` has read them as cp437."""
    is_declared = info.flag_bits & _UTF_8 or info.filename != info.orig_filename
    if is_declared or info.filename.isascii():
        return None
    return info.filename.encode(_DOS, "replace")


def _code_page(infos: list[zipfile.ZipInfo]) -> str:
    """The code page of the names, decided from all of them together, as a single name is short.

    Some archivers write UTF-8 without setting the flag.
    """
    raw = b"\n".join(name for info in infos if (name := _raw_name(info)) is not None)
    return "utf-8" if not raw or is_utf_8(raw) else code_page_of_names(raw[:_SAMPLE_BYTES])
