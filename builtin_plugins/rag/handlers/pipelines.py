"""Routes of pipelines, relative to the service root."""

from __future__ import annotations

from aiohttp import web

from builtin_plugins.rag.errors import (
    DocumentNotFound,
    KnowledgeBaseGone,
    KnowledgeBaseNotFound,
    NotInTeam,
    NotOwner,
    PipelineNotFound,
)
from builtin_plugins.rag.permissions import PIPELINE_CREATE
from builtin_plugins.rag.questions import asking, searching
from builtin_plugins.rag.schemas import (
    PipelineCreate,
    PipelineCreated,
    PipelineOut,
    PipelineQuery,
    PipelineUpdate,
    QueryAnswer,
    QueryRequest,
    SearchAnswer,
    SearchRequest,
)
from builtin_plugins.rag.services import pipelines as service
from kernel.sdk import AUTHENTICATED, Context, Page, RouteTable, Unavailable, permission, send_events

from ..schemas import MessageWithId

routes = RouteTable("Pipelines")


@routes.post(
    "/pipeline",
    access=permission(PIPELINE_CREATE),
    body=PipelineCreate,
    returns=PipelineCreated,
    errors=(KnowledgeBaseNotFound, NotInTeam),
)
async def create(ctx: Context, body: PipelineCreate) -> PipelineCreated:
    """Create a pipeline over knowledge bases."""
    pipeline = await service.create(ctx.caller, body)
    fields = pipeline.model_dump(include=set(PipelineCreated.model_fields))
    return PipelineCreated(pipeline_id=pipeline.id, message="Pipeline created", **fields)


@routes.get(
    "/pipeline", access=AUTHENTICATED, query=PipelineQuery, returns=Page[PipelineOut], token_scopes=("ask",)
)
async def list_all(ctx: Context, query: PipelineQuery) -> Page[PipelineOut]:
    """List the pipelines that the caller can see."""
    items, total = await service.list_page(ctx.caller, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.get(
    "/pipeline/{pipeline_id:uuid}",
    access=AUTHENTICATED,
    returns=PipelineOut,
    errors=(PipelineNotFound,),
    token_scopes=("ask",),
)
async def get(ctx: Context, pipeline_id: str) -> PipelineOut:
    """Show one pipeline."""
    return await service.get(ctx.caller, pipeline_id)


@routes.patch(
    "/pipeline/{pipeline_id:uuid}",
    access=AUTHENTICATED,
    body=PipelineUpdate,
    returns=PipelineOut,
    errors=(PipelineNotFound, KnowledgeBaseNotFound, NotOwner, NotInTeam),
)
async def update(ctx: Context, pipeline_id: str, body: PipelineUpdate) -> PipelineOut:
    """Change the name, the knowledge bases or the visibility."""
    return await service.update(ctx.caller, pipeline_id, body)


@routes.delete(
    "/pipeline/{pipeline_id:uuid}",
    access=AUTHENTICATED,
    returns=MessageWithId,
    errors=(PipelineNotFound, NotOwner),
)
async def remove(ctx: Context, pipeline_id: str) -> MessageWithId:
    """Delete a pipeline. Its knowledge bases are kept."""
    await service.remove(ctx.caller, pipeline_id)
    return MessageWithId(message="Pipeline deleted", id=pipeline_id)


@routes.post(
    "/pipeline/{pipeline_id:uuid}/query",
    access=AUTHENTICATED,
    body=QueryRequest,
    returns=QueryAnswer,
    also_media_types=("text/event-stream",),
    errors=(PipelineNotFound, DocumentNotFound, KnowledgeBaseGone, Unavailable),
    long=True,
    token_scopes=("ask",),
)
async def query(ctx: Context, pipeline_id: str, body: QueryRequest) -> QueryAnswer | web.StreamResponse:
    """Ask a question. With `Accept: text/event-stream`, the answer is streamed as the events `sources`,
    `token`… and `done`; methods that ask the model before they answer also send `step` while they do.

    Only knowledge bases that the caller can see are searched. If there are none, the response is 409.
    """
    prepared_question = await asking.prepare(ctx.caller, pipeline_id, body)
    if "text/event-stream" in ctx.request.headers.get("Accept", ""):
        return await send_events(ctx.request, asking.as_server_events(asking.stream(prepared_question)))
    return await asking.answer(prepared_question)


@routes.post(
    "/pipeline/{pipeline_id:uuid}/search",
    access=AUTHENTICATED,
    body=SearchRequest,
    returns=SearchAnswer,
    errors=(PipelineNotFound, KnowledgeBaseGone, Unavailable),
    long=True,
    token_scopes=("ask",),
)
async def search(ctx: Context, pipeline_id: str, body: SearchRequest) -> SearchAnswer:
    """Find passages in the pipeline's knowledge bases, ranked, without generating an answer."""
    return await searching.search_pipeline(ctx.caller, pipeline_id, body)
