"""E-mail as a file (RFC 5322, MIME): the main headers, the message's text, and its attachments."""

from __future__ import annotations

import base64
import codecs
import email
import mimetypes
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from email.errors import MessageError
from email.message import Message
from email.policy import EmailPolicy
from email.utils import getaddresses
from itertools import starmap
from pathlib import Path
from typing import Any, Final

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.extraction import ExtractedFile
from builtin_plugins.documents.mail.format_flowed import unwrapped
from builtin_plugins.documents.mail.quotes import Quotes
from builtin_plugins.documents.mail.smime import is_encrypted, signed_content
from builtin_plugins.documents.mail.tnef import files_in_tnef
from builtin_plugins.documents.markup.from_html import blocks_of, saved_page
from builtin_plugins.documents.properties import note_property
from builtin_plugins.documents.text.encoding import HEAD_BYTES, decoded_as, detect_encoding, is_utf_8

_KINDS: Final = ("plain", "html")
_HEADERS: Final = ("Subject", "From", "To", "Cc", "Date")
_MAX_HEADER_CHARS: Final = 4_096
_FORWARDED: Final = "message/rfc822"
_SIGNED: Final = ("application/pkcs7-mime", "application/x-pkcs7-mime")
_SIGNED_MESSAGE: Final = ("", "smime.p7m")  # its names; a signed file keeps its own name before ".p7m"
_SIGNED_SUFFIX: Final = ".p7m"
_FOR_BROWSERS: Final = frozenset({"css", "javascript", "ecmascript"})  # text in saved web pages (MHTML)
_SAVED_PAGE: Final = "Snapshot-Content-Location"
"""A header of web pages that browsers save in one file."""
_PGP: Final = "multipart/encrypted"
_MOST_SIGNED: Final = 3  # nested signatures
_SIGNATURES: Final = frozenset(
    {"application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature"}
)
_WRAPPERS: Final = ("application/ms-tnef", "application/vnd.ms-tnef")
_WRAPPED: Final = "winmail.dat"
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


_NOT_BASE64: Final = re.compile(rb"[^A-Za-z0-9+/=]+")
_MOST_NOISE: Final = 0.05


class _Lenient(EmailPolicy):
    """Returns as raw text what Python's header parser fails on: `To: b@` makes it raise `IndexError`.

    Non-ASCII bytes, which are invalid in headers but common, are decoded by their detected encoding.
    """

    def header_fetch_parse(self, name: str, value: str) -> Any:
        """The header's value as `EmailPolicy` parses it, or as it was written."""
        written = str(value).encode("utf-8", "surrogateescape")
        is_plain = is_utf_8(written) and b"\x1b" not in written  # the escape of ISO 2022
        text = decoded_as("utf-8" if is_plain else "", written)
        try:
            return super().header_fetch_parse(name, text)
        except _HEADER_FAULTS:
            return text


# Leave the headers of a forwarded message unchanged: refolding one would parse it.
_POLICY: Final = _Lenient(refold_source="none")


def parse(path: Path) -> Iterator[Block]:
    """Yield the headers, then all texts in order (of alternatives the best one), then the attachments. What
    is quoted again and again is yielded once.

    Attachments are named here and become separate documents, see `extract`.
    """
    message = message_of(path.read_bytes())
    _note_properties(message)
    yield from Quotes().without(blocks_in(message))


def _note_properties(message: Message) -> None:
    """Note the headers by which people look for messages."""
    note_property("subject", _header(message, "Subject"))
    note_property("from", _header(message, "From"))
    with suppress(*_HEADER_FAULTS):
        written = [_header(message, name) for name in ("To", "Cc")]
        note_property(
            "to", *(_correspondent(*one) for one in getaddresses(list(filter(None, written))) if any(one))
        )
    note_property("sent", _header(message, "Date"))


def _correspondent(name: str, address: str) -> str:
    return f"{name} <{address}>" if name and address else name or address


def _header(message: Message, name: str) -> str:
    try:
        return str(message.get(name) or "")[:_MAX_HEADER_CHARS]
    except _HEADER_FAULTS:
        return ""


def blocks_in(message: Message) -> Iterator[Block]:
    """Yield what `parse` yields, of one message."""
    yield Block("\n".join(f"{name}: {value}" for name, value in shown_headers(message)))
    yield from body_of(message)
    if names := attachment_names(message):
        yield Block("Attachments: " + ", ".join(names))


def body_of(message: Message) -> Iterator[Block]:
    """Yield the texts of a message alone."""
    for part in texts_of(message):
        text = text_of(part)
        if part.get_content_subtype() == "html":
            yield from saved_page(text) if _SAVED_PAGE in message else blocks_of([text])
        else:
            yield Block(text)


