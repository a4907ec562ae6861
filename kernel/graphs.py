"""Documents and passages as RAG passes them to plugins that derive graphs from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GraphDocument:
    """A readable document of a knowledge base with its graph turned on."""

    document_id: str
    knowledge_base_id: str
    owner_id: int | None
    name: str


@dataclass(frozen=True, slots=True)
class DocumentPassage:
    """A passage as indexed; `position` counts from 0, `char_start` is an offset in the document's text."""

    passage_id: str
    position: int
    text: str
    page: int | None
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True)
class DocumentPassages:
    """Some of a document's passages in order, and the total number."""

    passages: Sequence[DocumentPassage]
    total: int
