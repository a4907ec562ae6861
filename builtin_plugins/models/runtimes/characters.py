"""Halves of characters: some runtimes cut a text between two UTF-16 code units, or lose one of them."""

from __future__ import annotations

import json
from typing import Any


class Characters:
    """Joins the halves of characters across the pieces of one text."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, piece: str) -> str:
        """The complete part of the text so far; a half at its end waits for the next piece."""
        if self._half:
            piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return mended(piece)

    def close(self) -> str:
        """The replacement for a remaining half, if any."""
        rest, self._half = mended(self._half), ""
        return rest


def mended(text: str) -> str:
    """The text with halves joined, and U+FFFD for lone ones, which can't be sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def parsed_json(text: bytes) -> Any:
    """The value of a JSON text, without lone halves. Raises ValueError, also for too deep a nesting."""
    try:
        value = json.loads(text)
        if b"\\ud" in text.lower():
            return json.loads(mended(json.dumps(value, ensure_ascii=False)))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value
