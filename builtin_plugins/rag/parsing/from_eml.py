"""E-mail as a file (RFC 5322, MIME): the main headers, the message's text, the names of its attachments."""

from __future__ import annotations

import email
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import default as POLICY
from pathlib import Path
from typing import Final

from builtin_plugins.rag.parsing.blocks import Block
from builtin_plugins.rag.parsing.encoding import detect_encoding
from builtin_plugins.rag.parsing.from_html import blocks_of

_HEADERS: Final = ("Subject", "From", "To", "Cc", "Date")
_MAX_HEADER_CHARS: Final = 4_096


def parse(path: Path) -> Iterator[Block]:
    """Yield the headers, then the text (the HTML version where there is no other), then the attachments.

    Attachments are named and not read.
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
        name = part.get_filename()
        if not name and part.get_content_type() == "message/rfc822":
            inner = part.get_payload(0)
            name = str(inner.get("Subject", "")) if isinstance(inner, EmailMessage) else ""
        if name:
            yield " ".join(name.split())[:255]
