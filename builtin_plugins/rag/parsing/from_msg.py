"""Outlook messages (.msg): the properties of [MS-OXMSG] in a compound file, read through olefile."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import olefile

from builtin_plugins.rag.parsing.blocks import Block, UnparsableDocument
from builtin_plugins.rag.parsing.encoding import detect_encoding
from builtin_plugins.rag.parsing.extracting import Extracted
from builtin_plugins.rag.parsing.from_html import blocks_of, decoded
from builtin_plugins.rag.parsing.smime import is_encrypted

_HEADERS: Final = (("Subject", 0x0037), ("From", 0x0C1A), ("To", 0x0E04), ("Cc", 0x0E03))
_SENDER_ADDRESS: Final = 0x5D01
_BODY, _HTML = 0x1000, 0x1013
_SENT: Final = 0x00390040
_LONG_NAME, _SHORT_NAME, _DATA = 0x3707, 0x3704, 0x3701
_UNICODE, _BYTES, _BINARY = 0x001F, 0x001E, 0x0102
_ATTACHMENT: Final = "__attach_version1.0_"
_PROPERTIES: Final = "__properties_version1.0"
_HEADER_BYTES: Final = 32
_MAX_TEXT_BYTES: Final = 64 * 1024 * 1024
_MAX_HEADER_CHARS: Final = 4_096
_EPOCH: Final = datetime(1601, 1, 1, tzinfo=UTC)


def parse(path: Path) -> Iterator[Block]:
    """Yield the headers, then the text (HTML only if there is no other), then the attachments' names.

    Raises `UnparsableDocument`: `corrupt` for a compound file that is damaged or not a message.
    """
    with _open(path) as file:
        yield Block("\n".join(_headers(file)))
        text = _string(file, (), _BODY)
        if text.strip():
            yield Block(text)
        else:
            yield from blocks_of([_html(file)])
        names = [_name(file, folder) for folder in _attachments(file)]
        if names:
            yield Block("Attachments: " + ", ".join(names))


def extract(path: Path) -> Iterator[Extracted]:
    """Yield the attachments; forwarded Outlook messages are only named in the text, not read."""
    with _open(path) as file:
        for folder in _attachments(file):
            data = _stream(file, (*folder, _place(_DATA, _BINARY)))
            if data is not None:
                locked = is_encrypted(data)
                yield Extracted(_name(file, folder), *((b"", "encrypted") if locked else (data,)))


def _open(path: Path) -> olefile.OleFileIO[Any]:
    try:
        file = olefile.OleFileIO(str(path))
    except (OSError, ValueError, IndexError, struct.error) as error:
        raise UnparsableDocument("corrupt", f"msg: {error}") from error
    if not file.exists(_PROPERTIES):
        raise UnparsableDocument("corrupt", "msg: a compound file without message properties")
    return file


def _headers(file: olefile.OleFileIO[Any]) -> Iterator[str]:
    for name, tag in _HEADERS:
        value = " ".join(_string(file, (), tag).split())
        if name == "From":
            address = _string(file, (), _SENDER_ADDRESS).strip()
            value = f"{value} <{address}>" if address and address != value else value
        if value:
            yield f"{name}: {value[:_MAX_HEADER_CHARS]}"
    if sent := _sent(file):
        yield f"Date: {sent:%Y-%m-%d %H:%M} UTC"


def _sent(file: olefile.OleFileIO[Any]) -> datetime | None:
    """The time of sending, one of the fixed-size properties: 16 bytes each, after a header."""
    data = _stream(file, (_PROPERTIES,)) or b""
    for start in range(_HEADER_BYTES, len(data) - 15, 16):
        tag, _, ticks = struct.unpack_from("<IIQ", data, start)
        if tag == _SENT:
            try:
                return _EPOCH + timedelta(microseconds=ticks // 10)
            except OverflowError:
                return None
    return None


def _html(file: olefile.OleFileIO[Any]) -> str:
    data = _stream(file, (_place(_HTML, _BINARY),))
    return decoded(data) if data else _string(file, (), _HTML)


def _attachments(file: olefile.OleFileIO[Any]) -> list[tuple[str, ...]]:
    found = file.listdir(streams=False, storages=True)
    return [tuple(folder) for folder in found if len(folder) == 1 and folder[0].startswith(_ATTACHMENT)]


def _name(file: olefile.OleFileIO[Any], folder: tuple[str, ...]) -> str:
    name = _string(file, folder, _LONG_NAME) or _string(file, folder, _SHORT_NAME)
    return " ".join(name.split())[:255] or "attachment"


def _string(file: olefile.OleFileIO[Any], folder: tuple[str, ...], tag: int) -> str:
    if (data := _stream(file, (*folder, _place(tag, _UNICODE)))) is not None:
        return data.decode("utf-16-le", "replace").rstrip("\0")
    if (data := _stream(file, (*folder, _place(tag, _BYTES)))) is not None:
        return data.decode(detect_encoding(data) or "cp1252", "replace").rstrip("\0")
    return ""


def _place(tag: int, kind: int) -> str:
    return f"__substg1.0_{tag:04X}{kind:04X}"


def _stream(file: olefile.OleFileIO[Any], place: tuple[str, ...]) -> bytes | None:
    name = list(place)
    if not file.exists(name):
        return None
    if file.get_size(name) > _MAX_TEXT_BYTES:
        raise UnparsableDocument("too_large", f"msg: {place[-1]} of {file.get_size(name)} bytes")
    try:
        data: bytes = file.openstream(name).read()
    except (OSError, IndexError) as error:
        raise UnparsableDocument("corrupt", f"msg: {error}") from error
    return data
