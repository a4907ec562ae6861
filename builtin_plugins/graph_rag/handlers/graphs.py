"""Routes that ask the graphs that the caller sees."""

from __future__ import annotations

from kernel.sdk import AUTHENTICATED, Context, RouteTable

from .. import schemas
from ..asking import answers
from ..errors import EntityNotFound

routes = RouteTable("Graph-RAG", token_scopes=("ask",))


@routes.post(
    "/graph-rag/retrieve", access=AUTHENTICATED, body=schemas.RetrieveRequest, returns=schemas.Retrieved
)
async def retrieve(ctx: Context, body: schemas.RetrieveRequest) -> schemas.Retrieved:
    """Find entities that are related to those named in a question."""
    return await answers.retrieve(ctx.caller, body)


@routes.post(
    "/graph-rag/entity-context",
    access=AUTHENTICATED,
    body=schemas.ContextRequest,
    returns=schemas.EntityContext,
    errors=(EntityNotFound,),
)
async def entity_context(ctx: Context, body: schemas.ContextRequest) -> schemas.EntityContext:
    """Describe an entity: its neighbors, its documents, passages that name it, other names for it."""
    return await answers.context(ctx.caller, body)


@routes.post(
    "/graph-rag/graph/search",
    access=AUTHENTICATED,
    body=schemas.SearchRequest,
    returns=schemas.EntitiesFound,
)
async def search(ctx: Context, body: schemas.SearchRequest) -> schemas.EntitiesFound:
    """Find entities by name; case does not matter."""
    return await answers.search(ctx.caller, body)


@routes.get("/graph-rag/graph/stats", access=AUTHENTICATED, returns=schemas.Stats)
async def stats(ctx: Context) -> schemas.Stats:
    """Count what is in the graphs that the caller sees."""
    return await answers.stats(ctx.caller)


@routes.get(
    "/graph-rag/graph/documents",
    access=AUTHENTICATED,
    query=schemas.DocumentsQuery,
    returns=schemas.GraphDocuments,
)
async def documents(ctx: Context, query: schemas.DocumentsQuery) -> schemas.GraphDocuments:
    """List the documents with a graph that the caller sees, newest first."""
    return await answers.documents(ctx.caller, query)
