"""The media type of a file by its content; its name only chooses between flavours of text."""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path
from typing import Final

from builtin_plugins.rag.parsing.archive import MAX_DIRECTORY_BYTES, directory_bytes
from builtin_plugins.rag.parsing.encoding import decode_head, detect_encoding, read_head
from builtin_plugins.rag.parsing.flavours import text_flavour

PDF: Final = "application/pdf"
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

_CONTENT_TYPES: Final = "[Content_Types].xml"
_MAX_CONTENT_TYPES_BYTES: Final = 1024 * 1024
_OVERRIDE: Final = re.compile(rb"<(?:\w+:)?Override\b([^>]*)>")
_ATTRIBUTE: Final = re.compile(rb"(PartName|ContentType)\s*=\s*[\"']([^\"']*)[\"']")
# Text to the eye of a byte counter, but not to a reader: RTF and PostScript.
_NOT_PROSE: Final = (b"{\\rtf", b"%!PS")


def detect_media_type(path: Path, filename: str | None = None) -> str | None:
    """Return the media type of the file at `path`, None when no built-in parser reads its kind.

    Reads the first 64 KiB, and of a zip also its directory and content types, nothing more. `filename` only
    breaks ties between plain text, Markdown and CSV. Blocks on the disk: call it off the event loop.
    """
    head = read_head(path)
    if b"%PDF-" in head[:1024]:
        return PDF
    if head.startswith(b"PK\x03\x04"):
        return _office_type(path)
    if not head or head.startswith(_NOT_PROSE):
        return None
    codec = detect_encoding(head)
    text = decode_head(head, codec) if codec else None
    return None if text is None else text_flavour(text.removeprefix("\ufeff"), filename)


def _office_type(path: Path) -> str | None:
    try:
        parts = _declared_parts(path)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError):
        return None
    found = {_MAIN_PARTS[declared] for declared in parts if declared in _MAIN_PARTS}
    return found.pop() if len(found) == 1 else None


def _declared_parts(path: Path) -> list[str]:
    """Return the content types of the package's parts that are really there; empty for any other zip."""
    with path.open("rb") as file:
        size = directory_bytes(file)
        if size is None or size > MAX_DIRECTORY_BYTES:
            return []
        with zipfile.ZipFile(file) as archive:
            if _CONTENT_TYPES not in archive.NameToInfo:
                return []
            with archive.open(_CONTENT_TYPES) as part:
                declared = part.read(_MAX_CONTENT_TYPES_BYTES)
            return _existing(declared, set(archive.NameToInfo))


def _existing(declared: bytes, members: set[str]) -> list[str]:
    overrides = [dict(_ATTRIBUTE.findall(found)) for found in _OVERRIDE.findall(declared)]
    return [
        kind[b"ContentType"].decode("utf-8", "replace")
        for kind in overrides
        if b"ContentType" in kind
        and kind.get(b"PartName", b"").decode("utf-8", "replace").lstrip("/") in members
    ]
