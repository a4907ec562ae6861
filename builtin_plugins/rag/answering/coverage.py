"""How much of a question's words, and of its names, passages have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache

from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.reading import MOST_READ
from builtin_plugins.rag.answering.words import (
    Stems,
    content_forms,
    content_words,
    forms_in,
    has_number,
    named_terms,
    spells_out,
)

_NAME_JOINTS = re.compile(r"[\W_]+")


class Coverage:
    """The share of a question's content words that a passage has."""

    def __init__(self, question: str) -> None:
        self.wanted = content_words(question)
        self._names = named_terms(question)

    def of(self, passage: Passage) -> float:
        """The coverage of a passage, including its document's name."""
        read = _reading(passage)
        return sum(map(read.means, self.wanted)) / len(self.wanted) if self.wanted else 0.0

    def unnamed(self, passage: Passage, *, translated: bool = False) -> float:
        """The share of the question's names, codes and numbers that a passage lacks.

        For a `translated` text, only names with digits count: others are spelled differently there.
        """
        read = _reading(passage)
        names = {name for name in self._names if has_number(name)} if translated else self._names
        return sum(not read.has(name) for name in names) / len(names) if names else 0.0


def subject_of(question: str, passages: Sequence[Passage]) -> str:
    """The words of a question that the best passage has: mostly its subject, not what it asks.

    Pairs of letters in a script without spaces. Empty if the passage has none.
    """
    if not passages:
        return ""
    read = _reading(passages[0])
    return " ".join(word for word in content_words(question) if read.means(word))


def read_ahead(passages: Sequence[Passage]) -> None:
    """Read passages in advance, so that questions about them soon after take no time."""
    for passage in passages:
        _reading(passage).read()


def _reading(passage: Passage) -> _Read:
    return _read(passage.chunk_id, _context(passage), passage.language)


@lru_cache(maxsize=MOST_READ)  # by the id, too: see `reading`
def _read(_chunk_id: str, context: str, language: str | None) -> _Read:
    return _Read(context, language)


class _Read:
    """A text, prepared for comparing its words."""

    def __init__(self, text: str, language: str | None) -> None:
        self._text, self._language = text, language

    def read(self) -> None:
        """Do in advance what is otherwise done when needed."""
        _ = self._stems

    def means(self, word: str) -> bool:
        """Whether the text has any form of a word, as written."""
        return any(map(self.has, forms_in(word, self._language)))

    def has(self, word: str) -> bool:
        """Whether the text has a form of the word, or an acronym's long form."""
        return bool(self._stems.meant_by(word)) or spells_out(self._text, word)

    @cached_property
    def _stems(self) -> Stems:
        return Stems(content_forms(self._text, self._language))


def _context(passage: Passage) -> str:
    """The document's name, which often says what its passages leave out."""
    return f"{_NAME_JOINTS.sub(' ', passage.source)} {passage.text}"
