"""Passages and documents for other plugins: searched over everything that the caller may read, and read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag import api
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.questions.reporting import Done
from builtin_plugins.rag.questions.retrieval import named
from builtin_plugins.rag.rights.reading import readable, reading_scope
from builtin_plugins.rag.services import documents, knowledge_bases
from builtin_plugins.rag.services.lookup import ENTRY
from kernel.sdk import BadRequest, Caller, NotFound, PayloadTooLarge, Scope, scope_of

MOST_SEARCHED = 50
LONGEST_TEXT = 1_000_000
_PAGE = 500


async def pipeline_answer(caller: Caller, done: Done) -> api.PipelineAnswer:
    """An answer as other plugins see it."""
    reader = await reading_scope(caller)
    places = await named(caller.platform, reader, {one.document_id for one in done.passages})
    answer = done.answer
    return api.PipelineAnswer(
        answer.answer,
        [replace(one, knowledge_base_id=places.get(one.document_id, (None,))[0]) for one in done.passages],
        answer.confidence,
        answer.model_used,
        answer.tokens_used if answer.model_calls else 0,
        answer.method,
        answer.output_tokens if answer.model_calls else 0,
    )


def searched_bases(session: Session, scope: Scope, base_ids: Sequence[str] | None) -> list[KnowledgeBase]:
    """Those with these ids, or all that a scope sees. Raises KnowledgeBaseNotFound, BadRequest for many."""
    if base_ids is not None:
        if len(base_ids) > MOST_SEARCHED:
            raise BadRequest(f"Name at most {MOST_SEARCHED} knowledge bases")
        return [knowledge_bases.find(session, scope, kb_id) for kb_id in dict.fromkeys(base_ids)]
    query = select(KnowledgeBase).where(scope.sees(KnowledgeBase)).order_by(KnowledgeBase.created_at)
    bases = list(session.scalars(query.limit(MOST_SEARCHED + 1)))
    if len(bases) > MOST_SEARCHED:
        raise BadRequest(f"There are more than {MOST_SEARCHED} knowledge bases; name those to search")
    return bases


async def list_documents(caller: Caller, limit: int, offset: int) -> list[api.DocumentEntry]:
    """Implements the hook of the same name."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_entries, scope, limit, offset)


def _entries(session: Session, scope: Scope, limit: int, offset: int) -> list[api.DocumentEntry]:
    query = (
        select(*ENTRY)
        .join(KnowledgeBase, KnowledgeBase.id == Document.knowledge_base_id)
        .where(scope.sees(KnowledgeBase), readable(scope), Document.status == "completed")
        .order_by(Document.uploaded_at, Document.id)
    )
    rows = session.execute(query.limit(limit).offset(offset)).mappings()
    return [api.DocumentEntry(**row) for row in rows]


async def read_document(
    caller: Caller, kb_id: str, document_id: str, chunk_id: str | None
) -> api.DocumentText:
    """Implements the hook of the same name."""
    document = await documents.get(caller, kb_id, document_id)
    text, end, offset, total = "", 0, 0, 1
    while offset < total:
        chunks, total = await documents.chunks(caller, kb_id, document_id, _PAGE, offset)
        for chunk in chunks:
            if chunk.chunk_id == chunk_id:
                return api.DocumentText(document.filename, chunk.text)
            # Passages overlap, or only white space is between them.
            text += "\n" * (chunk.char_start > end) + chunk.text[max(0, end - chunk.char_start) :]
            end = max(end, chunk.char_end)
        if chunk_id is None and len(text) > LONGEST_TEXT:
            raise PayloadTooLarge("The document is too long to be read in one piece; search it instead")
        offset += _PAGE
    if chunk_id is not None:
        raise NotFound("Passage not found")
    return api.DocumentText(document.filename, text)
