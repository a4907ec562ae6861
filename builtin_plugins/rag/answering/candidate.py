"""Sentences on their way into an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_WIDE = "\u2e7f"  # ideographs and kana are above


class Candidate(NamedTuple):
    """A sentence that may be quoted, with its passage's 1-based position and its place there.

    ``overlap`` is its share of the question's words, rare ones counting more; ``joined`` that of the
    sentence together with the one before it and its heading: "It was founded in 1897" leaves out what
    was. ``opens`` says that it begins a passage of several: it says what they are about, and is near
    whatever is asked. ``under`` is the heading above it, which ``text`` begins with as far as ``headed``
    goes. ``whole`` is what gets a vector: the text, below its heading where that says some of what is
    asked.
    """

    text: str
    passage: int
    start: int
    overlap: float
    joined: float
    stems: frozenset[str]
    is_row: bool
    order: int
    fits: int
    nearness: float
    opens: bool = False
    under: str = ""
    whole: str = ""
    headed: int = 0


@dataclass(frozen=True, slots=True)
class Near:
    """How near each candidate is to the question, and to the question's subject (`coverage.subject_of`).

    A sentence that is as near to the subject alone says nothing of what is asked about it. `subject` is empty
    where the question has none.
    """

    question: Sequence[float]
    subject: Sequence[float] = ()

    def to_subject(self, at: int) -> float:
        """Of the candidate at a place; that to the question where it has no subject."""
        return self.subject[at] if self.subject else self.question[at]


def count_words(text: str) -> int:
    """Words; two letters of a script without spaces count as one."""
    if text.isascii():  # most texts; looking at every letter takes ten times as long
        return len(text.split())
    return sum(max(1, sum(char > _WIDE for char in word) // 2) for word in text.split())
