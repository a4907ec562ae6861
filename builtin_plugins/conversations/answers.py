"""Cuts answers into pieces by what they cite, so that what cites a passage can be removed.

A piece without a citation may stem from any passage of the answer, so it is removed with each of them. In an
answer of quotations, it stems from what is cited next.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

Piece = tuple[str | None, list[int]]

GAP = "[…]"

_CITATION = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")
# A piece ends after a sentence and its citations, whichever side of the period they are on.
_END = re.compile(
    r"(?:[.!?…。！？][\"'»”)]*(?:\s*\[[\d,; ]+\])*(?=\s|$)|(?:\[[\d,; ]+\])+[.!?…]?(?=\s|$)|\n)\s*"
)


def cut(answer: str, *, is_quotation: bool = False) -> list[Piece]:
    """The pieces, which together are the answer, each with the numbers that it cites.

    An `is_quotation` answer has only passages' sentences, each group of them followed by its citation.
    """
    pieces: list[Piece] = []
    start = 0
    for end in _END.finditer(answer):
        pieces.append(_piece(answer[start : end.end()]))
        start = end.end()
    if start < len(answer):
        pieces.append(_piece(answer[start:]))
    return _with_next(pieces) if is_quotation else pieces


def _with_next(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces, those without a citation with the numbers of the next that has one."""
    following: list[int] = []
    result: list[Piece] = []
    for text, numbers in reversed(pieces):
        following = numbers or following
        result.append((text, following))
    return result[::-1]


def _piece(text: str) -> Piece:
    numbers = {int(number) for citation in _CITATION.findall(text) for number in re.findall(r"\d+", citation)}
    return text, sorted(numbers)


def without(pieces: Sequence[Piece], gone: Collection[int]) -> list[Piece]:
    """The pieces without the texts that may stem from the passages `gone`."""
    if not gone:
        return list(pieces)
    lost = set(gone)
    return [
        (None, numbers) if not numbers or lost & set(numbers) else (text, numbers) for text, numbers in pieces
    ]


def join(pieces: Sequence[Piece], gap: str = GAP) -> str:
    """The text; a single `gap` stands for consecutive missing pieces."""
    parts: list[str] = []
    for text, _ in pieces:
        if text is not None:
            parts.append(text)
        elif gap and (not parts or parts[-1] != gap + " "):
            parts.append(gap + " ")
    return "".join(parts).strip()
