"""Routes that help people to find something: documents by name, what could be asked, how often it is."""

from __future__ import annotations

from builtin_plugins.rag.errors import KnowledgeBaseNotFound, NotOwner
from builtin_plugins.rag.schemas_figures import QuestionFigures, QuestionFiguresQuery
from builtin_plugins.rag.schemas_finding import NamedDocuments, NameQuery, TopicQuery, Topics
from builtin_plugins.rag.services import figures
from builtin_plugins.rag.services import finding as service
from kernel.sdk import AUTHENTICATED, Context, RouteTable

routes = RouteTable("Documents")


@routes.get(
    "/documents", access=AUTHENTICATED, query=NameQuery, returns=NamedDocuments, token_scopes=("ask",)
)
async def find_by_name(ctx: Context, query: NameQuery) -> NamedDocuments:
    """Find documents by their names, in all knowledge bases that the caller sees."""
    return NamedDocuments(items=await service.find_by_name(ctx.caller, query.q, query.limit))


@routes.get(
    "/knowledge-bases/{kb_id:uuid}/topics",
    access=AUTHENTICATED,
    query=TopicQuery,
    returns=Topics,
    errors=(KnowledgeBaseNotFound,),
    token_scopes=("ask",),
)
async def list_topics(ctx: Context, kb_id: str, query: TopicQuery) -> Topics:
    """List headings of the latest documents, as suggestions for a first question. No model is asked."""
    return Topics(items=await service.list_topics(ctx.caller, kb_id, query.limit))


@routes.get(
    "/figures",
    access=AUTHENTICATED,
    query=QuestionFiguresQuery,
    returns=QuestionFigures,
    errors=(KnowledgeBaseNotFound, NotOwner),
)
async def show_figures(ctx: Context, query: QuestionFiguresQuery) -> QuestionFigures:
    """Count questions, refusals and ratings per day, in the knowledge bases that the caller may change."""
    return await figures.show(ctx.caller, query.days, query.knowledge_base_id)
