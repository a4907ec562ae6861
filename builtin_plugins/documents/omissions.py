"""What a parser leaves out of a document on purpose, or can't read: counted here, and told in the notice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final, Literal

Omission = Literal["hidden", "beside", "quoted", "part", "unrecognized"]

_SENTENCES: Final[dict[Omission, tuple[str, str]]] = {
    "hidden": (
        "One hidden part (text, rows, columns, a sheet or a slide) was left out.",
        "{:,} hidden parts (text, rows, columns, sheets or slides) were left out.",
    ),
    "beside": (
        "Outside the main text of the page, one part (links, a header, a sidebar or a footer) was left out.",
        "Outside the main text of the page, {:,} parts (links, headers, sidebars, footers) were left out.",
    ),
    "quoted": (
        "One message quotes what is there already; the repetitions were left out.",
        "{:,} messages quote what is there already; the repetitions were left out.",
    ),
    "part": (
        "One part inside the document could not be read and was left out.",
        "{:,} parts inside the document could not be read and were left out.",
    ),
    "unrecognized": (
        "The text of one picture could not be recognized with any certainty and was left out: it is too "
        "blurred, or in a language that PLATFORM_RAG_OCR_LANGUAGES does not name.",
        "The text of {:,} pictures could not be recognized with any certainty and was left out: they are too "
        "blurred, or in a language that PLATFORM_RAG_OCR_LANGUAGES does not name.",
    ),
}
"""What to tell users, for one and for several."""

COUNTED: ContextVar[Counter[Omission] | None] = ContextVar("what the parser leaves out", default=None)
"""Where a run of a parser counts what it leaves out."""


def omit(kind: Omission, count: int = 1) -> None:
    """Count something that is left out of the document being read."""
    counter = COUNTED.get()
    if counter is not None and count:
        counter[kind] += count


def omissions(counts: Mapping[str, int]) -> list[str]:
    """What to tell users about what was left out, by kind; unknown kinds are ignored."""
    return [
        (one if counts[kind] == 1 else several).format(counts[kind])
        for kind, (one, several) in _SENTENCES.items()
        if counts.get(kind, 0) > 0
    ]
