"""Routes of correlations and overviews, and the action that finds correlations."""

from __future__ import annotations

from kernel.sdk import AUTHENTICATED, Action, Context, RouteTable

from .. import schemas_insight as schemas
from ..asking import correlations
from ..asking import network as networks
from ..asking import overview as overviews
from ..errors import EntityNotFound, GraphNotFound

routes = RouteTable("Graph-RAG", token_scopes=("ask",))


@routes.post(
    "/graph-rag/graph/correlate",
    access=AUTHENTICATED,
    body=schemas.CorrelateRequest,
    returns=schemas.Correlations,
    errors=(GraphNotFound, EntityNotFound),
    long=True,
)
async def correlate(ctx: Context, body: schemas.CorrelateRequest) -> schemas.Correlations:
    """Find what a document or entity has in common with others beyond words, with sentences that show it."""
    return await correlations.correlate(ctx.caller, body)


@routes.get(
    "/graph-rag/graph/correlations",
    access=AUTHENTICATED,
    query=schemas.CorrelateRequest,
    returns=schemas.Correlations,
    errors=(GraphNotFound, EntityNotFound),
    long=True,
)
async def strongest(ctx: Context, query: schemas.CorrelateRequest) -> schemas.Correlations:
    """List the strongest correlations, optionally those of one document or entity."""
    return await correlations.correlate(ctx.caller, query)


@routes.post(
    "/graph-rag/overview",
    access=AUTHENTICATED,
    body=schemas.OverviewRequest,
    returns=schemas.Overview,
    errors=(GraphNotFound,),
    long=True,
)
async def overview(ctx: Context, body: schemas.OverviewRequest) -> schemas.Overview:
    """Describe what a collection is about: topics with their entities, and sentences of the documents."""
    return await overviews.overview(ctx.caller, body)


@routes.get(
    "/graph-rag/graph/network", access=AUTHENTICATED, query=schemas.NetworkQuery, returns=schemas.Network
)
async def network(ctx: Context, query: schemas.NetworkQuery) -> schemas.Network:
    """Show the entities that a collection names most and what connects them, for drawing."""
    return await networks.network(ctx.caller, query)


async def _find_correlations(ctx: Context, parameters: schemas.CorrelateRequest) -> schemas.Correlations:
    return await correlations.correlate(ctx.caller, parameters)


FIND_CORRELATIONS = Action(
    "find_correlations",
    "Find documents that have rare entities in common, or entities that are related, with the sentences "
    "that show it. Names a document by document_id, an entity by its name, or neither for the strongest.",
    schemas.CorrelateRequest,
    _find_correlations,
    access=AUTHENTICATED,
    read_only=True,
    open_world=False,
    tool="find_correlations",
)
