"""Searching: the question's vector, a search in each knowledge base, one ranking."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import String, bindparam, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.errors import EngineChanged
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.questions.merging import Found, as_asked, merged
from builtin_plugins.rag.questions.ranked import Ranked, Retrieved, passage_of
from builtin_plugins.rag.schemas import MetadataFilter
from builtin_plugins.rag.services.embedding import embed, engine_changed
from kernel.sdk import Among, Embedded, EngineMismatch, Hit, Ids, Platform, Prepared, Query

_DOCUMENT: Any = Document.__table__
_NAMED = Prepared(
    select(_DOCUMENT.c.id, _DOCUMENT.c.knowledge_base_id, _DOCUMENT.c.filename).where(
        Among(_DOCUMENT.c.id, bindparam("wanted", type_=Ids(String)))
    )
)


@dataclass(frozen=True)
class Sought:
    """What to search for. `imagined` is a passage whose meaning counts as much as the text's.

    `trees` searches the summaries of document trees, too. `question` is the original question, which
    similarities refer to if `text` differs from it. `language` detects the language of the question; it runs
    while the question is embedded.
    """

    text: str
    top_k: int
    hybrid: bool = True
    metadata_filter: MetadataFilter | None = None
    imagined: str | None = None
    trees: bool = False
    question: str | None = None
    language: Callable[[], Awaitable[str | None]] | None = None


async def retrieve(platform: Platform, bases: Sequence[KnowledgeBase], sought: Sought) -> Retrieved:
    """The best passages of the knowledge bases, each searched with its own embedding model.

    The filter is resolved to documents first and applied in the search, before ranking. If the embedding
    model was changed meanwhile, the search is repeated. Raises Unavailable when embedding fails.
    """
    try:
        return await _retrieve(platform, bases, sought)
    except EngineChanged:
        if not await _caught_up(platform, bases):
            raise
    return await _retrieve(platform, bases, sought)


async def _asked(platform: Platform, model: str, sought: Sought) -> Embedded:
    """Embed the question; how much its vectors count depends on how well the model knows its language."""
    embedding = embed(platform, model, [sought.text], "query")
    if not sought.hybrid or sought.language is None:
        return await embedding
    found, language = await asyncio.gather(embedding, sought.language())
    return found if found.languages is None else replace(found, meaning=found.share_in(language))


async def _caught_up(platform: Platform, bases: Sequence[KnowledgeBase]) -> bool:
    """Refresh the models of the knowledge bases; returns whether any was changed since they were read."""
    ids = [base.id for base in bases]
    columns = (KnowledgeBase.id, KnowledgeBase.embedding_model, KnowledgeBase.revision)
    query = select(*columns).where(KnowledgeBase.id.in_(ids))
    rows = await platform.database.read(lambda session: session.execute(query).all())
    known, changed = {row.id: row for row in rows}, False
    for base in bases:
        row = known.get(base.id)
        if row is not None and row.revision != base.revision:
            base.embedding_model, base.revision, changed = row.embedding_model, row.revision, True
    return changed


async def _retrieve(platform: Platform, bases: Sequence[KnowledgeBase], sought: Sought) -> Retrieved:
    groups = await documents_of(platform, bases, sought.metadata_filter)
    models = list(dict.fromkeys(base.embedding_model for base in bases))
    asked = {model: await _asked(platform, model, sought) for model in models}
    aims = {model: await _aim(platform, model, asked[model], sought.imagined) for model in models}
    model = models[0]
    question = asked[model]
    if sought.question not in (None, sought.text):
        question = await embed(platform, model, [sought.question], "query")
    aimed_elsewhere = question is not aims[model]

    def query_of(base: KnowledgeBase) -> Query:
        aim, own = aims[base.embedding_model], base.embedding_model == model
        return Query(
            aim.vectors[0],
            sought.top_k,
            text=sought.text if sought.hybrid else None,
            groups=None if groups is None else groups.get(base.id, []),
            engine=aim.engine,
            unrelated=aim.unrelated,
            meaning=aim.meaning,
            question=question.vectors[0] if aimed_elsewhere and own else None,
        )

    places = [(base, base.collection) for base in bases]
    if sought.trees:
        places += [(base, base.tree_collection) for base in bases]
    answers = await asyncio.gather(*(_search(platform, *place, query_of(place[0])) for place in places))
    found = [Found(base, hits) for (base, _), hits in zip(places, answers, strict=True)]
    hits = await merged(platform, found, sought.text, aims[model], sought.top_k, hybrid=sought.hybrid)
    if aimed_elsewhere:
        hits = await as_asked(platform, model, question, hits)
    return await _ranked(platform, hits, question)


async def documents_of(
    platform: Platform, bases: Sequence[KnowledgeBase], wanted: MetadataFilter | None
) -> dict[str, list[str]] | None:
    """The documents that match a filter, by knowledge base; None for an empty filter."""
    if wanted is None or (wanted.source is None and wanted.document_id is None):
        return None
    return await platform.database.read(_documents, [base.id for base in bases], wanted)


async def _aim(platform: Platform, model: str, asked: Embedded, imagined: str | None) -> Embedded:
    """The vector to search with: the question's, or halfway to the imagined passage's."""
    import numpy as np

    if imagined is None:
        return asked
    made = await embed(platform, model, [imagined], "passage")
    between = asked.vectors[0] + made.vectors[0]
    length = float(np.linalg.norm(between)) or 1.0
    return replace(asked, vectors=(between / length).astype(np.float32).reshape(1, -1))


async def _search(platform: Platform, base: KnowledgeBase, collection: str, query: Query) -> list[Hit]:
    try:
        return await platform.vectors.search(collection, query)
    except EngineMismatch as error:
        raise engine_changed(base.embedding_model, error) from None


def _documents(session: Session, bases: Sequence[str], wanted: MetadataFilter) -> dict[str, list[str]]:
    query = select(Document.knowledge_base_id, Document.id).where(Document.knowledge_base_id.in_(bases))
    if wanted.source is not None:
        query = query.where(Document.filename == wanted.source)
    if wanted.document_id is not None:
        query = query.where(Document.id == wanted.document_id)
    found: dict[str, list[str]] = {}
    for kb_id, document_id in session.execute(query):
        found.setdefault(kb_id, []).append(document_id)
    return found


async def _ranked(platform: Platform, hits: Sequence[Hit], question: Embedded) -> Retrieved:
    """Passages with their documents' names; those of deleted documents are left out."""
    documents = await named(platform, {hit.point.group for hit in hits})
    kept = [hit for hit in hits if hit.point.group in documents]
    return Retrieved([_of_hit(hit, documents[hit.point.group], question) for hit in kept], question)


async def named(platform: Platform, documents: Iterable[str]) -> Mapping[str, tuple[str, str]]:
    """The knowledge base and file name of each document."""
    rows = await platform.database.read(_NAMED.all, {"wanted": list(documents)})
    return {row["id"]: (row["knowledge_base_id"], row["filename"]) for row in rows}


def _of_hit(hit: Hit, document: tuple[str, str], question: Embedded) -> Ranked:
    score, near = round(hit.score, 6), question.similarity(hit.cosine)
    kb_id, source = document
    return Ranked(
        passage_of(hit.point, source, score, near, hit.words),
        kb_id,
        hit.point.position,
        near,
        hit.words,
        score,
        tree_level=hit.point.payload.get("tree_level", 0),
    )
