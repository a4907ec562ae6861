"""Cut a text into passages, unless it is already cut."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

from builtin_plugins.rag import api as rag

LONGEST = 1200
_NAMESPACE = uuid.UUID("0b6a3a52-2f5b-4b43-8e0e-5ad0c4a9b6d1")
_BREAK = re.compile(r"\n\s*\n|(?<=[.!?。！？؟])\s+|\n")


def cut(document_id: str, text: str) -> list[rag.Passage]:
    """Passages of at most `LONGEST` characters that end where paragraphs or sentences do, if they can."""
    passages = []
    for position, (start, end) in enumerate(_spans(text)):
        uid = uuid.uuid5(_NAMESPACE, f"{document_id}/{position}")
        passages.append(
            rag.Passage(text[start:end], "", 0.0, str(uid), document_id, None, start, end, position=position)
        )
    return passages


def _spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = _end(text, start)
        if text[start:end].strip():
            yield start, end
        start = end


def _end(text: str, start: int) -> int:
    if len(text) - start <= LONGEST:
        return len(text)
    best = {"paragraph": 0, "sentence": 0}
    for match in _BREAK.finditer(text, start, start + LONGEST):
        best["paragraph" if match.group().count("\n") > 1 else "sentence"] = match.end()
    space = text.rfind(" ", start + 1, start + LONGEST)
    half = start + LONGEST // 2
    ends = (best["paragraph"] if best["paragraph"] > half else 0, best["sentence"], space + 1)
    return next((end for end in ends if end > start), start + LONGEST)
