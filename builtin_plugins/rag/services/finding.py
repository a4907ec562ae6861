"""Documents by their names in all knowledge bases, and headings of the latest ones to ask about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag.answering.headings import body_of, is_question
from builtin_plugins.rag.answering.sentences import split_sentences
from builtin_plugins.rag.filters.matching import has_part
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.questions.question import in_thread
from builtin_plugins.rag.rights.reading import readable, reading_scope
from builtin_plugins.rag.schemas_finding import HeadingTopic, NamedDocument
from builtin_plugins.rag.services import loading
from builtin_plugins.rag.services.identities import CURRENT
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import Caller, Scope, scope_of

_LATEST: Final = 6
"""Documents whose beginnings are read for topics."""
_PASSAGES: Final = 8
"""Passages of each that are read."""
_SHORTEST, _LONGEST = 4, 70
_FILENAME: Any = Document.__table__.c.filename


async def find_by_name(caller: Caller, text: str, limit: int) -> list[NamedDocument]:
    """The latest documents that the caller may read and whose names have all words of a text."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_documents_by_name, scope, text.split(), limit)


def _documents_by_name(
    session: Session, scope: Scope, words: Sequence[str], limit: int
) -> list[NamedDocument]:
    query = (
        select(
            Document.id.label("document_id"),
            Document.filename,
            KnowledgeBase.id.label("knowledge_base_id"),
            KnowledgeBase.name.label("knowledge_base_name"),
        )
        .join(KnowledgeBase, KnowledgeBase.id == Document.knowledge_base_id)
        .where(scope.sees(KnowledgeBase), readable(scope), CURRENT)
        .where(*(has_part(_FILENAME, "contains", word) for word in words))
        .order_by(Document.uploaded_at.desc(), Document.id)
        .limit(limit)
    )
    return [NamedDocument(**row) for row in session.execute(query).mappings()]


async def list_topics(caller: Caller, kb_id: str, limit: int) -> list[HeadingTopic]:
    """Headings of the latest documents of a knowledge base, in turn one of each.

    Raises KnowledgeBaseNotFound.
    """
    base = await loading.knowledge_base(caller, kb_id)
    scope = await reading_scope(caller)
    vectors = caller.platform.resource(VECTORS)
    topics: list[list[HeadingTopic]] = []
    for document_id, filename in await caller.platform.database.read(_latest, scope, kb_id):
        points, _ = await vectors.points(base.collection, document_id, _PASSAGES, 0)
        headings = await in_thread(caller.platform, _headings, [one.text for one in points])
        topics.append(list(_topics(document_id, filename, headings)))
    return [one for one in chain(*zip_longest(*topics)) if one is not None][:limit]


def _latest(session: Session, scope: Scope, kb_id: str) -> Sequence[Any]:
    mine = (Document.knowledge_base_id == kb_id) & (Document.status == "completed") & readable(scope)
    query = select(Document.id, Document.filename).where(mine, Document.chunk_count > 0)
    return session.execute(query.order_by(Document.uploaded_at.desc(), Document.id).limit(_LATEST)).all()


def _headings(texts: Sequence[str]) -> list[str]:
    headings = (
        body_of(sentence.text).strip()
        for text in texts
        for sentence in split_sentences(text)
        if sentence.is_heading
    )
    return list(dict.fromkeys(one for one in headings if _says_something(one)))


def _says_something(heading: str) -> bool:
    return _SHORTEST <= len(heading) <= _LONGEST and sum(map(str.isalpha, heading)) * 2 > len(heading)


def _topics(document_id: str, filename: str, headings: Sequence[str]) -> Iterable[HeadingTopic]:
    """What stands below the title says more to ask about than the title, which comes last."""
    for place in [*range(1, len(headings)), *range(min(1, len(headings)))]:
        yield HeadingTopic(
            document_id=document_id,
            filename=filename,
            heading=headings[place],
            is_title=place == 0,
            is_question=is_question(headings[place]),
        )
