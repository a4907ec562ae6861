"""Outlook messages (.msg): the headers, the message's text, and its attachments."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import EmailMessage, Message
from email.utils import format_datetime
from pathlib import Path
from typing import Final

from builtin_plugins.documents.blocks import Block, UnparsableDocument
from builtin_plugins.documents.extraction import ExtractedFile
from builtin_plugins.documents.mail.from_eml import blocks_in, files_in, message_of
from builtin_plugins.documents.mail.msg_properties import Properties
from builtin_plugins.documents.mail.quotes import Quotes
from builtin_plugins.documents.mail.smime import is_encrypted, signed_content
from builtin_plugins.documents.markup.from_html import blocks_of, decoded
from builtin_plugins.documents.office.from_rtf import blocks_of as blocks_of_rtf
from builtin_plugins.documents.office.rtf_packed import unpacked
from builtin_plugins.documents.properties import note_property

_HEADERS: Final = (("Subject", 0x0037), ("From", 0x0C1A), ("To", 0x0E04), ("Cc", 0x0E03))
_CLASS, _SUBJECT = 0x001A, 0x0037
_SIGNED: Final = ".SMIME"
_SENDER_ADDRESSES: Final = (0x5D01, 0x0C1F)
_RECIPIENT_ADDRESSES: Final = (0x39FE, 0x3003)
_RECIPIENT_KIND: Final = 0x0C15
_RECIPIENTS: Final = {"To": 1, "Cc": 2}
_BODY, _HTML, _RTF = 0x1000, 0x1013, 0x1009
_SENT: Final = 0x0039
_LONG_NAME, _SHORT_NAME, _SHOWN_NAME, _DATA = 0x3707, 0x3704, 0x3001, 0x3701
_MAX_HEADER_CHARS: Final = 4_096
_LEVELS: Final = 2  # of messages inside each other; deeper ones are not extracted (see `services.members`)


def parse(path: Path) -> Iterator[Block]:
    """Yield the headers, then the text (plain, else HTML, else RTF), then the attachments' names. RTF that
    can't be read is counted as damaged. What is quoted again and again is yielded once.

    Raises `UnparsableDocument`: `corrupt` for a compound file that is damaged or not a message.
    """
    yield from Quotes().without(_blocks(path))


def _blocks(path: Path) -> Iterator[Block]:
    with Properties.of(path) as message:
        sent = message.time(_SENT)
        _note_properties(message)
        date = [f"Date: {sent:%Y-%m-%d %H:%M} UTC"] if sent else []
        yield Block("\n".join([*(f"{name}: {value}" for name, value in _headers(message)), *date]))
        if signed := _signed(message):
            yield from blocks_in(signed)
            return
        yield from _text(message)
        names = [_name(attachment) for attachment in message.attachments()]
        if names:
            yield Block("Attachments: " + ", ".join(names))


def _note_properties(message: Properties) -> None:
    """Note the headers by which people look for messages."""
    headers = dict(_headers(message))
    note_property("subject", headers.get("Subject"))
    note_property("from", headers.get("From"))
    note_property("to", *f"{headers.get('To', '')};{headers.get('Cc', '')}".split(";"))
    sent = message.time(_SENT)
    note_property("sent", sent.isoformat() if sent else None)


def extract(path: Path) -> Iterator[ExtractedFile]:
    """Yield the attachments, with attached messages as e-mails."""
    with Properties.of(path) as message:
        if signed := _signed(message):
            yield from files_in(signed)
            return
        for attachment in message.attachments():
            data = attachment.data(_DATA)
            if data is not None:
                locked = is_encrypted(data)
                yield ExtractedFile(_name(attachment), *((b"", "encrypted") if locked else (data,)))
            elif inner := attachment.message(_DATA):
                yield ExtractedFile(_name(attachment), _as_mail(inner))
            elif embedded := attachment.embedded(_DATA):
                yield ExtractedFile(_name(attachment), embedded.content)


def as_mail(path: Path) -> bytes:
    """The message at `path` as an e-mail, formatted if it is. Raises what `parse` raises."""
    with Properties.of(path) as message:
        signed = _signed(message)
        return signed.as_bytes() if signed else _as_mail(message, formatted=True)


def _signed(message: Properties) -> Message | None:
    """The e-mail inside a signed message, whose only attachment it is; None for any other message."""
    if _SIGNED not in message.text(_CLASS).upper():
        return None
    data = next(filter(None, (attachment.data(_DATA) for attachment in message.attachments())), b"")
    return None if is_encrypted(data) else message_of(signed_content(data) or data)


def _headers(message: Properties) -> Iterator[tuple[str, str]]:
    for name, tag in _HEADERS:
        value = " ".join(message.text(tag).split())
        if name == "From":
            address = _sender_address(message)
            value = f"{value} <{address}>" if address not in ("", value) else value
        elif name in _RECIPIENTS:
            value = "; ".join(_recipients(message, _RECIPIENTS[name])) or value
        if value:
            yield name, value[:_MAX_HEADER_CHARS]


def _recipients(message: Properties, kind: int) -> Iterator[str]:
    """The recipients of a kind, each with the e-mail address; none if no address is known."""
    people = [
        (" ".join(recipient.text(_SHOWN_NAME).split()), _address(recipient, _RECIPIENT_ADDRESSES))
        for recipient in message.recipients()
        if recipient.number(_RECIPIENT_KIND) == kind
    ]
    if any(address for _, address in people):
        for name, address in people:
            yield f"{name} <{address}>" if address not in ("", name) and name else name or address


def _sender_address(message: Properties) -> str:
    """The sender's e-mail address; addresses inside an organization may be of another kind."""
    return _address(message, _SENDER_ADDRESSES)


