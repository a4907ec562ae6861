"""Routes of the graph, on the service `marketplace` (wire-facts 10.7)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from sqlalchemy.exc import SQLAlchemyError

from kernel.sdk import (
    ADMIN_OR_SERVICE,
    AUTHENTICATED,
    PUBLIC,
    Answer,
    BadRequest,
    Context,
    NotFound,
    PlatformError,
    RouteTable,
    Unavailable,
)

from .live import GRAPH
from .schemas import (
    AddDependency,
    BundleRequired,
    Conflicts,
    DependencyAdded,
    GraphHealthResponse,
    Id,
    Recommendations,
    RecommendQuery,
    RemoveDependency,
    Resolution,
)
from .services import edges
from .services.recommending import recommend

routes = RouteTable("Dependency graph", service="marketplace", optional=True)

PluginIds = Annotated[list[Id], Field(max_length=500, examples=[["3f0e8f6e-0c57-4d0f-9c07-5f8a3a1f6f5b"]])]


@routes.get("/v1/graph/dependencies/{plugin_id}", access=PUBLIC, returns=Resolution, errors=(Unavailable,))
async def resolve(ctx: Context, plugin_id: str) -> Resolution:
    """List everything that a plugin requires, directly or through others, and whether it is compatible."""
    return (await ctx.resource(GRAPH).index()).resolve(plugin_id)


@routes.post(
    "/v1/graph/dependencies",
    access=ADMIN_OR_SERVICE,
    query=AddDependency,
    returns=DependencyAdded,
    errors=(BadRequest,),
)
async def add(ctx: Context, query: AddDependency) -> DependencyAdded:
    """Record that a plugin requires, suggests or conflicts with another one, or requires a bundle.

    Recording it again changes kind and versions. A requirement that would create a cycle is refused.
    """
    return await ctx.write(edges.add, ctx.caller, query)


@routes.delete(
    "/v1/graph/dependencies",
    access=ADMIN_OR_SERVICE,
    query=RemoveDependency,
    status=204,
    errors=(NotFound,),
)
async def remove(ctx: Context, query: RemoveDependency) -> None:
    """Remove the relation between two plugins."""
    await ctx.write(edges.remove, ctx.caller, query)


@routes.get("/v1/graph/conflicts/{plugin_id}", access=PUBLIC, returns=Conflicts, errors=(Unavailable,))
async def conflicts(ctx: Context, plugin_id: str) -> Conflicts:
    """List the plugins that a plugin conflicts with, whichever of the two declares it."""
    records = (await ctx.resource(GRAPH).index()).conflicts(plugin_id)
    return Conflicts(plugin_id=plugin_id, conflicts=records, conflict_count=len(records))


@routes.post(
    "/v1/graph/recommendations",
    access=AUTHENTICATED,
    body=PluginIds,
    query=RecommendQuery,
    returns=Recommendations,
    errors=(Unavailable,),
)
async def recommendations(ctx: Context, body: list[str], query: RecommendQuery) -> Recommendations:
    """Recommend plugins that go with those whose ids are in the body, and say why."""
    return await recommend(ctx.caller, body, query.limit)


@routes.get("/v1/graph/bundles/{bundle}/required", access=PUBLIC, returns=BundleRequired)
async def bundle_required(ctx: Context, bundle: str) -> BundleRequired:
    """List the plugins that require a bundle; `confirmed` is false while the graph can't be queried."""
    try:
        index = await ctx.resource(GRAPH).index()
    except Unavailable as error:
        return BundleRequired(
            bundle=bundle, confirmed=False, required=None, requiring_plugins=[], reason=str(error.detail)
        )
    links = [link for link in index.incoming(bundle) if link.target_type == "bundle"]
    names = sorted({index.name(link.source) for link in links if link.kind == "requires"})
    reason = f"Required by {', '.join(names)}" if names else None
    return BundleRequired(
        bundle=bundle, confirmed=True, required=bool(names), requiring_plugins=names, reason=reason
    )


@routes.get("/v1/graph/health", access=PUBLIC, returns=GraphHealthResponse, also_statuses=(503,))
async def health(ctx: Context) -> GraphHealthResponse | Answer:
    """Check whether the graph can be queried; 503 with the same body while it can't."""
    try:
        await ctx.resource(GRAPH).check()
    except (SQLAlchemyError, OSError, PlatformError) as error:
        text = f"unhealthy: {type(error).__name__}"
        return Answer(GraphHealthResponse(status="unhealthy", checks={"rdf": text}), status=503)
    return GraphHealthResponse(status="healthy", checks={"rdf": "healthy"})
