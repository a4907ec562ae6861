"""Searching: the question's vector, a search in each knowledge base, one ranking."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sqlalchemy import String, bindparam, select

from builtin_plugins.documents.api import Pages, Sections
from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.errors import EngineChanged
from builtin_plugins.rag.filters.binding import BoundFilter
from builtin_plugins.rag.models import Document, KnowledgeBase, earlier_collection, reading_collection
from builtin_plugins.rag.passages import CitedVersion, Passage, RetrievedPassages
from builtin_plugins.rag.questions.copies import MOST_COMPARED, without_copies
from builtin_plugins.rag.questions.naming import CANDIDATES, prefer_named, with_both_years, with_plain_years
from builtin_plugins.rag.questions.reporting import passage_of
from builtin_plugins.rag.questions.word_hits import (
    BaseHits,
    replaced_passages,
    unread_passages,
    with_cosines,
    with_meaning,
)
from builtin_plugins.rag.rights.reading import read_binds, readable_by_binds
from builtin_plugins.rag.services.embedding import embed, engine_changed
from builtin_plugins.rag.services.loading import pages_of, sections_of
from builtin_plugins.vectors.api import (
    VECTORS,
    EngineMismatch,
    Hit,
    Query,
    StoredPoint,
    hybrid_weight,
    searched_text,
)
from kernel.sdk import Platform, Prepared, Scope
from kernel.sdk.storage import Among, Ids


async def merged(
    platform: Platform, rankings: Sequence[BaseHits], question: str, aim: Embedded, k: int, *, hybrid: bool
) -> list[Hit]:
    """The `k` best of all; `aim` is the question, embedded by the first knowledge base's model.

    Dense scores are similarities on that model's scale.

    Raises ModelUnavailable when hits of another model can't be embedded again.
    """
    model = rankings[0].base.embedding_model
    hits: list[Hit] = []
    for ranking in rankings:
        own = list(ranking.hits)
        hits += own if ranking.base.embedding_model == model else await by_model(platform, model, aim, own)
    if hybrid and len(rankings) == 1:
        return hits[:k]
    return _ranked(hits, aim, hybrid_weight(question, aim.meaning) if hybrid else None)[:k]


async def by_model(platform: Platform, model: str, question: Embedded, hits: Sequence[Hit]) -> list[Hit]:
    """The same hits with their cosines to `question`, embedded again by `model`."""
    texts = [searched_text(hit.point.text, hit.point.payload) for hit in hits]
    return await with_cosines(platform, model, question, hits, texts)


async def as_asked(platform: Platform, model: str, question: Embedded, hits: Sequence[Hit]) -> list[Hit]:
    """The same hits with their cosines to the question, for a search that was aimed at another vector.

    The search itself returns these for the question's own model; other hits are embedded again.
    """
    others = [hit for hit in hits if hit.question_cosine is None]
    again = iter(await by_model(platform, model, question, others))
    return [
        next(again) if hit.question_cosine is None else replace(hit, cosine=hit.question_cosine)
        for hit in hits
    ]


def _ranked(hits: Sequence[Hit], question: Embedded, weight: float | None) -> list[Hit]:
    """Rank by similarity; with a `weight`, by hybrid score relative to the best."""
    best = max((question.similarity(hit.cosine) for hit in hits), default=0.0)
    best = best if best > 0.0 else 1.0

    def score(hit: Hit) -> float:
        similarity = max(0.0, question.similarity(hit.cosine))
        if weight is None:
            return similarity
        return weight * similarity / best + (1.0 - weight) * (hit.words or 0.0)

    scored = (replace(hit, score=min(1.0, score(hit))) for hit in hits)
    return sorted(scored, key=lambda hit: (-hit.score, -hit.cosine))


_MORE = 4
"""How many times as many passages to look at if some are copies of others."""

_DOCUMENT: Any = Document.__table__
_NAMED = Prepared(
    select(
        _DOCUMENT.c.id,
        _DOCUMENT.c.knowledge_base_id,
        _DOCUMENT.c.filename,
        _DOCUMENT.c.status,
        _DOCUMENT.c.version,
        _DOCUMENT.c.sha256,
        _DOCUMENT.c.uploaded_at,
    ).where(Among(_DOCUMENT.c.id, bindparam("wanted", type_=Ids(String))), readable_by_binds(_DOCUMENT.c))
)


@dataclass(frozen=True)
class Sought:
    """What to search for. `imagined` is a passage whose meaning counts as much as the text's; `documents` are
    those that are searched.

    `earlier` searches replaced versions, too, as `documents` leave them; `trees` the summaries of document
    trees. `question` is the original question, which similarities refer to if `text` differs from it.
    `language` detects the language of the question; it runs while the question is embedded.
    """

    text: str
    top_k: int
    documents: BoundFilter
    hybrid: bool = True
    imagined: str | None = None
    trees: bool = False
    question: str | None = None
    language: Callable[[], Awaitable[str | None]] | None = None
    earlier: bool = False


async def retrieve(platform: Platform, bases: Sequence[KnowledgeBase], sought: Sought) -> RetrievedPassages:
    """The best passages of the knowledge bases, each searched with its own embedding model.

    The filter is a query that the search itself runs, before ranking. If the embedding model was changed
    meanwhile, the search is repeated. Of copies in several documents the best is found, and
    so many more passages. Raises Unavailable when embedding fails.
    """
    looked = sought.top_k
    retrieved = await _current(platform, bases, sought)
    different = without_copies(retrieved.passages, sought.text)
    while len(different) < min(sought.top_k, len(retrieved.passages)) and looked == len(retrieved.passages):
        looked *= _MORE
        retrieved = await _current(platform, bases, replace(sought, top_k=looked))
        different = without_copies(retrieved.passages, sought.text)
        if looked > MOST_COMPARED:
            break
    return replace(retrieved, passages=different[: sought.top_k])


async def _current(platform: Platform, bases: Sequence[KnowledgeBase], sought: Sought) -> RetrievedPassages:
    """Search by the models that the knowledge bases have now."""
    try:
        return await _retrieve(platform, bases, sought)
    except EngineChanged:
        if not await _caught_up(platform, bases):
            raise
    return await _retrieve(platform, bases, sought)


async def _question_vector(platform: Platform, model: str, sought: Sought) -> Embedded:
    """Embed the question; how much its vectors count depends on how well the model knows its language."""
    embedding = embed(platform, model, [with_plain_years(sought.text)], "query")
    if not sought.hybrid or sought.language is None:
        return await embedding
    embedded, language = await asyncio.gather(embedding, sought.language())
    return embedded if embedded.languages is None else replace(embedded, meaning=embedded.share_in(language))


async def _caught_up(platform: Platform, bases: Sequence[KnowledgeBase]) -> bool:
    """Refresh the models of the knowledge bases; returns whether any was changed since they were read."""
    ids = [base.id for base in bases]
    columns = (KnowledgeBase.id, KnowledgeBase.embedding_model, KnowledgeBase.revision)
    query = select(*columns).where(KnowledgeBase.id.in_(ids))
    rows = await platform.database.read(lambda session: session.execute(query).all())
    rows_by_id, changed = {row.id: row for row in rows}, False
    for base in bases:
        row = rows_by_id.get(base.id)
        if row is not None and row.revision != base.revision:
            base.embedding_model, base.revision, changed = row.embedding_model, row.revision, True
    return changed


async def _retrieve(platform: Platform, bases: Sequence[KnowledgeBase], sought: Sought) -> RetrievedPassages:
    models = list(dict.fromkeys(base.embedding_model for base in bases))
    questions = {model: await _question_vector(platform, model, sought) for model in models}
    aims = {model: await _aim(platform, model, questions[model], sought.imagined) for model in models}
    model = models[0]
    question = questions[model]
    if sought.question not in (None, sought.text):
        question = await embed(platform, model, [with_plain_years(sought.question)], "query")
    aimed_elsewhere = question is not aims[model]
    depth = max(sought.top_k, CANDIDATES) if sought.hybrid else sought.top_k

    def query_of(base: KnowledgeBase) -> Query:
        aim, own = aims[base.embedding_model], base.embedding_model == model
        return Query(
            aim.vectors[0],
            depth,
            text=with_both_years(sought.text) if sought.hybrid else None,
            groups=sought.documents.groups(base.id),
            engine=aim.engine,
            unrelated=aim.unrelated,
            meaning=aim.meaning,
            question=question.vectors[0] if aimed_elsewhere and own else None,
        )

    places = [(base, base.collection) for base in bases]
    if sought.trees:
        places += [(base, base.tree_collection) for base in bases]
    # A document that is completed meanwhile is in both searches; after the other, it could be in neither.
    by_words: list[BaseHits] = []
    if not sought.earlier:
        by_words = await unread_passages(platform, bases, sought.text, sought.documents)
    answers = await asyncio.gather(*(_search(platform, *place, query_of(place[0])) for place in places))
    rankings = [BaseHits(base, hits) for (base, _), hits in zip(places, answers, strict=True)]
    if sought.earlier:
        by_words = await replaced_passages(platform, bases, sought.text, sought.documents)
    rankings += await with_meaning(platform, sought.text, by_words, rankings, aims)
    hits = await merged(platform, rankings, sought.text, aims[model], depth, hybrid=sought.hybrid)
    if sought.hybrid:
        hits = prefer_named(hits, sought.text)[: sought.top_k]
    if aimed_elsewhere:
        hits = await as_asked(platform, model, question, hits)
    return await _ranked_rows(platform, hits, question, sought.documents.reader)


async def _aim(platform: Platform, model: str, question: Embedded, imagined: str | None) -> Embedded:
    """The vector to search with: the question's, or halfway to the imagined passage's."""
    import numpy as np

    if imagined is None:
        return question
    imagined_passage = await embed(platform, model, [imagined], "passage")
    between = question.vectors[0] + imagined_passage.vectors[0]
    length = float(np.linalg.norm(between)) or 1.0
    return replace(question, vectors=(between / length).astype(np.float32).reshape(1, -1))


async def _search(platform: Platform, base: KnowledgeBase, collection: str, query: Query) -> list[Hit]:
    try:
        return await platform.resource(VECTORS).search(collection, query)
    except EngineMismatch as error:
        raise engine_changed(base.embedding_model, error) from None


async def _ranked_rows(
    platform: Platform, hits: Sequence[Hit], question: Embedded, reader: Scope
) -> RetrievedPassages:
    """Passages with their documents' names; those of documents that were deleted, or guarded, meanwhile are
    left out.
    """
    documents = await named(platform, reader, {hit.point.group for hit in hits})
    readable_hits = [hit for hit in hits if hit.point.group in documents]
    return RetrievedPassages(
        [_of_hit(hit, documents[hit.point.group], question) for hit in readable_hits], question
    )


class DocumentName(NamedTuple):
    """The knowledge base, the file name and the version of a document; whether it is still being read."""

    knowledge_base_id: str
    filename: str
    version: CitedVersion
    being_read: bool


async def named(platform: Platform, reader: Scope, documents: Iterable[str]) -> Mapping[str, DocumentName]:
    """The names of the documents that the reader may read, by id."""
    rows = await platform.database.read(_NAMED.all, {**read_binds(reader), "wanted": list(documents)})
    return {
        row["id"]: DocumentName(
            row["knowledge_base_id"],
            row["filename"],
            CitedVersion(row["version"], row["sha256"], row["uploaded_at"]),
            row["status"] == "processing",
        )
        for row in rows
    }


def _of_hit(hit: Hit, document: DocumentName, question: Embedded) -> Passage:
    score, near = round(hit.score, 6), question.similarity(hit.cosine)
    return passage_of(
        hit.point,
        document.knowledge_base_id,
        document.filename,
        score,
        near,
        matched=hit.words,
        fused=score,
        version=document.version,
        being_read=document.being_read,
    )


async def widened(platform: Platform, retrieved: RetrievedPassages) -> RetrievedPassages:
    """Each passage with one neighbor on either side, with the scores of the passage itself.

    A passage that a better one already shows in full is left out.
    """
    wide = await asyncio.gather(*(_wide(platform, item) for item in retrieved.passages))
    return replace(retrieved, passages=_without_repeats(wide, retrieved.passages))


async def _wide(platform: Platform, item: Passage) -> Passage:
    if item.tree_level:
        return item
    first = max(item.position - 1, 0)
    count = item.position - first + 2
    rows, _ = await platform.resource(VECTORS).points(
        f"rag:{item.knowledge_base_id}", item.document_id, count, first
    )
    if not any(row.id == item.chunk_id for row in rows):
        base_id = item.knowledge_base_id or ""
        collection = reading_collection(base_id) if item.being_read else earlier_collection(base_id)
        rows, _ = await platform.resource(VECTORS).points(collection, item.document_id, count, first)
    if not any(row.id == item.chunk_id for row in rows):
        return item  # deleted in the meantime
    text, pages, sections = joined(rows)
    return replace(
        item,
        text=text,
        page=rows[0].payload.get("page"),
        pages=pages,
        sections=sections,
        char_start=rows[0].payload["char_start"],
        char_end=max(row.payload["char_end"] for row in rows),
        child=item.position,
    )


def place_of(item: Passage, passages: Sequence[Passage]) -> int | None:
    """The number, from 1, of the item that shows a passage, alone or within a wider one; None without one."""
    own = (number for number, one in enumerate(passages, 1) if one.chunk_id == item.chunk_id)
    wide = (number for number, one in enumerate(passages, 1) if one.child is not None and _holds(one, item))
    return next(own, next(wide, None))


def joined(rows: Sequence[StoredPoint]) -> tuple[str, Pages, Sections]:
    """The text of passages that follow each other, the later pages that begin in it, and its sections.

    Passages overlap, or only white space is between them.
    """
    text, end = "", rows[0].payload["char_start"]
    page, pages = rows[0].payload.get("page"), list[tuple[int, int | None]]()
    sections = list[tuple[int, str]]()
    for row in rows:
        start = row.payload["char_start"]
        text += "\n" * (start > end)
        overlap = max(0, end - start)
        for place, begun in ((0, row.payload.get("page")), *pages_of(row.payload)):
            if place >= overlap and begun != page:
                pages.append((len(text) + place - overlap, begun))
                page = begun
        for place, section in sections_of(row.payload):
            if section != (sections[-1][1] if sections else ""):
                sections.append((len(text) + max(0, place - overlap), section))
        text += row.text[overlap:]
        end = max(end, row.payload["char_end"])
    return text, tuple(pages), tuple(sections)


def _without_repeats(wide: Sequence[Passage], children: Sequence[Passage]) -> list[Passage]:
    passages: list[Passage] = []
    for item, child in zip(wide, children, strict=True):
        if not any(_holds(other, child) for other in passages):
            passages.append(item)
    return passages


def _holds(wide: Passage, child: Passage) -> bool:
    return (
        wide.document_id == child.document_id
        and wide.char_start <= child.char_start
        and child.char_end <= wide.char_end
    )
