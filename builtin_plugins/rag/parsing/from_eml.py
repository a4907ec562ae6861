"""E-mail as a file (RFC 5322, MIME): the main headers, the message's text, and its attachments."""

from __future__ import annotations

import email
import mimetypes
from collections.abc import Iterator
from email.errors import MessageError
from email.message import Message
from email.policy import EmailPolicy
from pathlib import Path
from typing import Any, Final

from builtin_plugins.rag.parsing.blocks import Block
from builtin_plugins.rag.parsing.encoding import detect_encoding
from builtin_plugins.rag.parsing.extracting import Extracted
from builtin_plugins.rag.parsing.from_html import blocks_of

_HEADERS: Final = ("Subject", "From", "To", "Cc", "Date")
_MAX_HEADER_CHARS: Final = 4_096
_FORWARDED: Final = "message/rfc822"
_HEADER_FAULTS: Final = (
    LookupError,
    AttributeError,
    TypeError,
    ValueError,
    AssertionError,
    UnboundLocalError,
    RecursionError,
    MessageError,
)
"""What Python's header parser raises on broken headers, most of it by accident."""


class _Lenient(EmailPolicy):
    """Reads as raw text what Python's header parser fails on: `To: b@` makes it raise `IndexError`."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        """The header's value as `EmailPolicy` parses it, or as it was written."""
        try:
            return super().header_fetch_parse(name, value)
        except _HEADER_FAULTS:
            return str(value).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


# Leave the headers of a forwarded message unchanged: refolding one would parse it.
_POLICY: Final = _Lenient(refold_source="none")


def parse(path: Path) -> Iterator[Block]:
    """Yield the headers, then all texts in order (of alternatives the best one), then the attachments.

    Attachments are named here and become separate documents, see `extract`.
    """
    message = _read(path)
    yield Block("\n".join(_headers(message)))
    for part in _texts(message, root=True):
        text = _text(part)
        if part.get_content_subtype() == "html":
            yield from blocks_of([text])
        else:
            yield Block(text)
    names = [name for name, _ in _attachments(message)]
    if names:
        yield Block("Attachments: " + ", ".join(names))


def extract(path: Path) -> Iterator[Extracted]:
    """Yield the attachments; a message that was forwarded as one is a file too."""
    for name, part in _attachments(_read(path)):
        if part.get_content_type() == _FORWARDED:
            inner = _inner(part)
            content = inner.as_bytes() if inner else b""
            yield Extracted(name if name.lower().endswith(".eml") else f"{name}.eml", content)
        else:
            yield Extracted(name, _payload(part))


def _read(path: Path) -> Message:
    with path.open("rb") as file:
        return email.message_from_binary_file(file, policy=_POLICY)


def _headers(message: Message) -> Iterator[str]:
    for name in _HEADERS:
        value = " ".join(str(message.get(name, "")).split())
        if value:
            yield f"{name}: {value[:_MAX_HEADER_CHARS]}"


def _texts(part: Message, *, root: bool = False) -> Iterator[Message]:
    """The parts that are the message's text, in order; the root is text even where it has a file name."""
    if _is_attachment(part) and not (root and _is_text(part)):
        return
    if part.get_content_type() == "multipart/alternative":
        yield from _best([list(_texts(child)) for child in _children(part)])
    elif part.is_multipart():
        for child in _children(part):
            yield from _texts(child)
    elif _is_text(part):
        yield part


def _best(alternatives: list[list[Message]]) -> list[Message]:
    """Of the same text in several forms the plain one, else HTML, else any; not one that is blank."""
    written = [texts for texts in alternatives if any(_text(part).strip() for part in texts)]
    for subtype in ("plain", "html"):
        for texts in written:
            if texts[0].get_content_subtype() == subtype:
                return texts
    return written[0] if written else []


def _is_text(part: Message) -> bool:
    """Whether a part is text; so is the content of a multipart message without boundaries."""
    return not part.is_multipart() and part.get_content_maintype() in ("text", "multipart")


def _children(part: Message) -> Iterator[Message]:
    payload = part.get_payload()
    for child in payload if isinstance(payload, list) else ():
        if isinstance(child, Message):
            yield child


def _payload(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _text(part: Message) -> str:
    """Return the part's text; a character set that is unknown or wrong gives way to what the bytes show."""
    data = _payload(part)
    try:
        return data.decode(part.get_content_charset("utf-8"))
    except (LookupError, ValueError):
        return data.decode(detect_encoding(data) or "cp1252", "replace")


def _attachments(message: Message) -> Iterator[tuple[str, Message]]:
    """The attachments with their names; those of a forwarded message belong to that message."""
    if _is_text(message):
        return
    for number, part in enumerate(_attached(message), 1):
        yield _attachment_name(part) or f"attachment {number}{_suffix(part)}", part


def _attached(part: Message) -> Iterator[Message]:
    if _is_attachment(part):
        yield part
    elif part.is_multipart():
        for child in _children(part):
            yield from _attached(child)


def _is_attachment(part: Message) -> bool:
    if part.get_content_maintype() == "multipart":
        return False
    named = part.get_content_type() == _FORWARDED or bool(part.get_filename())
    return named or part.get_content_disposition() == "attachment"


def _attachment_name(part: Message) -> str:
    """The file name, that of a forwarded message by its subject; empty where there is none."""
    name = part.get_filename() or ""
    if not name and (inner := _inner(part)):
        name = str(inner.get("Subject", "")) or "message"
    return " ".join(name.split())[:255]


def _suffix(part: Message) -> str:
    return mimetypes.guess_extension(part.get_content_type()) or ".bin"


def _inner(part: Message) -> Message | None:
    """The message that was forwarded as this part."""
    return next(_children(part), None) if part.get_content_type() == _FORWARDED else None
