"""Detect the media type of a file by its content; its name only chooses between kinds of text."""

from __future__ import annotations

import bz2
import lzma
import re
import zipfile
import zlib
from pathlib import Path
from typing import Final

from builtin_plugins.rag.parsing.archive import (
    APPLE_PART,
    BOUNDED,
    COMPRESSED,
    MAX_DIRECTORY_BYTES,
    ZIP_FAULTS,
    directory_bytes,
    starts_tar,
)
from builtin_plugins.rag.parsing.encoding import detect_encoding, read_head
from builtin_plugins.rag.parsing.flavours import text_flavour

PDF: Final = "application/pdf"
ZIP: Final = "application/zip"
TAR_TYPES: Final = ("application/x-tar", *COMPRESSED.values())
MSG: Final = "application/vnd.ms-outlook"
# "BM" alone is too short a signature, so the reserved zeros and the size of a known header must follow.
# Without this signature, a mostly white bitmap would pass as a text of "ÿ". "GIF89a" is printable, but the
# seven bytes of sizes and flags that follow it in a picture are not. TIFF comes in both byte orders; with
# `+`, it is a BigTIFF, whose offsets have 64 bits. A portable anymap's head is plain numbers, and what
# follows is no text.
_NUMBER: Final = rb"(?:\s|#[^\r\n]*+[\r\n])++\d++"
_LETTER: Final = (
    rb"(?:[\t\n\r -~]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})"
)
IMAGES: Final = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a(?![\t\n\r -~]{7})"),
    "image/tiff": re.compile(rb"II[*+]\0|MM\0[*+]"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
    "image/bmp": re.compile(rb"BM.{4}\0{4}.{4}[\x0c\x28\x34\x38\x40\x6c\x7c]\0{3}", re.DOTALL),
    "image/x-portable-anymap": re.compile(
        rb"P(?:4|[56]%b)(?:%b){2}\s(?!%b{7}|%b*+\Z)" % (_NUMBER, _NUMBER, _LETTER, _LETTER)
    ),
}
_COMPOUND_FILE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# The names of a message's properties, in the directory of its compound file.
_MESSAGE_PROPERTY: Final = "__substg1.0_".encode("utf-16-le")
_OOXML: Final = "application/vnd.openxmlformats-officedocument"
_MAIN_PARTS: Final = {
    f"{_OOXML}.wordprocessingml.document.main+xml": f"{_OOXML}.wordprocessingml.document",
    f"{_OOXML}.wordprocessingml.template.main+xml": f"{_OOXML}.wordprocessingml.template",
    "application/vnd.ms-word.document.macroEnabled.main+xml": (
        "application/vnd.ms-word.document.macroEnabled.12"
    ),
    "application/vnd.ms-word.template.macroEnabledTemplate.main+xml": (
        "application/vnd.ms-word.template.macroEnabled.12"
    ),
    f"{_OOXML}.presentationml.presentation.main+xml": f"{_OOXML}.presentationml.presentation",
    f"{_OOXML}.presentationml.slideshow.main+xml": f"{_OOXML}.presentationml.slideshow",
    f"{_OOXML}.presentationml.template.main+xml": f"{_OOXML}.presentationml.template",
    "application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml": (
        "application/vnd.ms-powerpoint.presentation.macroEnabled.12"
    ),
    "application/vnd.ms-powerpoint.slideshow.macroEnabled.main+xml": (
        "application/vnd.ms-powerpoint.slideshow.macroEnabled.12"
    ),
    "application/vnd.ms-powerpoint.template.macroEnabled.main+xml": (
        "application/vnd.ms-powerpoint.template.macroEnabled.12"
    ),
    f"{_OOXML}.spreadsheetml.sheet.main+xml": f"{_OOXML}.spreadsheetml.sheet",
    f"{_OOXML}.spreadsheetml.template.main+xml": f"{_OOXML}.spreadsheetml.template",
    "application/vnd.ms-excel.sheet.macroEnabled.main+xml": "application/vnd.ms-excel.sheet.macroEnabled.12",
    "application/vnd.ms-excel.template.macroEnabled.main+xml": (
        "application/vnd.ms-excel.template.macroEnabled.12"
    ),
}
WORD_TYPES: Final = tuple(t for t in _MAIN_PARTS.values() if "word" in t)
POWERPOINT_TYPES: Final = tuple(t for t in _MAIN_PARTS.values() if "powerpoint" in t or "presentationml" in t)
EXCEL_TYPES: Final = tuple(t for t in _MAIN_PARTS.values() if "excel" in t or "spreadsheetml" in t)

EPUB: Final = "application/epub+zip"
ODT_TYPES: Final = (
    "application/vnd.oasis.opendocument.text",
    "application/vnd.oasis.opendocument.text-template",
)
ODS_TYPES: Final = (
    "application/vnd.oasis.opendocument.spreadsheet",
    "application/vnd.oasis.opendocument.spreadsheet-template",
)
ODP_TYPES: Final = (
    "application/vnd.oasis.opendocument.presentation",
    "application/vnd.oasis.opendocument.presentation-template",
)
RTF: Final = "application/rtf"

