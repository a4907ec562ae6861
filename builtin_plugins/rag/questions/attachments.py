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
    """What was retrieved, and the best passages of the attached documents. Raises Unavailable."""
    ids = _beside(inquiry)
    if not ids:
        return retrieved
    attached = replace(sought, documents=_among(sought.documents, ids), top_k=_share(top_k))
    best = await retrieve(inquiry.platform, inquiry.bases, attached)
    present = {one.chunk_id for one in retrieved.passages}
    lowest = min((one.score for one in retrieved.passages), default=1.0)
    added = [one.scored(min(one.score, lowest)) for one in best.passages if one.chunk_id not in present]
    return with_share(inquiry, replace(retrieved, passages=[*retrieved.passages, *added]), top_k)


def with_share(inquiry: Inquiry, retrieved: RetrievedPassages, top_k: int) -> RetrievedPassages:
    """The same with passages of the attached documents among the first `top_k`: half of these, if there are
    so many. Those of a lower rank come last, with no higher score.
    """
    ids = _beside(inquiry)
    if not ids:
        return retrieved
    top, rest = list(retrieved.passages[:top_k]), retrieved.passages[top_k:]
    lacking = max(0, _share(top_k) - sum(one.document_id in ids for one in top))
    lifted = [one for one in rest if one.document_id in ids][:lacking]
    others = [one for one in top if one.document_id not in ids]
    surplus = others[len(others) - max(0, len(top) + len(lifted) - top_k) :]
    top = [one for one in top if one not in surplus]
    lowest = min((one.score for one in top), default=1.0)
    top += [one.scored(min(one.score, lowest)) for one in lifted]
    return replace(retrieved, passages=[*top, *surplus, *(one for one in rest if one not in lifted)])


def _beside(inquiry: Inquiry) -> Sequence[str]:
    """The documents that are attached beside others."""
    request = inquiry.request
    return request.attachments if isinstance(request, QueryRequest) and not request.only_attachments else ()


def _share(top_k: int) -> int:
    return (top_k + 1) // 2


def _among(documents: BoundFilter, ids: Sequence[str]) -> BoundFilter:
    conditions = dict.fromkeys(documents.conditions, Document.id.in_(ids))
    key, stored = f"attached {sorted(ids)}", dict.fromkeys(conditions)
    attached = replace(documents, conditions=conditions, stored_ids=stored, key=key, is_filter=True)
    return documents.narrowed(attached)
