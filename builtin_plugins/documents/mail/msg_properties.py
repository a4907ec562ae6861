"""The properties of an Outlook message, and of what is inside it ([MS-OXMSG]), through olefile."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import olefile

from builtin_plugins.documents.blocks import UnparsableDocument
from builtin_plugins.documents.office.ole_files import PACKED, WHOLE, EmbeddedFile, unpacked
from builtin_plugins.documents.text.encoding import decoded_as, detect_encoding

_PROPERTIES: Final = "__properties_version1.0"
_RECIPIENT: Final = "__recip_version1.0_"
_ATTACHMENT: Final = "__attach_version1.0_"
_SUBJECT, _BODY, _CODE_PAGE = 0x0037, 0x1000, 0x3FFD
_UNICODE, _BYTES, _BINARY, _OBJECT = 0x001F, 0x001E, 0x0102, 0x000D
_NUMBER, _TIME = 0x0003, 0x0040
_HEADER_BYTES: Final = (32, 24, 8)
"""Before the fixed-size properties of a message, a message inside it, and an attachment."""
_MAX_BYTES: Final = 64 * 1024 * 1024
_EPOCH: Final = datetime(1601, 1, 1, tzinfo=UTC)

_Place = tuple[str, ...]
_Folders = Mapping[_Place, Sequence[_Place]]


class Properties:
    """The properties of a message or an attachment. Use it as a context manager to close the file.

    Raises `UnparsableDocument`: `corrupt` for a damaged file, `too_large` for a property of more than 64 MB.
    """

    def __init__(self, file: olefile.OleFileIO[Any], folders: _Folders, place: _Place = ()) -> None:
        self._file = file
        self._folders = folders
        self._place = place

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @classmethod
    def of(cls, path: Path) -> Self:
        """Open the message in a file."""
        try:
            file = olefile.OleFileIO(str(path))
        except (OSError, ValueError, IndexError, struct.error) as error:
            raise UnparsableDocument("corrupt", f"msg: {error}") from error
        if not file.exists(_PROPERTIES):
            file.close()
            raise UnparsableDocument("corrupt", "msg: a compound file without message properties")
        return cls(file, _attachments_in(file))

    def attachments(self) -> Iterator[Properties]:
        """The attachments of the message, in order."""
        for place in self._folders.get(self._place, ()):
            yield Properties(self._file, self._folders, place)

    def recipients(self) -> Iterator[Properties]:
        """The recipients of the message, in order."""
        for place in sorted(self._file.listdir(streams=False, storages=True)):
            if tuple(place[:-1]) == self._place and place[-1].startswith(_RECIPIENT):
                yield Properties(self._file, self._folders, tuple(place))

    def number(self, tag: int) -> int | None:
        """A number, None if the property is missing."""
        value = self._fixed.get(tag << 16 | _NUMBER)
        return None if value is None else value & 0xFFFFFFFF

    def message(self, tag: int) -> Properties | None:
        """The message stored inside this attachment, if there is one."""
        place = (*self._place, _name(tag, _OBJECT))
        is_there = self._file.exists([*place, _PROPERTIES])
        return Properties(self._file, self._folders, place) if is_there else None

    def text(self, tag: int) -> str:
        """A string; empty if the property is missing."""
        if (data := self._stream(_name(tag, _UNICODE))) is not None:
            return data.decode("utf-16-le", "replace").rstrip("\0")
        data = self._stream(_name(tag, _BYTES)) or b""
        return decoded_as(self._codec, data).rstrip("\0")

    def data(self, tag: int) -> bytes | None:
        """A binary value, None if the property is missing."""
        return self._stream(_name(tag, _BINARY))

    def embedded(self, tag: int) -> EmbeddedFile | None:
        """The file in an object inside this attachment; None if there is none that others can open."""
        inside = Properties(self._file, self._folders, (*self._place, _name(tag, _OBJECT)))
        whole = next(filter(None, map(inside._stream, WHOLE)), None)
        return EmbeddedFile("", whole) if whole else unpacked(inside._stream(PACKED) or b"")

    def time(self, tag: int) -> datetime | None:
        """A time, None if the property is missing or out of range."""
        ticks = self._fixed.get(tag << 16 | _TIME)
        try:
            return None if ticks is None else _EPOCH + timedelta(microseconds=ticks // 10)
        except OverflowError:
            return None

    @cached_property
    def _codec(self) -> str:
        """The encoding of strings that aren't Unicode: as declared, otherwise guessed from their bytes."""
        if number := self._fixed.get(_CODE_PAGE << 16 | _NUMBER):
            return f"cp{number & 0xFFFFFFFF}"
        samples = (self._stream(_name(tag, _BYTES)) or b"" for tag in (_SUBJECT, _BODY))
        return detect_encoding(b"\n".join(samples)) or "cp1252"

    @cached_property
    def _fixed(self) -> dict[int, int]:
        """The values of fixed size, 16 bytes each, after a header."""
        data = self._stream(_PROPERTIES) or b""
        start = _HEADER_BYTES[0 if not self._place else 1 if len(self._place) % 2 == 0 else 2]
        entries = (struct.unpack_from("<IIQ", data, at) for at in range(start, len(data) - 15, 16))
        return {tag: value for tag, _, value in entries}

    def _stream(self, name: str) -> bytes | None:
        place = [*self._place, name]
        if not self._file.exists(place):
            return None
        if self._file.get_size(place) > _MAX_BYTES:
            raise UnparsableDocument("too_large", f"msg: {name} of {self._file.get_size(place)} bytes")
        try:
            data: bytes = self._file.openstream(place).read()
        except (OSError, IndexError) as error:
            raise UnparsableDocument("corrupt", f"msg: {error}") from error
        return data


def _name(tag: int, kind: int) -> str:
    return f"__substg1.0_{tag:04X}{kind:04X}"


def _attachments_in(file: olefile.OleFileIO[Any]) -> _Folders:
    """The places of the attachments, by the place of their message."""
    attachments = defaultdict[_Place, list[_Place]](list)
    for *place, name in file.listdir(streams=False, storages=True):
        if name.startswith(_ATTACHMENT):
            attachments[tuple(place)].append((*place, name))
    return attachments
