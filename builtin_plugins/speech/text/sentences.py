"""Splits text into pieces that are spoken one after the other."""

from __future__ import annotations

import re
from typing import Final

_END: Final = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+|(?<=[。！？])|\n\s*\n|[\r\n]+")
_PAUSE: Final = re.compile(r"(?<=[,;:、，；])\s*|\s+")
# A period after an abbreviation or a number doesn't end a sentence.
_NO_END: Final = re.compile(r"(?:\b\w|\b\d{1,2}|\b(?:Dr|Prof|St|Mr|Mrs|Ms|Nr|Hr|Fr|bzw|ca|vgl|Av|Sr|Sra))\.$")
LONGEST: Final = 300


def sentences(text: str) -> list[str]:
    """Sentences in order, none blank or longer than `LONGEST` characters."""
    pieces: list[str] = []
    for piece in _END.split(text):
        piece = piece.strip()
        if not piece:
            continue
        if pieces and _NO_END.search(pieces[-1]) and len(pieces[-1]) + len(piece) < LONGEST:
            pieces[-1] += " " + piece
        else:
            pieces.append(piece)
    return [part for sentence in pieces for part in _cut(sentence)]


def _cut(sentence: str) -> list[str]:
    """Split a long sentence at its commas, or its spaces."""
    parts: list[str] = []
    while len(sentence) > LONGEST:
        cuts = [match.end() for match in _PAUSE.finditer(sentence, 1, LONGEST)]
        at = max(cuts, default=LONGEST)
        parts.append(sentence[:at].strip())
        sentence = sentence[at:].strip()
    return [*parts, sentence] if sentence else parts
