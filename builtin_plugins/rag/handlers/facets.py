"""Routes that count documents per value of their fields, relative to the service root."""

from __future__ import annotations

from builtin_plugins.rag.errors import KnowledgeBaseGone, KnowledgeBaseNotFound, PipelineNotFound
from builtin_plugins.rag.schemas_facets import FacetRequest, FacetsOut
from builtin_plugins.rag.services import facets as service
from kernel.sdk import AUTHENTICATED, Context, RouteTable

routes = RouteTable("Documents")


@routes.post(
    "/knowledge-bases/{kb_id:uuid}/facets",
    access=AUTHENTICATED,
    body=FacetRequest,
    returns=FacetsOut,
    errors=(KnowledgeBaseNotFound,),
    token_scopes=("ask",),
)
async def of_knowledge_base(ctx: Context, kb_id: str, body: FacetRequest) -> FacetsOut:
    """Count the documents per value of their fields: those that the list with the same filter has."""
    return await service.count_in_base(ctx.caller, kb_id, body)


@routes.post(
    "/pipeline/{pipeline_id:uuid}/facets",
    access=AUTHENTICATED,
    body=FacetRequest,
    returns=FacetsOut,
    errors=(PipelineNotFound, KnowledgeBaseGone),
    token_scopes=("ask",),
)
async def of_pipeline(ctx: Context, pipeline_id: str, body: FacetRequest) -> FacetsOut:
    """Count the documents that the pipeline answers from per value of their fields."""
    return await service.count_in_pipeline(ctx.caller, pipeline_id, body)
