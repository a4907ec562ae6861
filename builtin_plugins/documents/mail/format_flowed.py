"""Joins the lines of e-mail text that was wrapped for sending (RFC 3676, format=flowed)."""

from __future__ import annotations

import re
from typing import Final

_QUOTE: Final = re.compile(">*")
_SIGNATURE: Final = "-- "


def unwrapped(text: str, *, is_split: bool) -> str:
    """The text with each paragraph in one line. A line that ends with a space goes on at the same depth of
    quotes; `is_split` removes that space, as between Asian letters (DelSp).
    """
    pieces: list[str] = []
    goes_on = ""  # the quote marks of a line that continues
    is_open = False
    for line in text.splitlines():
        marks = _QUOTE.match(line)
        quote = marks[0] if marks else ""
        content = line[len(quote) :].removeprefix(" ")
        flows = content.endswith(" ") and content != _SIGNATURE
        piece = content.removesuffix(" ") if flows and is_split else content
        if is_open and content and quote == goes_on and content != _SIGNATURE:
            pieces.append(piece)
        else:
            pieces += ["\n", quote, " " if quote else "", piece]
        is_open, goes_on = flows, quote
    return "".join(pieces).removeprefix("\n")
