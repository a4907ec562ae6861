"""Routes of owners, part of the service `rag-pipeline`."""

from __future__ import annotations

from builtin_plugins.published_chat.errors import (
    EndpointNotFound,
    NotEndpointOwner,
    NotPipelineOwner,
    PipelineNotFound,
    SessionNotFound,
    SlugTaken,
)
from builtin_plugins.published_chat.permissions import PUBLISH
from builtin_plugins.published_chat.schemas import (
    EndpointCreate,
    EndpointOut,
    EndpointUpdate,
    FeedbackItem,
    FeedbackQuery,
    Figures,
    FiguresQuery,
    SessionItem,
    SessionTurn,
)
from builtin_plugins.published_chat.services import endpoints, feedback, figures, sessions
from kernel.sdk import AUTHENTICATED, Context, Page, PageQuery, RouteTable, permission

routes = RouteTable("Published chat", service="rag-pipeline")

_ONE = "/endpoints/{endpoint_id:uuid}"


@routes.post(
    "/endpoints",
    access=permission(PUBLISH),
    body=EndpointCreate,
    returns=EndpointOut,
    status=201,
    errors=(PipelineNotFound, NotPipelineOwner, SlugTaken),
)
async def create(ctx: Context, body: EndpointCreate) -> EndpointOut:
    """Publish a chat. Visitors get answers from the pipeline with the rights of its owner."""
    return await endpoints.create(ctx.caller, body)


@routes.get("/endpoints", access=AUTHENTICATED, query=PageQuery, returns=Page[EndpointOut])
async def list_all(ctx: Context, query: PageQuery) -> Page[EndpointOut]:
    """List the caller's published chats."""
    items, total = await endpoints.list_page(ctx.caller, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.get(_ONE, access=AUTHENTICATED, returns=EndpointOut, errors=(EndpointNotFound,))
async def get(ctx: Context, endpoint_id: str) -> EndpointOut:
    """Show a published chat, and whether it answers now."""
    return await endpoints.get(ctx.caller, endpoint_id)


@routes.patch(
    _ONE,
    access=AUTHENTICATED,
    body=EndpointUpdate,
    returns=EndpointOut,
    errors=(EndpointNotFound, NotEndpointOwner, PipelineNotFound, NotPipelineOwner),
)
async def update(ctx: Context, endpoint_id: str, body: EndpointUpdate) -> EndpointOut:
    """Change a published chat, or switch it off and on."""
    return await endpoints.update(ctx.caller, endpoint_id, body)


@routes.delete(_ONE, access=AUTHENTICATED, status=204, errors=(EndpointNotFound, NotEndpointOwner))
async def remove(ctx: Context, endpoint_id: str) -> None:
    """Delete a published chat with its sessions, conversations and ratings."""
    await endpoints.remove(ctx.caller, endpoint_id)


@routes.get(
    _ONE + "/sessions",
    access=AUTHENTICATED,
    query=PageQuery,
    returns=Page[SessionItem],
    errors=(EndpointNotFound,),
)
async def list_sessions(ctx: Context, endpoint_id: str, query: PageQuery) -> Page[SessionItem]:
    """List the sessions of visitors, latest first."""
    items, total = await sessions.list_page(ctx.caller, endpoint_id, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.get(
    _ONE + "/sessions/{session_id:uuid}/turns",
    access=AUTHENTICATED,
    query=PageQuery,
    returns=Page[SessionTurn],
    errors=(EndpointNotFound, SessionNotFound),
)
async def list_turns(ctx: Context, endpoint_id: str, session_id: str, query: PageQuery) -> Page[SessionTurn]:
    """Read what was asked and answered in a session."""
    items, total = await sessions.list_turns(ctx.caller, endpoint_id, session_id, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.delete(
    _ONE + "/sessions/{session_id:uuid}",
    access=AUTHENTICATED,
    status=204,
    errors=(EndpointNotFound, NotEndpointOwner, SessionNotFound),
)
async def remove_session(ctx: Context, endpoint_id: str, session_id: str) -> None:
    """Delete a session with everything that was asked in it. The figures stay."""
    await sessions.remove(ctx.caller, endpoint_id, session_id)


@routes.get(
    _ONE + "/feedback",
    access=AUTHENTICATED,
    query=FeedbackQuery,
    returns=Page[FeedbackItem],
    errors=(EndpointNotFound,),
)
async def list_feedback(ctx: Context, endpoint_id: str, query: FeedbackQuery) -> Page[FeedbackItem]:
    """List the ratings of visitors, latest first."""
    items, total = await feedback.list_page(ctx.caller, endpoint_id, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.get(
    _ONE + "/figures",
    access=AUTHENTICATED,
    query=FiguresQuery,
    returns=Figures,
    errors=(EndpointNotFound,),
)
async def read_figures(ctx: Context, endpoint_id: str, query: FiguresQuery) -> Figures:
    """Show questions, answers, refusals, tokens and ratings per day."""
    return await figures.read(ctx.caller, endpoint_id, query.days)