def attachment_names(message: Message) -> list[str]:
    """The names of the files that are attached, with those inside wrappers and signatures."""
    return [inside for name, part in _attachments(message) for inside in _names(name, part)]


def extract(path: Path) -> Iterator[ExtractedFile]:
    """Yield the attachments, including messages that were forwarded as attachments."""
    yield from files_in(message_of(path.read_bytes()))


def files_in(message: Message) -> Iterator[ExtractedFile]:
    """Yield what `extract` yields, of one message."""
    for name, part in _attachments(message):
        if _is_encrypted(part):
            yield ExtractedFile(name, b"", "encrypted")
        elif part.get_content_type() == _FORWARDED:
            inner = _inner(part)
            content = inner.as_bytes() if inner else b""
            yield ExtractedFile(name if name.lower().endswith(".eml") else f"{name}.eml", content)
        else:
            content = payload_of(part)
            yield from starmap(ExtractedFile, _unpacked(part, content) or [(name, content)])


def _names(name: str, part: Message) -> list[str]:
    if _is_encrypted(part):
        return [f"{name} (encrypted)"]
    return [inside for inside, _ in _unpacked(part)] or [name]


def _unpacked(part: Message, content: bytes | None = None) -> list[tuple[str, bytes]]:
    """The files in Outlook's wrapper (`winmail.dat`) or inside a signature; none for any other part."""
    if _is_sealed(part):
        signed = signed_content(payload_of(part) if content is None else content)
        return [(_attachment_name(part)[: -len(_SIGNED_SUFFIX)], signed)] if signed else []
    if part.get_content_type() not in _WRAPPERS and _attachment_name(part).lower() != _WRAPPED:
        return []
    return files_in_tnef(payload_of(part) if content is None else content)


def message_of(data: bytes) -> Message:
    """The message in the bytes of a file, which may begin with a byte order mark or be all UTF-16."""
    head = data[:HEAD_BYTES]
    codec = (detect_encoding(head) if b"\0" in head else None) or ""
    if codec.startswith(("utf-16", "utf-32")):
        data = data.decode(codec, "replace").encode("utf-8", "replace")
    return _opened(email.message_from_bytes(data.removeprefix(codecs.BOM_UTF8), policy=_POLICY))


def _is_sealed(part: Message) -> bool:
    """Whether a part is a file inside its signature (or encrypted), as its name says."""
    name = _attachment_name(part).lower()
    return name.endswith(_SIGNED_SUFFIX) and name not in _SIGNED_MESSAGE


def _is_encrypted(part: Message) -> bool:
    """Whether a part is encrypted, by S/MIME or by PGP/MIME."""
    kind = part.get_content_type()
    return kind == _PGP or ((kind in _SIGNED or _is_sealed(part)) and is_encrypted(payload_of(part)))


def _opened(message: Message) -> Message:
    """The message inside its signatures, with the outer headers; its parts are unwrapped, too."""
    for _ in range(_MOST_SIGNED):
        content = signed_content(payload_of(message)) if message.get_content_type() in _SIGNED else None
        if not content:
            break
        inner: Message = email.message_from_bytes(content, policy=_POLICY)
        for name, value in message.raw_items():
            if name.title() in _HEADERS and name not in inner:
                inner.set_raw(name, value)
        message = inner
    if message.get_content_maintype() == "multipart" and message.is_multipart():
        message.set_payload([part if _is_sealed(part) else _opened(part) for part in _children(message)])
    return message


def shown_headers(message: Message) -> Iterator[tuple[str, str]]:
    """The headers that people read, with their values in one line."""
    for name in _HEADERS:
        value = " ".join(str(message.get(name, "")).split())
        if value:
            yield name, value[:_MAX_HEADER_CHARS]


def texts_of(message: Message, best: str = "plain") -> Iterator[Message]:
    """The parts that are the message's text, in order; of alternatives the `best` subtype, if any."""
    return _texts(message, (best, *(kind for kind in _KINDS if kind != best)), root=True)


def _texts(part: Message, kinds: Sequence[str], *, root: bool = False) -> Iterator[Message]:
    """The root is text even if it has a file name."""
    if _is_encrypted(part) or (_is_attachment(part) and not (root and _is_text(part))):
        return
    if part.get_content_type() == "multipart/alternative":
        yield from _best([list(_texts(child, kinds)) for child in _children(part)], kinds)
    elif part.is_multipart():
        for child in _children(part):
            yield from _texts(child, kinds)
    elif _is_text(part) and (root or part.get_content_subtype() not in _FOR_BROWSERS):
        yield part


