"""Routes that take texts, and those of the service itself."""

from __future__ import annotations

from kernel.sdk import AUTHENTICATED, PUBLIC, Context, RouteTable, Unavailable

from .. import schemas
from ..building import texts
from ..errors import DocumentOfKnowledgeBase

routes = RouteTable("Graph-RAG")
VERSION = "0.1.0"
CAPABILITIES = [
    "extract",
    "construct-graph",
    "retrieve",
    "entity-context",
    "graph/search",
    "graph/correlate",
    "overview",
    "sparql",
    "graph/export",
    "graph/import",
]
_LARGEST = 64 * 1024 * 1024


@routes.get("/", access=PUBLIC, returns=schemas.RootOut)
async def root(ctx: Context) -> schemas.RootOut:
    """Show the name and capabilities of the service."""
    return schemas.RootOut(
        service="graph-rag",
        version=VERSION,
        status="running",
        capabilities=CAPABILITIES,
        docs="/docs",
        health="/health",
    )


@routes.post(
    "/graph-rag/extract",
    access=AUTHENTICATED,
    body=schemas.ExtractRequest,
    returns=schemas.Extracted,
    errors=(Unavailable,),
    long=True,
    token_scopes=("ask",),
)
async def extract(ctx: Context, body: schemas.ExtractRequest) -> schemas.Extracted:
    """Find the entities of a text and how they are related. Nothing is stored."""
    return await texts.extract(ctx.caller, body)


@routes.post(
    "/graph-rag/construct-graph",
    access=AUTHENTICATED,
    body=schemas.ConstructRequest,
    returns=schemas.Constructed,
    errors=(Unavailable,),
    long=True,
    max_body=_LARGEST,
)
async def construct(ctx: Context, body: schemas.ConstructRequest) -> schemas.Constructed:
    """Build the graph of a document. It belongs to the caller; sent again, it replaces the earlier one."""
    return await texts.construct(ctx.caller, body)


@routes.delete(
    "/graph-rag/graph/document/{document_id:path}",
    access=AUTHENTICATED,
    returns=schemas.GraphDropped,
    errors=(DocumentOfKnowledgeBase, Unavailable),
)
async def drop(ctx: Context, document_id: str) -> schemas.GraphDropped:
    """Delete a graph that the caller constructed, with what only it names. Counts are 0 if there is none."""
    return await texts.drop(ctx.caller, document_id)
