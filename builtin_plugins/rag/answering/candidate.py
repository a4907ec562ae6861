"""Sentences that may become part of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_WIDE = "\u2e7f"  # ideographs and kana are above


class Candidate(NamedTuple):
    """A sentence that may be quoted, with its passage's 1-based position and its place in it.

    ``around`` are its words and those that it may refer to. ``under`` is the heading above it; the first
    ``headed`` characters of ``text`` are from it. ``whole`` is the text to embed, with the heading if that
    contains part of the question. ``opens``: it begins a passage with several sentences, so it says what they
    are about and is near any question. ``overlap`` is its share of the question's words, weighted by rarity;
    ``joined`` is that of ``around``, as "It was founded in 1897" leaves out what was.
    """

    text: str
    passage: int
    start: int
    order: int
    stems: frozenset[str]
    around: frozenset[str]
    is_row: bool
    quotable: bool
    under: str
    whole: str
    headed: int
    opens: bool = False
    overlap: float = 0.0
    joined: float = 0.0
    fits: int = 0
    nearness: float = 0.0


@dataclass(frozen=True, slots=True)
class Near:
    """The similarity of each candidate to the question, and to the question's subject
    (`coverage.subject_of`).

    A sentence equally near to the subject alone says nothing about what is asked. `subject` is empty if the
    question has none.
    """

    question: Sequence[float]
    subject: Sequence[float] = ()

    def to_subject(self, at: int) -> float:
        """The similarity of a candidate to the subject; to the question if that has no subject."""
        return self.subject[at] if self.subject else self.question[at]


def count_words(text: str) -> int:
    """The number of words; two letters of a script without spaces count as one."""
    if text.isascii():  # true for most texts; checking every letter takes ten times as long
        return len(text.split())
    return sum(max(1, sum(char > _WIDE for char in word) // 2) for word in text.split())