# EPUB and OpenDocument: this member contains the media type, and another one must exist, too.
_KIND: Final = "mimetype"
_NEEDED: Final = {
    EPUB: "META-INF/container.xml",
    **dict.fromkeys(ODT_TYPES + ODS_TYPES + ODP_TYPES, "content.xml"),
}
_CONTENT_TYPES: Final = "[Content_Types].xml"
_DOCUMENT_PARTS: Final = frozenset({_KIND, _CONTENT_TYPES, APPLE_PART})
_MAX_CONTENT_TYPES_BYTES: Final = 1024 * 1024
# Excludes "<": otherwise each unclosed tag would make the match scan the rest of the file.
_DECLARED: Final = re.compile(rb"<(?:\w+:)?(Override|Default)\b([^<>]*+)>")
_ATTRIBUTE: Final = re.compile(rb"(PartName|Extension|ContentType)\s*=\s*[\"']([^\"']*)[\"']")
# Looks like text by its bytes, but is not for reading.
_POSTSCRIPT: Final = b"%!PS"
_UNPACKED_BYTES: Final = 512
_BZIP2: Final = b"BZh"
# A text may begin with bzip2's signature, so the one of its first block is required, too.
_COMPRESSED_FILE: Final = re.compile(rb"\x1f\x8b|BZh[1-9]1AY&SY|\xfd7zXZ\0")
_BZIP2_BYTES: Final = 1024 * 1024  # the whole first block: nothing can be unpacked before its end
_XZ_MEMORY_BYTES: Final = 128 * 1024 * 1024
# zlib's window bits for a gzip header.
_GZIP_WRAPPER: Final = 31


def detect_media_type(path: Path, filename: str | None = None) -> str | None:
    """Return the media type of the file at `path`, None when no built-in parser reads its kind.

    Reads the first 64 KiB, and of a zip also its directory and content types, nothing more. `filename` only
    breaks ties between kinds of text. Blocks on the disk: call it off the event loop.
    """
    head = read_head(path)
    if head.startswith(b"PK\x03\x04"):  # checked first, as a stored PDF may be among a zip's first bytes
        return _package_type(path)
    if b"%PDF-" in head[:1024]:
        return PDF
    if head.startswith(b"{\\rtf"):
        return RTF
    if head.startswith(_COMPOUND_FILE):
        is_message = _MESSAGE_PROPERTY in head or (filename or "").lower().endswith(".msg")
        return MSG if is_message else None
    if _COMPRESSED_FILE.match(head) or is_tar(path):
        return next((kind for sign, kind in COMPRESSED.items() if head.startswith(sign)), TAR_TYPES[0])
    for media_type, signature in IMAGES.items():
        if signature.match(head):
            return media_type
    if not head or head.startswith(_POSTSCRIPT):
        return None
    codec = detect_encoding(head)
    if codec is None:
        return None
    return text_flavour(head.decode(codec, "replace").removeprefix("\ufeff"), filename)


def is_tar(path: Path) -> bool:
    """Whether a file is a tar, compressed or not."""
    head = read_head(path)
    if head.startswith(_BZIP2):
        with path.open("rb") as file:
            head = file.read(_BZIP2_BYTES)
    return starts_tar(_unpacked(head))


def _unpacked(head: bytes) -> bytes:
    """The first unpacked bytes of a compressed file, none if `head` is too short; `head` of other files."""
    try:
        if head.startswith(b"\x1f\x8b"):
            return zlib.decompressobj(_GZIP_WRAPPER).decompress(head, _UNPACKED_BYTES)
        if head.startswith(_BZIP2):
            return bz2.BZ2Decompressor().decompress(head, _UNPACKED_BYTES)
        if head.startswith(b"\xfd7zXZ\0"):
            return lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES).decompress(head, _UNPACKED_BYTES)
    except (zlib.error, lzma.LZMAError, OSError, EOFError):
        return b""
    return head


def _package_type(path: Path) -> str | None:
    """The media type of a zip, a document or an archive; None for an unsupported document or a broken zip."""
    with path.open("rb") as file:
        try:
            size = directory_bytes(file)
            if size is None or size > MAX_DIRECTORY_BYTES:
                return None
            with zipfile.ZipFile(file) as archive:
                known = _named_type(archive) or _office_type(archive)
                is_document = not _DOCUMENT_PARTS.isdisjoint(archive.NameToInfo)
                return known or (None if is_document else ZIP)
        except (OSError, *ZIP_FAULTS):  # a damaged directory may point before the beginning of the file
            return None


def _named_type(archive: zipfile.ZipFile) -> str | None:
    kind = _start_of(archive, _KIND, 100).decode("ascii", "replace").strip()
    return kind if _NEEDED.get(kind) in archive.NameToInfo else None


def _office_type(archive: zipfile.ZipFile) -> str | None:
    declared = _start_of(archive, _CONTENT_TYPES, _MAX_CONTENT_TYPES_BYTES)
    parts = _parts(declared, set(archive.NameToInfo))
    found = {_MAIN_PARTS[part] for part in parts if part in _MAIN_PARTS}
    return found.pop() if len(found) == 1 else None


def _start_of(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    info = archive.NameToInfo.get(name)
    if info is None or info.compress_type not in BOUNDED:
        return b""
    with archive.open(info) as member:
        return member.read(size)


def _parts(declared: bytes, members: set[str]) -> set[str]:
    """The types of the members: as each is declared, or by its suffix, as .NET declares the main part."""
    own: dict[str, str] = {}
    by_suffix: dict[str, str] = {}
    for kind, written in _DECLARED.findall(declared):
        said = {name: value.decode("utf-8", "replace") for name, value in _ATTRIBUTE.findall(written)}
        names = own if kind == b"Override" else by_suffix
        key = said.get(b"PartName", "").lstrip("/") or said.get(b"Extension", "").lower()
        names[key] = said.get(b"ContentType", "")
    others = {name.rpartition(".")[2].lower() for name in members.difference(own, (_CONTENT_TYPES,))}
    return {own[name] for name in members.intersection(own)} | {
        by_suffix[suffix] for suffix in others.intersection(by_suffix)
    }
