"""Finding passages: the question's vector, a search in each knowledge base, one ranking."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.schemas import MetadataFilter
from builtin_plugins.rag.services.embedding import embed, engine_changed
from builtin_plugins.rag.services.merging import Found, merged
from kernel.sdk import Embedded, EngineMismatch, Hit, Platform, Query


@dataclass(frozen=True)
class Retrieved:
    """Passages, best first, and what each leg said of them.

    `question` is the question's vector, by the embedding model of the first knowledge base. `similarities`
    are cosines to it on the model's own scale (`Embedded.similarity`); `words` are shares of a full match,
    None without a search by words.
    """

    passages: list[Passage]
    similarities: list[float]
    words: list[float | None]
    question: Embedded


async def retrieve(
    platform: Platform,
    bases: Sequence[KnowledgeBase],
    question: str,
    top_k: int,
    *,
    hybrid: bool,
    metadata_filter: MetadataFilter | None,
) -> Retrieved:
    """The best passages of the knowledge bases, each searched with its own embedding model.

    The filter is resolved to documents first and works inside the search, before ranking.
    """
    groups = await _groups(platform, bases, metadata_filter)
    models = list(dict.fromkeys(base.embedding_model for base in bases))
    vectors = {model: await embed(platform, model, [question], "query") for model in models}

    def query_of(base: KnowledgeBase) -> Query:
        asked = vectors[base.embedding_model]
        return Query(
            asked.vectors[0],
            top_k,
            text=question if hybrid else None,
            groups=None if groups is None else groups.get(base.id, []),
            engine=asked.engine,
            unrelated=asked.unrelated,
        )

    answers = await asyncio.gather(*(_search(platform, base, query_of(base)) for base in bases))
    found = [Found(base, hits) for base, hits in zip(bases, answers, strict=True)]
    first = vectors[models[0]]
    hits = await merged(platform, found, question, first, top_k, hybrid=hybrid)
    return await _passages(platform, hits, first)


async def _search(platform: Platform, base: KnowledgeBase, query: Query) -> list[Hit]:
    try:
        return await platform.vectors.search(base.collection, query)
    except EngineMismatch as error:
        raise engine_changed(base.embedding_model, error) from None


async def _groups(
    platform: Platform, bases: Sequence[KnowledgeBase], wanted: MetadataFilter | None
) -> dict[str, list[str]] | None:
    """What `_documents` finds; None when the filter asks for nothing."""
    if wanted is None or (wanted.source is None and wanted.document_id is None):
        return None
    return await platform.database.read(_documents, [base.id for base in bases], wanted)


def _documents(session: Session, bases: Sequence[str], wanted: MetadataFilter) -> dict[str, list[str]]:
    """Ids of the documents that match the filter, by knowledge base."""
    query = select(Document.knowledge_base_id, Document.id).where(Document.knowledge_base_id.in_(bases))
    if wanted.source is not None:
        query = query.where(Document.filename == wanted.source)
    if wanted.document_id is not None:
        query = query.where(Document.id == wanted.document_id)
    found: dict[str, list[str]] = {}
    for kb_id, document_id in session.execute(query):
        found.setdefault(kb_id, []).append(document_id)
    return found


async def _passages(platform: Platform, hits: Sequence[Hit], question: Embedded) -> Retrieved:
    """Passages with their documents' names; one whose document is gone by now is left out."""
    names = await platform.database.read(_names, {hit.point.group for hit in hits})
    kept = [hit for hit in hits if hit.point.group in names]
    passages = [_passage(hit, names[hit.point.group]) for hit in kept]
    similarities = [question.similarity(hit.cosine) for hit in kept]
    return Retrieved(passages, similarities, [hit.words for hit in kept], question)


def _names(session: Session, documents: Iterable[str]) -> dict[str, str]:
    query = select(Document.id, Document.filename).where(Document.id.in_(documents))
    return {row.id: row.filename for row in session.execute(query)}


def _passage(hit: Hit, source: str) -> Passage:
    payload = hit.point.payload
    return Passage(
        text=hit.point.text,
        source=source,
        score=round(hit.score, 6),
        chunk_id=hit.point.id,
        document_id=hit.point.group,
        page=payload.get("page"),
        char_start=payload["char_start"],
        char_end=payload["char_end"],
    )
