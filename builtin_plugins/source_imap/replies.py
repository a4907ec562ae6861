"""What an IMAP server (RFC 3501) says of folders and messages, from what imaplib makes of it."""

from __future__ import annotations

import base64
import binascii
import imaplib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

_LIST: Final = re.compile(rb'\((?P<flags>[^)]*)\) (?P<delimiter>"(?:\\.|[^"])"|NIL) (?P<name>.*)', re.DOTALL)
_CONTROLS: Final = re.compile(rb"[\x00-\x1f\x7f]")
_SHIFTED: Final = re.compile(r"&([^-&]*)-")
_NUMBER: Final = re.compile(rb"\b(?P<name>UID|RFC822\.SIZE) (?P<value>\d+)")


class ReplyBroken(Exception):
    """The server's answer is not understood."""


@dataclass(frozen=True, slots=True)
class MailFolder:
    """A folder; `quoted` is its name as the server spells it, each byte a character; flags: lower case."""

    quoted: str
    name: str
    flags: frozenset[str]


@dataclass(frozen=True, slots=True)
class MailMessage:
    """A message in a folder: some of its headers; `size` is in bytes."""

    uid: int
    size: int
    received: datetime | None
    headers: bytes


def read_folders(data: Sequence[Any]) -> list[MailFolder]:
    """The answer to LIST. Raises ReplyBroken."""
    folders = []
    for entry in data:
        if entry in (None, b"", b")"):
            continue
        line = entry if isinstance(entry, bytes) else entry[0]
        match = _LIST.match(line)
        if match is None:
            raise ReplyBroken("a folder can't be read")
        raw = match["name"] if isinstance(entry, bytes) else entry[1]  # a literal
        name = _unquoted(raw)
        if _CONTROLS.search(name):  # it can't be asked for
            continue
        flags = frozenset(match["flags"].decode(errors="replace").lower().split())
        spelled = _spelled(name.decode(errors="replace"), match["delimiter"])
        folders.append(MailFolder(quoted(name.decode("latin-1")), spelled, flags))
    if not folders:
        raise ReplyBroken("the server names no folder")
    return folders


def read_messages(data: Sequence[Any]) -> Iterator[MailMessage]:
    """The answer to FETCH with sizes, dates and headers. Raises ReplyBroken."""
    for at, entry in enumerate(data):
        if not isinstance(entry, tuple):
            continue
        after = data[at + 1] if at + 1 < len(data) and isinstance(data[at + 1], bytes) else b""
        about = entry[0] + b" " + after
        numbers = {one["name"]: int(one["value"]) for one in _NUMBER.finditer(about)}
        if b"UID" not in numbers:
            raise ReplyBroken("a message has no number")
        yield MailMessage(numbers[b"UID"], numbers.get(b"RFC822.SIZE", 0), _moment(about), entry[1])


def quoted(name: str) -> str:
    """A name as a quoted string."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unquoted(raw: bytes) -> bytes:
    raw = raw.strip(b" \r\n")
    if raw.startswith(b'"') and raw.endswith(b'"') and len(raw) > 1:
        return re.sub(rb"\\(.)", rb"\1", raw[1:-1])
    return raw


def _spelled(name: str, delimiter: bytes) -> str:
    """A name in Unicode (RFC 3501, section 5.1.3), with slashes between the folders."""
    text = _SHIFTED.sub(lambda part: _shifted(part[1]), name)
    separator = _unquoted(delimiter).decode(errors="replace")
    return text if separator in ("/", "NIL") else text.replace(separator, "/")


def _shifted(code: str) -> str:
    if not code:
        return "&"
    try:
        padded = code.replace(",", "/") + "=" * (-len(code) % 4)
        return base64.b64decode(padded, validate=True).decode("utf-16-be", errors="replace")
    except (binascii.Error, ValueError):
        return f"&{code}-"


def _moment(about: bytes) -> datetime | None:
    try:
        parts = imaplib.Internaldate2tuple(about)
        return None if parts is None else datetime.fromtimestamp(time.mktime(parts), UTC)
    except (KeyError, ValueError, OverflowError, OSError):  # there is no such day
        return None