def _best(alternatives: list[list[Message]], kinds: Sequence[str]) -> list[Message]:
    """Of several forms of the same text the first of the kinds, else any; blank ones are skipped."""
    written = [texts for texts in alternatives if any(text_of(part).strip() for part in texts)]
    for subtype in kinds:
        for texts in written:
            if texts[0].get_content_subtype() == subtype:
                return texts
    return written[0] if written else []


def _is_text(part: Message) -> bool:
    """Whether a part is text; a multipart message without boundaries counts as text, too."""
    return not part.is_multipart() and part.get_content_maintype() in ("text", "multipart")


def _children(part: Message) -> Iterator[Message]:
    payload = part.get_payload()
    for child in payload if isinstance(payload, list) else ():
        if isinstance(child, Message):
            yield child


def payload_of(part: Message) -> bytes:
    """The decoded bytes of a part."""
    if _encoding_of(part) == "base64" and (written := _written(part)):
        return _from_base64(written)
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _written(part: Message) -> bytes:
    """The undecoded bytes of a part; none if it consists of parts itself."""
    plain = copy(part)
    del plain["Content-Transfer-Encoding"]
    written = plain.get_payload(decode=True)
    return written if isinstance(written, bytes) else b""


def _encoding_of(part: Message) -> str:
    return str(part.get("Content-Transfer-Encoding", "")).strip().lower()


def _from_base64(data: bytes) -> bytes:
    """Decode as much base64 as possible, even if cut off or damaged, when Python gives up.

    Text that was never encoded stays as it is, whatever its header says.
    """
    encoded = data[: _end_of_base64(data)]
    if _is_noisy(encoded):
        return data
    parts = (part[: len(part) - (len(part) % 4 == 1)] for part in _NOT_BASE64.sub(b"", encoded).split(b"="))
    return b"".join(base64.b64decode(part + b"=" * (-len(part) % 4)) for part in parts)


def _end_of_base64(data: bytes) -> int:
    """The start of plain text that a mailing list or virus scanner added below the encoded part."""
    end = place = 0
    for line in data.splitlines(keepends=True):
        if end and _is_noisy(line):
            return end
        place += len(line)
        end = place if line.rstrip().endswith(b"=") else end
    return len(data)


def _is_noisy(data: bytes) -> bool:
    noise = sum(len(run) for line in data.splitlines() for run in _NOT_BASE64.findall(line.strip()))
    return noise > _MOST_NOISE * len(data)


def text_of(part: Message) -> str:
    """The decoded text of a part."""
    text = decoded_as(str(part.get_content_charset("utf-8")), payload_of(part))
    is_flowed = part.get_content_subtype() == "plain" and str(part.get_param("format")).lower() == "flowed"
    return unwrapped(text, is_split=str(part.get_param("delsp")).lower() == "yes") if is_flowed else text


def _attachments(message: Message) -> Iterator[tuple[str, Message]]:
    """The attachments with their names; attachments of a forwarded message belong to that message."""
    if _is_text(message):
        return
    for number, part in enumerate(_attached(message), 1):
        yield _attachment_name(part) or f"attachment {number}{_suffix(part)}", part


def _attached(part: Message) -> Iterator[Message]:
    if _is_attachment(part) or _is_encrypted(part):
        yield part
    elif part.is_multipart():
        for child in _children(part):
            yield from _attached(child)


def _is_attachment(part: Message) -> bool:
    if part.get_content_maintype() == "multipart" or part.get_content_type() in _SIGNATURES:
        return False
    named = part.get_content_type() == _FORWARDED or bool(part.get_filename())
    return named or part.get_content_disposition() == "attachment"


def _attachment_name(part: Message) -> str:
    """The file name; the subject for a forwarded message; empty if there is none."""
    name = part.get_filename() or ""
    if not name and (inner := _inner(part)):
        name = str(inner.get("Subject", "")) or "message"
    if part.get_content_type() == _PGP:
        name = next(filter(None, map(_attachment_name, _children(part))), "message.asc")
    return " ".join(name.split())[:255]


def _suffix(part: Message) -> str:
    return mimetypes.guess_extension(part.get_content_type()) or ".bin"


def _inner(part: Message) -> Message | None:
    """The message that was forwarded as this part. Some programs encode it, against the standard."""
    inner = next(_children(part), None) if part.get_content_type() == _FORWARDED else None
    encoding = _encoding_of(part)
    if inner is None or inner.keys() or encoding not in ("base64", "quoted-printable"):
        return inner
    encoded = Message()
    encoded["Content-Transfer-Encoding"] = encoding
    encoded.set_payload(inner.get_payload())
    return email.message_from_bytes(payload_of(encoded), policy=_POLICY)
