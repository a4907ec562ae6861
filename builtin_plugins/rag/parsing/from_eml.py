"""E-mail as a file (RFC 5322, MIME): the main headers, the message's text, and its attachments."""

from __future__ import annotations

import email
from collections.abc import Iterator
from email.message import EmailMessage, Message
from email.policy import default as POLICY
from pathlib import Path
from typing import Final

from builtin_plugins.rag.parsing.blocks import Block
from builtin_plugins.rag.parsing.encoding import detect_encoding
from builtin_plugins.rag.parsing.extracting import Extracted
from builtin_plugins.rag.parsing.from_html import blocks_of

_HEADERS: Final = ("Subject", "From", "To", "Cc", "Date")
_MAX_HEADER_CHARS: Final = 4_096


def parse(path: Path) -> Iterator[Block]:
    """Yield the headers, then the text (the HTML version where there is no other), then the attachments.

    Attachments are named here and come out as documents of their own, see `extract`.
    """
    with path.open("rb") as file:
        message = email.message_from_binary_file(file, policy=POLICY)
    yield Block("\n".join(_headers(message)))
    body = message.get_body(("plain", "html"))
    if isinstance(body, EmailMessage):
        text = _text(body)
        if body.get_content_subtype() == "html":
            yield from blocks_of([text])
        else:
            yield Block(text)
    names = list(_attachments(message))
    if names:
        yield Block("Attachments: " + ", ".join(names))


def extract(path: Path) -> Iterator[Extracted]:
    """Yield the attachments; a message that was forwarded as one is a file too."""
    with path.open("rb") as file:
        message = email.message_from_binary_file(file, policy=POLICY)
    for part in _outermost(message):
        name = _attachment_name(part)
        if name is None:
            continue
        if part.get_content_type() == "message/rfc822":
            inner = part.get_payload(0)
            content = inner.as_bytes() if isinstance(inner, EmailMessage) else b""
            yield Extracted(name if name.lower().endswith(".eml") else f"{name}.eml", content)
        else:
            payload = part.get_payload(decode=True)
            yield Extracted(name, payload if isinstance(payload, bytes) else b"")


def _outermost(message: Message) -> Iterator[Message]:
    """The parts of this message; those of a message inside it come with that."""
    payload = message.get_payload()
    for part in payload if isinstance(payload, list) else ():
        if not isinstance(part, Message):
            continue
        yield part
        if part.get_content_maintype() == "multipart":
            yield from _outermost(part)


def _headers(message: EmailMessage) -> Iterator[str]:
    for name in _HEADERS:
        value = " ".join(str(message.get(name, "")).split())
        if value:
            yield f"{name}: {value[:_MAX_HEADER_CHARS]}"


def _text(part: EmailMessage) -> str:
    """Return the part's text; a character set that is unknown or wrong gives way to what the bytes show."""
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    named = part.get_content_charset("utf-8")
    try:
        return data.decode(named)
    except (LookupError, UnicodeError):
        return data.decode(detect_encoding(data) or "cp1252", "replace")


def _attachments(message: EmailMessage) -> Iterator[str]:
    """Name what is no part of the text: by file name, a forwarded message by its subject."""
    for part in message.walk():
        name = _attachment_name(part)
        if name:
            yield name


def _attachment_name(part: Message) -> str | None:
    """None for what is part of the text."""
    name = part.get_filename()
    if not name and part.get_content_type() == "message/rfc822":
        inner = part.get_payload(0)
        name = str(inner.get("Subject", "")) or "message" if isinstance(inner, EmailMessage) else None
    return " ".join(name.split())[:255] if name else None
