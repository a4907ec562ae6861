"""A passage, and what a search finds: the one shape that all phases of a question and all plugins use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, overload

from builtin_plugins.documents.api import Pages, Sections, page_at, section_at

if TYPE_CHECKING:
    from builtin_plugins.inference.api import Embedded

EXTRACTIVE = "extractive"
"""The model of an answer that no model wrote."""

DEPTH = 5
"""Passages that decide whether there is an answer, however many are shown."""


class QuotedSpan(NamedTuple):
    """A part of a document's text, in characters: `text[char_start:char_end]`."""

    char_start: int
    char_end: int


class CitedVersion(NamedTuple):
    """The version of a document that a passage is of: its number, and the digest of its file."""

    number: int
    sha256: str
    uploaded_at: datetime


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step on the path to a passage: `source` has the `relation` to `target`."""

    source: str
    relation: str
    target: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a document; an answer cites its first passage as [1].

    `source` is the name of its document, `version` which of its versions, `position` its index in it.
    `knowledge_base_id` is None if the document has been deleted in the meantime. `page` is the page of the
    answer's quotation; without one, the page on which the passage begins. It counts from 1, and is None in a
    format without pages. `pages` are later ones that begin in it. `sections` are the headings above it, and
    above parts of it. `char_start` and `char_end` count characters of the document's text.
    `language` is that of the document (ISO 639), if known. `tree_level` is 0 for the document's own passages
    and higher for summaries.

    What a search measured: `score` ranks it. `near` is the similarity to the question on the embedding
    model's own scale, `matched` the share of a full match by words, `fused` what both make; `rerank` and
    `graph` come from these options, as does `path`, the way to it in a graph. None is not measured. If the
    passage was widened, `child` is the position of the one that was found. `quotes` are the parts of the
    document's text that an answer quotes, or cites it for. `being_read`: its document is not complete yet.
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
    knowledge_base_id: str | None = None
    position: int = 0
    tree_level: int = 0
    fused: float = 0.0
    rerank: float | None = None
    graph: float | None = None
    path: tuple[PathStep, ...] = ()
    child: int | None = None
    sections: Sections = ()
    quotes: tuple[QuotedSpan, ...] = ()
    being_read: bool = False
    version: CitedVersion | None = None

    def by_page(self) -> Iterator[tuple[int | None, str]]:
        """Its pages, each with its part of the text."""
        starts = [(0, self.page), *self.pages, (len(self.text), None)]
        return ((page, self.text[start:end]) for (start, page), (end, _) in pairwise(starts))

    def page_at(self, place: int) -> int | None:
        """The page of a character of the text."""
        return page_at(place, self.page, self.pages)

    def section_at(self, place: int) -> str | None:
        """The headings above a character of the text, if any: "Item 7 › Liquidity"."""
        return section_at(place, self.sections) or None

    @property
    def last_page(self) -> int | None:
        """The page where it ends, if that is another than where it begins."""
        last = self.pages[-1][1] if self.pages else None
        return None if last == self.page else last

    @property
    def is_verbatim(self) -> bool:
        """Whether its text is a part of the document's, unlike a summary or a shortened passage."""
        return not self.tree_level and len(self.text) == self.char_end - self.char_start

    def scored(self, score: float, *, rerank: float | None = None) -> Passage:
        """The same with another score; `rerank` if it comes from reranking."""
        return replace(self, score=round(score, 6), rerank=self.rerank if rerank is None else rerank)

    def on_page(self, page: int | None, section: str | None = None) -> Passage:
        """The same, on the page and in the section of what is quoted from it only; without a `section`, it is
        the one where the page begins.
        """
        start = next((start for start, begun in self.pages if begun == page), 0)
        within = section or self.section_at(start)
        return replace(self, page=page, pages=(), sections=((0, within),) if within else ())


@dataclass(frozen=True, slots=True)
class RetrievedPassages(Sequence[Passage]):
    """Passages, best first. `question` is the question's vector by the first knowledge base's model.

    `first` are the best passages, however many were requested: they decide whether there is an answer.
    """

    passages: Sequence[Passage]
    question: Embedded
    first: Sequence[Passage] = ()

    @overload
    def __getitem__(self, index: int) -> Passage: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Passage]: ...

    def __getitem__(self, index: int | slice) -> Passage | Sequence[Passage]:
        return self.passages[index]

    def __len__(self) -> int:
        return len(self.passages)

    @property
    def judged(self) -> Sequence[Passage]:
        """The passages that decide whether there is an answer, and make it up."""
        return self.first or self.passages[:DEPTH]

    def of(self, passages: Sequence[Passage]) -> RetrievedPassages:
        """Other passages of the same question."""
        return RetrievedPassages(passages, self.question)


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer's text, the passages that are its sources, and the model that wrote it."""

    text: str
    passages: Sequence[Passage]
    model: str = EXTRACTIVE
