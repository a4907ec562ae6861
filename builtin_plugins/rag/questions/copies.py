"""Copies among passages: what later e-mails of a thread quote of earlier ones, files stored twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from builtin_plugins.documents.api import has_quotes, unframed_lines
from builtin_plugins.rag.answering.matching import MOST_READ
from builtin_plugins.rag.answering.words import bare_text, fold, words
from builtin_plugins.rag.passages import Passage

_LEAST = 120
"""Shorter passages, in characters, may say the same of different things."""
_MOST_TRIES = 50  # places where a number goes on beyond what is looked for
MOST_COMPARED = 60
"""Passages beyond these are not compared."""


def without_copies(passages: Sequence[Passage], question: str) -> list[Passage]:
    """The passages, best first, without those whose text another document has, too. In the history of an
    e-mail it is enough that all lines are there, in the same order.

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
        for passage in self._order:
            if not passage.tree_level:
                self._parts.setdefault(passage.document_id, []).append(passage)
        self._texts = {document: _whole(parts) for document, parts in self._parts.items()}
        self._quoting = {passage.document_id for passage in self._order if has_quotes(passage.text)}

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
            if has_quotes(first.text):
                self._order.remove(first)
                self._order.insert(place, first)
                self._remove(passage)
                return

    def _sayers(self, passage: Passage) -> list[str]:
        """The documents that say what the passage says, the best first."""
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
        whole = [_bare(passage.chunk_id, passage.text)]
        is_quote = has_quotes(passage.text)
        documents = [
            one
            for one in near
            if _has_in_order(self._texts[one], lines if is_quote or one in self._quoting else whole)
        ]
        documents = [one for one in documents if named <= self._named(self._parts[one][0])]
        return sorted(documents, key=lambda one: self._order.index(self._parts[one][0]))

    def _named(self, passage: Passage) -> frozenset[str]:
        """The words of the question that are in the name of a passage's document."""
        name = fold(passage.source)
        return frozenset(term for word in words(self._question) if (term := fold(word)) in name)

    def _remove(self, passage: Passage) -> None:
        self._order.remove(passage)
        parts = self._parts[passage.document_id]
        parts.remove(passage)
        if parts:
            self._texts[passage.document_id] = _whole(parts)
        else:
            del self._parts[passage.document_id], self._texts[passage.document_id]


def _whole(parts: Iterable[Passage]) -> str:
    """The texts of a document's passages, in their order there; a line break is where one is missing."""
    text, before = "", None
    for part in sorted(parts, key=lambda part: part.position):
        is_next = before is not None and part.position == before.position + 1
        overlap = max(0, before.char_end - part.char_start) if is_next and before is not None else 0
        text += ("" if is_next else "\n") + _bare(part.chunk_id, part.text[overlap:])
        before = part
    return text


@lru_cache(maxsize=MOST_READ)  # by the id, too: see `answering.matching`
def _bare(_chunk_id: str, text: str) -> str:
    return bare_text(text)


def _has_in_order(text: str, lines: Iterable[str]) -> bool:
    place = 0
    for line in lines:
        place = _end_of(line, text, place)
        if place < 0:
            return False
    return True


def _end_of(line: str, text: str, start: int) -> int:
    """Where a line ends in a text; -1 if it is not there as a whole: "12" is not in "125" or "12.5"."""
    for _ in range(_MOST_TRIES):
        at = text.find(line, start)
        if at < 0:
            break
        if not _is_within_number(text, at) and not _is_within_number(text, at + len(line)):
            return at + len(line)
        start = at + 1
    return -1


def _is_within_number(text: str, place: int) -> bool:
    before, after = text[max(0, place - 2) : place], text[place : place + 2]
    goes_on = after[:1].isdigit() or (after[:1] in (".", ",") and after[1:].isdigit())
    ends = before[-1:] in (".", ",") and before[:1].isdigit() and after[:1].isdigit()
    return (before[-1:].isdigit() and goes_on) or ends
