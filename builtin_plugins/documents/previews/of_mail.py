"""Mail as HTML: headers, the message as it was written, the names of its attachments."""

from __future__ import annotations

import re
from collections.abc import Iterable
from email.message import Message
from html import escape
from itertools import islice
from pathlib import Path
from typing import Final

from builtin_plugins.documents.mail.from_eml import (
    attachment_names,
    message_of,
    payload_of,
    shown_headers,
    text_of,
    texts_of,
)
from builtin_plugins.documents.mail.from_mbox import messages_in
from builtin_plugins.documents.mail.from_msg import as_mail
from builtin_plugins.documents.previews.page import PreviewPage
from builtin_plugins.documents.previews.pictures import EmbeddedPictures

_MOST_MESSAGES: Final = 100
_INSIDE: Final = re.compile(r"""(\ssrc\s*=\s*["']?)cid:([^"'\s>]{1,500})""", re.IGNORECASE)


def preview(path: Path) -> PreviewPage:
    """A mail."""
    return _page([message_of(path.read_bytes())])


def preview_outlook(path: Path) -> PreviewPage:
    """A message of Outlook. Raises `UnparsableDocument` for a broken file."""
    return _page([message_of(as_mail(path))])


def preview_mailbox(path: Path) -> PreviewPage:
    """The first messages of a mailbox."""
    messages = list(islice(messages_in(path), _MOST_MESSAGES + 1))
    page = _page(messages[:_MOST_MESSAGES])
    if len(messages) <= _MOST_MESSAGES:
        return page
    return PreviewPage(f'{page.html}<p class="note">The first {_MOST_MESSAGES} messages.</p>')


def _page(messages: Iterable[Message]) -> PreviewPage:
    pictures = EmbeddedPictures()
    return PreviewPage("<hr>".join(_message_html(message, pictures) for message in messages))


def _message_html(message: Message, pictures: EmbeddedPictures) -> str:
    headers = dict(shown_headers(message))
    subject = headers.pop("Subject", "")
    if names := attachment_names(message):
        headers["Attachments"] = ", ".join(names)
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in headers.items()
    )
    inside = {str(part["Content-ID"]).strip("<> "): part for part in message.walk() if part.get("Content-ID")}

    def picture(match: re.Match[str]) -> str:
        part = inside.get(match[2])
        return match[1] + ((pictures.address(payload_of(part)) if part is not None else None) or "")

    bodies = [
        _INSIDE.sub(picture, text_of(part))
        if part.get_content_subtype() == "html"
        else f'<div class="plain">{escape(text_of(part))}</div>'
        for part in texts_of(message, best="html")
    ]
    heading = f"<h1>{escape(subject)}</h1>" if subject else ""
    return f'<div class="mail">{heading}<table class="headers">{rows}</table>{"".join(bodies)}</div>'
