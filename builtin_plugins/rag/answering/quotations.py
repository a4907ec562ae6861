"""A question and its passages as an answer without a model is made from them, and that answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from builtin_plugins.rag.passages import Passage


@dataclass(frozen=True, slots=True)
class QuotableSentence:
    """A sentence, list item, heading or table row of a passage, by its place in the text.

    `words` are the question's words that it has, as indexes into `AskedWords.words`; `context` adds those of
    what it may refer to: its heading, and the sentences before it. `length` is in words, two letters of a
    script without spaces as one. `page` is where it begins; None in a format without pages. It
    `stands_alone` if it is best quoted by itself: a table's row with the names of its columns, a record of
    fields, and a line with a word of the question and a number, such as "TOTAL $821.14".
    """

    text: str
    start: int
    length: int
    words: frozenset[int]
    context: frozenset[int]
    is_heading: bool = False
    under: str = ""
    page: int | None = None
    stands_alone: bool = False


@dataclass(frozen=True, slots=True)
class QuotablePassage:
    """What a passage that was found has in common with the question, and its sentences.

    `words` are the question's words that it or its document's name has, `names` the question's names, codes
    and numbers that it has.
    `is_foreign`: it is in another language than the question.
    """

    passage: Passage
    words: frozenset[int]
    names: frozenset[str]
    is_foreign: bool
    sentences: Sequence[QuotableSentence]


@dataclass(frozen=True, slots=True)
class AskedWords:
    """A question: its language (ISO 639, if known), its content words, its names, codes and numbers."""

    text: str
    language: str | None
    words: Sequence[str]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Quote:
    """A text to quote from a passage, by the passage's index, and where it begins in it."""

    passage: int
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class Support:
    """How well passages support an answer, and what answers, the best first.

    `probability`: that the quotes are a right answer. `is_enough`: they are shown as one, instead of a
    refusal. `is_hopeful`: a model, which reads whole passages, may find an answer. `differ`: the quotes are
    of different documents that contradict each other.
    """

    probability: float
    is_enough: bool
    is_hopeful: bool
    quotes: Sequence[Quote] = ()
    differ: bool = False
