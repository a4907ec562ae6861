"""Documents that come with a question: they are asked beside the pipeline's, or instead of them.

Beside others, they have up to half of the passages: "does this fit our rules?" resembles the rules alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from builtin_plugins.rag.errors import DocumentNotFound
from builtin_plugins.rag.filters.binding import IN_BODY, BoundFilter, FilterSource
from builtin_plugins.rag.filters.compiling import DOCUMENT_ID
from builtin_plugins.rag.filters.grammar import FieldCondition, MetadataFilter
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.passages import RetrievedPassages
from builtin_plugins.rag.questions.question import Inquiry
from builtin_plugins.rag.questions.retrieval import Sought, retrieve
from builtin_plugins.rag.schemas import QueryRequest
from builtin_plugins.rag.services import loading
from builtin_plugins.rag.services.lookup import find_documents
from kernel.sdk import Caller


async def with_attachments(
    caller: Caller,
    request: QueryRequest,
    bases: Sequence[KnowledgeBase],
    filters: Sequence[FilterSource],
) -> tuple[Sequence[KnowledgeBase], Sequence[FilterSource]]:
    """The knowledge bases and filters of a question, with its attached documents.

    Filters are for the documents that are not attached, unless only those are asked. Raises DocumentNotFound,
    also for one that the caller may not read, or that a newer version has replaced.
    """
    if not request.attachments:
        return bases, filters
    ids = list(dict.fromkeys(request.attachments))
    entries = await find_documents(caller, ids)
    if len(entries) < len(ids):
        raise DocumentNotFound("An attached document was not found; ask without it")
    if request.as_of is None and any(one.superseded_at is not None for one in entries.values()):
        raise DocumentNotFound("An attached document has been replaced by a newer version; attach that")
    base_ids = dict.fromkeys(entries[one].knowledge_base_id for one in ids)
    others = frozenset(base.id for base in bases)
    new = [one for one in base_ids if request.only_attachments or one not in others]
    attached = [await loading.knowledge_base(caller, one) for one in new]
    condition = FieldCondition(type="in", key=DOCUMENT_ID.name, value=[*ids])
    chosen = FilterSource(MetadataFilter(condition), base_ids=frozenset(new))
    if request.only_attachments:
        return attached, [chosen, *(one for one in filters if one.loc == IN_BODY)]
    sources = [replace(one, base_ids=others, exempt=frozenset(ids)) for one in filters]
    return [*bases, *attached], [*sources, chosen]


async def with_attached_passages(
    inquiry: Inquiry, sought: Sought, retrieved: RetrievedPassages, top_k: int
) -> RetrievedPassages:
    """What was retrieved, with passages of the attached documents among the first `top_k`.

    Those that a search of all would not put there come last, with no higher score. Raises Unavailable.
    """
    request = inquiry.request
    if not isinstance(request, QueryRequest) or not request.attachments or request.only_attachments:
        return retrieved
    share = (top_k + 1) // 2
    attached = replace(sought, documents=_among(sought.documents, request.attachments), top_k=share)
    best = await retrieve(inquiry.platform, inquiry.bases, attached)
    top, rest = list(retrieved.passages[:top_k]), retrieved.passages[top_k:]
    shown = {one.chunk_id for one in top}
    of_attached = sum(one.document_id in request.attachments for one in top)
    missing = [one for one in best.passages if one.chunk_id not in shown][: max(0, share - of_attached)]
    for one in reversed(top.copy()):
        if len(top) + len(missing) > top_k and one.document_id not in request.attachments:
            top.remove(one)
    lowest = min((one.score for one in top), default=1.0)
    added = [one.scored(min(one.score, lowest)) for one in missing]
    again = {one.chunk_id for one in (*top, *added)}
    return replace(retrieved, passages=[*top, *added, *(one for one in rest if one.chunk_id not in again)])


def _among(documents: BoundFilter, ids: Sequence[str]) -> BoundFilter:
    conditions = dict.fromkeys(documents.conditions, Document.id.in_(ids))
    key, stored = f"attached {sorted(ids)}", dict.fromkeys(conditions)
    attached = replace(documents, conditions=conditions, stored_ids=stored, key=key, is_filter=True)
    return documents.narrowed(attached)
