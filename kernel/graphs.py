"""Documents and passages, as RAG passes them to plugins that derive graphs from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GraphDocument:
    """A readable document of a knowledge base that wants a graph."""

    document_id: str
    knowledge_base_id: str
    owner_id: int | None
    name: str


@dataclass(frozen=True, slots=True)
class DocumentPassage:
    """A passage as it is indexed; `position` counts from 0, `char_start` in the document's text."""

    passage_id: str
    position: int
    text: str
    page: int | None
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True)
class DocumentPassages:
    """A part of a document's passages in their order, and how many there are altogether."""

    passages: Sequence[DocumentPassage]
    total: int