def _address(person: Properties, tags: tuple[int, ...]) -> str:
    addresses = (person.text(tag).strip() for tag in tags)
    return next((address for address in addresses if "@" in address), "")


def _text(message: Properties) -> Iterator[Block]:
    text = message.text(_BODY)
    if text.strip():
        yield Block(text)
    elif html := _html(message):
        yield from blocks_of([html])
    elif rtf := unpacked(message.data(_RTF) or b""):
        try:
            yield from blocks_of_rtf(rtf)
        except UnparsableDocument:
            yield Block("", damaged=True)


def _html(message: Properties) -> str:
    data = message.data(_HTML)
    return decoded(data) if data else message.text(_HTML)


def _name(attachment: Properties) -> str:
    """The file name; for a message, its subject."""
    inner = attachment.message(_DATA)
    embedded = None if inner else attachment.embedded(_DATA)
    tags = (_SHOWN_NAME,) if inner else (_LONG_NAME, _SHORT_NAME, _SHOWN_NAME)
    own = inner.text(_SUBJECT) if inner else embedded.name if embedded else ""
    name = own or next(filter(None, map(attachment.text, tags)), "")
    suffix = ".eml" if inner else ""
    return (" ".join(name.split())[:250] or ("message" if inner else "attachment")) + suffix


def _as_mail(message: Properties, level: int = 1, *, formatted: bool = False) -> bytes:
    """A message as an e-mail, which can be a file of its own; plain if it can be, or `formatted`.

    On the last level, its attachments are empty: each level is encoded again, which adds a third to its size.
    """
    headers = {"From": "", **dict(_headers(message))}  # without a sender it would not be recognized
    if sent := message.time(_SENT):
        headers["Date"] = format_datetime(sent)
    mail = EmailMessage()
    html = "" if message.text(_BODY).strip() and not formatted else _html(message)
    if html:
        mail.set_content(html, subtype="html")
    else:
        mail.set_content("\n\n".join(block.text for block in _text(message)))
    for attachment in message.attachments():
        data = b"" if level == _LEVELS else _content(attachment, level + 1)
        if data is not None:
            name = _name(attachment)
            mail.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return "".join(f"{name}: {value}\n" for name, value in headers.items()).encode() + mail.as_bytes()


def _content(attachment: Properties, level: int) -> bytes | None:
    inner = attachment.message(_DATA)
    if inner:
        return _as_mail(inner, level)
    embedded = attachment.embedded(_DATA)
    return embedded.content if embedded else attachment.data(_DATA)
