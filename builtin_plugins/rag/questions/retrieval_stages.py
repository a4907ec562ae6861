"""Finding passages for a question: search → enhance → rerank → cut → widen."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import select

from builtin_plugins.rag import api
from builtin_plugins.rag.models import Document
from builtin_plugins.rag.passages import DEPTH, RetrievedPassages
from builtin_plugins.rag.questions.attachments import with_attached_passages, with_share
from builtin_plugins.rag.questions.enhancing import enhanced
from builtin_plugins.rag.questions.periods import within_period
from builtin_plugins.rag.questions.question import Inquiry
from builtin_plugins.rag.questions.reporting import plural
from builtin_plugins.rag.questions.rerankers import RERANKER
from builtin_plugins.rag.questions.reranking import reranked
from builtin_plugins.rag.questions.retrieval import Sought, retrieve, widened
from builtin_plugins.rag.settings import RagSettings

MOST_CANDIDATES = 200
GRAPH_CANDIDATES = 50
"""Passages that a graph may move; new ones are compared with the last of them."""


async def find(inquiry: Inquiry, plan: api.SearchPlan) -> RetrievedPassages:
    """Find the passages for an inquiry, best first, with the options of its request. Raises Unavailable."""
    request, trace = inquiry.request, inquiry.trace
    top_k = plan.top_k or request.top_k
    depth = max(top_k, DEPTH)
    plan = replace(plan, trees=_trees(inquiry, plan))
    sought = Sought(
        plan.text,
        _candidates(inquiry, top_k),
        inquiry.documents,
        inquiry.hybrid,
        plan.imagined,
        plan.trees,
        request.question,
        inquiry.language,
        earlier=request.as_of is not None,
    )

    async def search() -> RetrievedPassages:
        here = replace(sought, documents=inquiry.documents)
        retrieved = await retrieve(inquiry.platform, inquiry.bases, here)
        return await with_attached_passages(inquiry, here, retrieved, top_k)

    searching = f"Searching {plural(len(inquiry.bases), 'knowledge base')}"
    with inquiry.paused(), trace.step("search", searching):
        retrieved = await within_period(inquiry, search)
    if request.graph and request.as_of is not None:
        trace.degrade("graph: it knows only the present versions, and was not asked")
    elif request.graph:
        with trace.step("enhance", "Following the knowledge graph"):
            retrieved = await enhanced(inquiry, retrieved, depth)
    if request.rerank and not _reranks(inquiry):
        trace.degrade("rerank: this server has no reranker, passages stay in the search's order")
    elif request.rerank:
        with trace.step("rerank", f"Looking closer at {plural(len(retrieved.passages), 'passage')}"):
            retrieved = await reranked(inquiry, retrieved, _pool(inquiry))
    retrieved = with_share(inquiry, retrieved, top_k)
    retrieved = replace(
        retrieved, passages=retrieved.passages[:top_k], first=retrieved.first or retrieved.passages[:DEPTH]
    )
    if request.parent_context:
        with trace.step("widen", "Reading around the passages"):
            retrieved = await widened(inquiry.platform, retrieved)
    trace.details["retrieval"] = _label(inquiry, plan)
    if plan.trees and not await _any_tree(inquiry):
        trace.degrade("raptor: no document has a tree, only passages were searched")
    return retrieved


def _candidates(inquiry: Inquiry, top_k: int) -> int:
    request = inquiry.request
    least = max(top_k, DEPTH, GRAPH_CANDIDATES if request.graph else 0)
    if not _reranks(inquiry):
        return least
    more = top_k * inquiry.platform.settings_of(RagSettings).rerank_candidates
    return max(least, _pool(inquiry), min(more, MOST_CANDIDATES))


def _reranks(inquiry: Inquiry) -> bool:
    return inquiry.request.rerank and inquiry.platform.resource(RERANKER) is not None


def _pool(inquiry: Inquiry) -> int:
    """How many passages a reranker sees when deciding whether there is an answer."""
    return min(DEPTH * inquiry.platform.settings_of(RagSettings).rerank_candidates, MOST_CANDIDATES)


def _trees(inquiry: Inquiry, plan: api.SearchPlan) -> bool:
    """Whether to search trees: `parent_context` and explicitly requested hybrid search take precedence."""
    if not plan.trees:
        return False
    for name, is_requested in (
        ("parent_context", inquiry.request.parent_context),
        ("hybrid", _is_asked_for_hybrid(inquiry)),
    ):
        if is_requested:
            inquiry.trace.degrade(f"raptor: {name} was asked for and goes first; summaries were not searched")
            return False
    return True


async def _any_tree(inquiry: Inquiry) -> bool:
    """Whether any of the documents that are searched has a summary."""
    with_tree = select(Document.id).where(Document.tree_nodes > 0, inquiry.documents.condition()).limit(1)
    document_id = await inquiry.platform.database.read(lambda session: session.scalar(with_tree))
    return document_id is not None


def _is_asked_for_hybrid(inquiry: Inquiry) -> bool:
    return inquiry.hybrid and inquiry.requests_hybrid


def _label(inquiry: Inquiry, plan: api.SearchPlan) -> str:
    """What `method_details.retrieval` says (wire-facts 11.4)."""
    if inquiry.request.parent_context:
        return "parent_context"
    if plan.trees:
        return "raptor"
    return "hybrid" if inquiry.hybrid else "dense"
