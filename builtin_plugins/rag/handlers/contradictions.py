"""Routes of the report of contradictions, relative to the service root."""

from __future__ import annotations

from builtin_plugins.rag.contradictions.job import start
from builtin_plugins.rag.contradictions.reading import read_report
from builtin_plugins.rag.errors import KnowledgeBaseNotFound, NotOwner
from builtin_plugins.rag.schemas import MessageWithId
from builtin_plugins.rag.schemas_contradictions import ContradictionRequest, ContradictionsOut
from kernel.sdk import AUTHENTICATED, Context, PageQuery, RouteTable

routes = RouteTable("Knowledge bases")
_PATH = "/knowledge-bases/{kb_id:uuid}/contradictions"


@routes.post(
    _PATH,
    access=AUTHENTICATED,
    body=ContradictionRequest | None,
    returns=MessageWithId,
    status=202,
    errors=(KnowledgeBaseNotFound, NotOwner),
)
async def find(ctx: Context, kb_id: str, body: ContradictionRequest | None) -> MessageWithId:
    """Compare the documents of a knowledge base with each other, without a model unless it is asked for.
    Returns the id of the job that does it; what it finds replaces the report.
    """
    job_id = await start(ctx.caller, kb_id, 0 if body is None else body.model_calls)
    return MessageWithId(message="Started; follow it at /v1/jobs", id=job_id)


@routes.get(
    _PATH,
    access=AUTHENTICATED,
    query=PageQuery,
    returns=ContradictionsOut,
    errors=(KnowledgeBaseNotFound,),
    token_scopes=("ask",),
)
async def read(ctx: Context, kb_id: str, query: PageQuery) -> ContradictionsOut:
    """Show sentences of current documents that contradict each other: that differ only in a number, a date or
    a negation, or that a model says so of. Both documents of a pair are such that the caller may read.
    """
    return await read_report(ctx.caller, kb_id, query)
