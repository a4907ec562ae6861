"""Which documents are about the same thing, by where they are and what they are called."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from builtin_plugins.rag.answering.contradicting import subject_words

_TIME = re.compile(
    r"(?<!\d)(?:(?:19|20)\d\d[-_.]?[01]\d[-_.]?[0-3]\d|[0-3]?\d[-_.][01]?\d[-_.](?:19|20)\d\d"
    r"|(?:19|20)\d\d[-_.][01]\d|(?:19|20)\d\d)(?!\d)"
)
"""A day, a month or a year in a name."""
_COPY = re.compile(
    r"\(\d{1,2}\)|(?<![^\W_])(?:v|ver|version|rev|revision)[-_. ]?\d+(?:\.\d+)*(?!\d)", re.IGNORECASE
)
_NUMBER = re.compile(r"\d+")
_PERIODICAL = re.compile(
    r"report|minutes|newsletter|invoice|receipt|statement|agenda|diary|journal|log|results|payslip"
    r"|\w*(?:bericht|protokoll|rechnung|rundbrief|tagebuch|abrechnung|bilanz|quittung)"
    r"|rapport|facture|bulletin|procès|verbal|bilan|informe|factura|acta|boletín|balance|recibo"
)
"""What is written for each period: two of different times may say different things."""
_ENDING = re.compile(r"\.\w{1,5}$")


class Subject(NamedTuple):
    """What a document is about, as far as its name says; documents of one are compared."""

    words: frozenset[str]
    numbers: tuple[str, ...]
    time: str


def subject_of(filename: str, folders: str) -> Subject | None:
    """The subject by a document's name and the folders that it is in; None if its name says nothing.

    Years and versions (`-v2`, `(1)`) are versions of one thing; other numbers, such as that of a contract,
    are other things, and so are the reports of different times.
    """
    name = unicodedata.normalize("NFKC", _ENDING.sub("", filename))
    times = _TIME.findall(name)
    left = _COPY.sub(" ", _TIME.sub(" ", name))
    words = subject_words(left)
    if not words:
        return None
    is_periodical = any(_PERIODICAL.fullmatch(word) for word in words)
    placed = _TIME.sub(" ", folders)
    return Subject(
        words | {f"/{word}" for word in subject_words(placed)},
        tuple(_NUMBER.findall(_COPY.sub(" ", f"{left}/{placed}"))),
        " ".join(times) if is_periodical else "",
    )
