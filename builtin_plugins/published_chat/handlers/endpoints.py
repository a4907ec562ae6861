"""Routes of owners, part of the service `rag-pipeline`."""

from __future__ import annotations

from builtin_plugins.published_chat.errors import (
    ChatPipelineNotFound,
    ChatSlugTaken,
    EndpointNotFound,
    NotBaseOwner,
    NotEndpointOwner,
    NotPipelineOwner,
    PublishedBaseNotFound,
    PublishingNotAllowed,
    SessionNotFound,
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
    PublishingChat,
    SessionItem,
    SessionTurn,
)
from builtin_plugins.published_chat.services import endpoints, feedback, figures, publications, sessions
from kernel.sdk import AUTHENTICATED, Context, Page, PageQuery, RouteTable, permission

routes = RouteTable("Published chat", service="rag-pipeline")

_ONE = "/endpoints/{endpoint_id:uuid}"
_OF_BASE = "/knowledge-bases/{kb_id:uuid}/chats"


@routes.post(
    "/endpoints",
    access=permission(PUBLISH),
    body=EndpointCreate,
    returns=EndpointOut,
    status=201,
    errors=(ChatPipelineNotFound, NotPipelineOwner, PublishingNotAllowed, ChatSlugTaken),
)
async def create(ctx: Context, body: EndpointCreate) -> EndpointOut:
    """Publish a chat. Visitors get answers from the pipeline with the rights of its owner.

    The caller must own the pipeline, and each of its knowledge bases that doesn't allow others to publish it.
    """
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
    errors=(EndpointNotFound, NotEndpointOwner, ChatPipelineNotFound, NotPipelineOwner, PublishingNotAllowed),
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


@routes.get(
    _OF_BASE,
    access=AUTHENTICATED,
    query=PageQuery,
    returns=Page[PublishingChat],
    errors=(PublishedBaseNotFound, NotBaseOwner),
)
async def list_publishing(ctx: Context, kb_id: str, query: PageQuery) -> Page[PublishingChat]:
    """List the published chats that answer from a knowledge base, oldest first. For its owner."""
    items, total = await publications.list_page(ctx.caller, kb_id, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.delete(
    f"{_OF_BASE}/{{endpoint_id:uuid}}",
    access=AUTHENTICATED,
    status=204,
    errors=(PublishedBaseNotFound, NotBaseOwner, EndpointNotFound),
)
async def end(ctx: Context, kb_id: str, endpoint_id: str) -> None:
    """Turn off a chat that answers from a knowledge base. For the knowledge base's owner.

    Whoever published the chat can turn it on again as long as the knowledge base's `publishing` is `allowed`.
    """
    await publications.end(ctx.caller, kb_id, endpoint_id)
