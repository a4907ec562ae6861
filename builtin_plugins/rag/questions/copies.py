"""Copies among passages: what later e-mails of a thread quote of earlier ones, files stored twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from builtin_plugins.documents.api import unframed_lines
from builtin_plugins.rag.answering.matching import MOST_READ
from builtin_plugins.rag.answering.quotations import bare_text
from builtin_plugins.rag.answering.words import fold, words
from builtin_plugins.rag.passages import Passage

_LEAST = 120
"""Shorter passages, in characters, may say the same of different things."""
MOST_COMPARED = 60
"""Passages beyond these are not compared."""


def without_copies(passages: Sequence[Passage], question: str) -> list[Passage]:
    """The passages, best first, without those whose every line stands, in this order, in another document.

    That document's passages must be better ones among these or, as the history of an e-mail, worse ones: the
    first of those then takes the place. The best passage of all always stays, as does one whose document has
    a word of the question in its name that the other's name lacks. Nothing that only one of them says, such
    as another amount, is left out.
    """
    return _Comparison(passages, question).different()


class _Comparison:
    """Documents by their passages, in the passages' order."""

    def __init__(self, passages: Sequence[Passage], question: str) -> None:
        self._question = question
        self._rest = list(passages[MOST_COMPARED:])
        self._order = list(passages[:MOST_COMPARED])
        self._parts: dict[str, list[Passage]] = {}
        for one in self._order:
            if not one.tree_level:
                self._parts.setdefault(one.document_id, []).append(one)
        self._texts = {document: _whole(parts) for document, parts in self._parts.items()}

    def different(self) -> list[Passage]:
        if len(self._parts) > 1:
            for place in range(len(self._order) - 1, 0, -1):
                self._compare(place)
        return self._order + self._rest

    def _compare(self, place: int) -> None:
        """Remove the passage at a place if it is a copy."""
        passage = self._order[place]
        if passage.tree_level or len(_bare(passage.chunk_id, passage.text)) < _LEAST:
            return
        for document in self._sayers(passage):
            first = self._parts[document][0]
            at = self._order.index(first)
            if at < place:
                self._remove(passage)
                return
            if _is_mail(first.text):
                self._order.remove(first)
                self._order.insert(place, first)
                self._remove(passage)
                return

    def _sayers(self, passage: Passage) -> list[str]:
        """The documents that have each line of the passage, in this order, the best first."""
        probe = bare_text(max(passage.text.splitlines(), key=len))
        near = [
            document
            for document, text in self._texts.items()
            if probe in text and document != passage.document_id
        ]
        if not near:
            return []
        lines = [bare_text(line) for line in unframed_lines(passage.text)]
        named = self._named(passage)
        if sum(map(len, lines)) < _LEAST:
            return []
        found = [one for one in near if _has_in_order(self._texts[one], lines)]
        found = [one for one in found if named <= self._named(self._parts[one][0])]
        return sorted(found, key=lambda one: self._order.index(self._parts[one][0]))

    def _named(self, passage: Passage) -> frozenset[str]:
        """The words of the question that are in the name of a passage's document."""
        name = fold(passage.source)
        return frozenset(one for word in words(self._question) if (one := fold(word)) in name)

    def _remove(self, passage: Passage) -> None:
        self._order.remove(passage)
        parts = self._parts[passage.document_id]
        parts.remove(passage)
        if parts:
            self._texts[passage.document_id] = _whole(parts)
        else:
            del self._parts[passage.document_id], self._texts[passage.document_id]


def _whole(parts: Iterable[Passage]) -> str:
    """The texts of a document's passages, in their order there."""
    return "".join(_bare(one.chunk_id, one.text) for one in sorted(parts, key=lambda one: one.position))


@lru_cache(maxsize=MOST_READ)  # by the id, too: see `answering.matching`
def _bare(_chunk_id: str, text: str) -> str:
    return bare_text(text)


def _is_mail(text: str) -> bool:
    return "\n>" in text or len(unframed_lines(text)) < sum(bool(line.strip()) for line in text.splitlines())


def _has_in_order(text: str, lines: Iterable[str]) -> bool:
    place = 0
    for line in lines:
        place = text.find(line, place)
        if place < 0:
            return False
        place += len(line)
    return True
