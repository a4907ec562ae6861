"""Mailboxes (mbox, RFC 4155), as Thunderbird and Google Takeout write them: message after message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Final

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.detection import MAILBOX_LINE
from builtin_plugins.documents.extraction import ExtractedFile
from builtin_plugins.documents.mail.from_eml import blocks_in, files_in, message_of
from builtin_plugins.documents.mail.quotes import Quotes

_SEPARATOR: Final = re.compile(MAILBOX_LINE.encode())
_HEADER: Final = re.compile(rb"[!-9;-~]{1,76}:")
# A line of a message that looks like a separator is escaped with a mark before it.
_MARKED: Final = re.compile(rb"^>(>*+From )", re.MULTILINE)
_LINE_BYTES: Final = 1024 * 1024
_DELETED: Final = 0x8  # a Thunderbird flag: a deleted message stays in the file until it is compacted


def parse(path: Path) -> Iterator[Block]:
    """Yield what `from_eml` yields of each message that isn't deleted, without what it quotes of others
    before it, which is counted.
    """
    quotes = Quotes()
    for message in messages_in(path):
        yield from quotes.without(blocks_in(message))


def extract(path: Path) -> Iterator[ExtractedFile]:
    """Yield the attachments of all messages."""
    for message in messages_in(path):
        yield from files_in(message)


def messages_in(path: Path) -> Iterator[Message]:
    """The messages that aren't deleted, one after the other."""
    for data in _written(path):
        message = message_of(_MARKED.sub(rb"\1", data))
        if not _is_deleted(message):
            yield message


def _written(path: Path) -> Iterator[bytes]:
    """The bytes of each message: a separator follows a blank line, and a header follows it."""
    message: list[bytes] = []
    separator = b""
    follows_blank = True
    with path.open("rb") as file:
        while line := file.readline(_LINE_BYTES):
            if separator and _HEADER.match(line):
                yield from filter(None, [b"".join(message)])
                message = []
            elif separator:
                message.append(separator)
            separator = line if follows_blank and _SEPARATOR.fullmatch(line) else b""
            follows_blank = not line.strip()
            if not separator:
                message.append(line)
    yield from filter(None, [b"".join(message)])


def _is_deleted(message: Message) -> bool:
    try:
        return bool(int(str(message.get("X-Mozilla-Status", "0")), 16) & _DELETED)
    except ValueError:
        return False
