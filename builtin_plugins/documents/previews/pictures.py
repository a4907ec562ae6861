"""Pictures inside a document, embedded in its page up to a limit."""

from __future__ import annotations

import base64
from html import escape
from typing import Final

_MOST_BYTES: Final = 8 * 1024 * 1024
"""Of all pictures of a document."""
_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF8", "gif"),
    (b"BM", "bmp"),
)


class EmbeddedPictures:
    """What the pictures of one document may still take."""

    def __init__(self, most: int = _MOST_BYTES) -> None:
        self._left = most

    def address(self, data: bytes) -> str | None:
        """The picture as an address with its data; None for what no browser shows, or that is too large."""
        kind = next((kind for begin, kind in _SIGNATURES if data.startswith(begin)), None)
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            kind = "webp"
        if kind is None or len(data) > self._left:
            return None
        self._left -= len(data)
        return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"

    def element(self, data: bytes, alt: str = "", style: str = "") -> str:
        """An `img`, or a box that stands for it."""
        text, looks = escape(alt), escape(style)
        if address := self.address(data):
            return f'<img src="{address}" alt="{text}" style="{looks}">'
        return f'<span class="no-picture" style="{looks}">{text}</span>'
