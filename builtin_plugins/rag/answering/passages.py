"""The data of answering: passages found by retrieval, and the answer made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

Pages = tuple[tuple[int, int | None], ...]
"""Pages that begin within a text: (offset in characters, page)."""


def page_at(place: int, first: int | None, pages: Pages) -> int | None:
    """The page of a character of a text that begins on the `first`."""
    return next((page for start, page in reversed(pages) if start <= place), first)


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved chunk, in the order of the response's ``sources``: the first is cited as [1].

    ``score`` is retrieval's relevance; ``near`` is the similarity of the whole chunk to the question, on the
    model's own scale, and ``matched`` the share of a full match by words, both None if not measured.
    ``language`` is that of its document (ISO 639), if known. ``char_start`` and ``char_end`` are the chunk's
    place in its document's text, in characters; ``page``, where it begins, counts from 1 and is None if the
    format has no pages. ``pages`` are later pages that begin in it.
    """

    text: str
    source: str
    score: float
    chunk_id: str
    document_id: str
    page: int | None = None
    char_start: int = 0
    char_end: int = 0
    near: float | None = None
    matched: float | None = None
    language: str | None = None
    pages: Pages = ()

    def by_page(self) -> Iterator[tuple[int | None, str]]:
        """Its pages, each with its part of the text."""
        starts = [(0, self.page), *self.pages, (len(self.text), None)]
        return ((page, self.text[start:end]) for (start, page), (end, _) in pairwise(starts))

    def page_at(self, place: int) -> int | None:
        """The page of a character of the text."""
        return page_at(place, self.page, self.pages)

    @property
    def last_page(self) -> int | None:
        """The page where it ends, if that is another than where it begins."""
        last = self.pages[-1][1] if self.pages else None
        return None if last == self.page else last


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and the 1-based positions of the passages that it cites, ascending.

    If ``supported`` is false, the text says that the documents contain no answer, and nothing is cited.
    ``confidence`` is the probability that the answer is right, 0 for a refusal. ``unshown`` is the passage
    that answers but can't be quoted because it isn't shown; there is no text then. ``pages`` maps cited
    passages to the page of their best quotation.
    """

    text: str
    cited: tuple[int, ...]
    supported: bool
    confidence: float = 0.0
    unshown: int | None = None
    pages: Mapping[int, int | None] = field(default_factory=dict)
