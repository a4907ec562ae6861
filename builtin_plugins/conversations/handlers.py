"""Routes of conversations, part of the service `rag-pipeline` (spec 4.5, wire-facts 11.5)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from aiohttp import web

from builtin_plugins.conversations.errors import (
    AlreadyShared,
    ConversationNotFound,
    ConversationPipelineNotFound,
    NotFirstWriter,
    TurnNotFound,
)
from builtin_plugins.conversations.schemas import (
    ConversationItem,
    ConversationOut,
    ConversationQuery,
    ConversationRename,
    Deleted,
    ExportBundle,
    Shared,
    TurnOut,
    TurnQuery,
    TurnRating,
    WhichQuery,
)
from builtin_plugins.conversations.services import changing, exporting, listing, rating
from kernel.sdk import AUTHENTICATED, Context, Page, RouteTable, utc_now

routes = RouteTable("Conversations", service="rag-pipeline")

_ONE = "/v1/conversations/{conversation_id}"
_SHARING = "/pipeline/{pipeline_id:uuid}/conversations/{conversation_id}/share"


@routes.get(
    "/v1/conversations/mine",
    access=AUTHENTICATED,
    query=ConversationQuery,
    returns=Page[ConversationItem],
    token_scopes=("ask",),
)
async def list_mine(ctx: Context, query: ConversationQuery) -> Page[ConversationItem]:
    """List the conversations that the caller started, latest first."""
    items, total = await listing.list_own(ctx.caller, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.delete("/v1/conversations/mine", access=AUTHENTICATED, returns=Deleted)
async def delete_mine(ctx: Context) -> Deleted:
    """Delete all conversations that the caller started, including shared ones."""
    return Deleted(deleted=await changing.delete_all(ctx.caller))


@routes.get(
    "/v1/conversations/mine/export", access=AUTHENTICATED, returns=ExportBundle, token_scopes=("ask",)
)
async def export_mine(ctx: Context) -> web.StreamResponse:
    """Download all conversations that the caller started, as JSON."""
    return await _send(ctx, exporting.export_own(ctx.caller))


@routes.get(
    "/v1/conversations/shared-with-me",
    access=AUTHENTICATED,
    query=ConversationQuery,
    returns=Page[ConversationItem],
    token_scopes=("ask",),
)
async def list_shared_with_me(ctx: Context, query: ConversationQuery) -> Page[ConversationItem]:
    """List what others share with the users of a pipeline that the caller can use, latest first.

    Pipelines that the caller can use only as an administrator don't count.
    """
    items, total = await listing.list_shared_with(ctx.caller, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.get(
    _ONE,
    access=AUTHENTICATED,
    query=WhichQuery,
    returns=ConversationOut,
    errors=(ConversationNotFound,),
    token_scopes=("ask",),
)
async def get(ctx: Context, conversation_id: str, query: WhichQuery) -> ConversationOut:
    """Show a conversation: the caller's own, or a shared one of a pipeline that the caller can use."""
    return await listing.get(ctx.caller, conversation_id, query.pipeline_id)


@routes.get(
    _ONE + "/turns",
    access=AUTHENTICATED,
    query=TurnQuery,
    returns=Page[TurnOut],
    errors=(ConversationNotFound,),
    token_scopes=("ask",),
)
async def list_turns(ctx: Context, conversation_id: str, query: TurnQuery) -> Page[TurnOut]:
    """Read the questions and answers of a conversation, in the order in which they were asked.

    Parts of answers that cite a deleted document, or one that the caller can't see, are left out.
    """
    items, total = await listing.list_turns(ctx.caller, conversation_id, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.put(
    _ONE + "/turns/{turn_id:int}/rating",
    access=AUTHENTICATED,
    body=TurnRating,
    status=204,
    errors=(ConversationNotFound, TurnNotFound),
)
async def rate(ctx: Context, conversation_id: str, turn_id: int, body: TurnRating) -> None:
    """Rate an answer. Those who evaluate the knowledge base may turn it into a question of a set."""
    await rating.rate(ctx.caller, conversation_id, turn_id, body)


@routes.get(
    _ONE + "/export",
    access=AUTHENTICATED,
    query=WhichQuery,
    returns=ExportBundle,
    errors=(ConversationNotFound,),
    token_scopes=("ask",),
)
async def export(ctx: Context, conversation_id: str, query: WhichQuery) -> web.StreamResponse:
    """Download a conversation as JSON."""
    return await _send(ctx, await exporting.export_one(ctx.caller, conversation_id, query.pipeline_id))


@routes.patch(
    _ONE,
    access=AUTHENTICATED,
    body=ConversationRename,
    returns=ConversationOut,
    errors=(ConversationNotFound, NotFirstWriter),
)
async def rename(ctx: Context, conversation_id: str, body: ConversationRename) -> ConversationOut:
    """Change the title of a conversation."""
    return await changing.rename(ctx.caller, conversation_id, body.title)


@routes.delete(_ONE, access=AUTHENTICATED, status=204, errors=(ConversationNotFound, NotFirstWriter))
async def delete(ctx: Context, conversation_id: str) -> None:
    """Delete a conversation with all of its turns."""
    await changing.delete_one(ctx.caller, conversation_id)


@routes.get(
    "/pipeline/{pipeline_id:uuid}/conversations",
    access=AUTHENTICATED,
    query=ConversationQuery,
    returns=Page[ConversationItem],
    errors=(ConversationPipelineNotFound,),
    token_scopes=("ask",),
)
async def list_shared(ctx: Context, pipeline_id: str, query: ConversationQuery) -> Page[ConversationItem]:
    """List the conversations that are shared with the users of a pipeline."""
    items, total = await listing.list_shared(ctx.caller, pipeline_id, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.post(
    _SHARING,
    access=AUTHENTICATED,
    returns=Shared,
    errors=(ConversationPipelineNotFound, ConversationNotFound, NotFirstWriter, AlreadyShared),
)
async def share(ctx: Context, pipeline_id: str, conversation_id: str) -> Shared:
    """Share a conversation: everybody who can use the pipeline can read and continue it by its id."""
    return await changing.share(ctx.caller, pipeline_id, conversation_id)


@routes.delete(
    _SHARING,
    access=AUTHENTICATED,
    returns=Shared,
    errors=(ConversationPipelineNotFound, ConversationNotFound, NotFirstWriter),
)
async def end_sharing(ctx: Context, pipeline_id: str, conversation_id: str) -> Shared:
    """Stop sharing a conversation. What others asked in it stays."""
    return await changing.end_sharing(ctx.caller, pipeline_id, conversation_id)


async def _send(ctx: Context, pieces: AsyncGenerator[bytes, None]) -> web.StreamResponse:
    response = await ctx.start_download(f"conversations-{utc_now():%Y-%m-%d}.json", "application/json")
    async with aclosing(pieces):
        async for piece in pieces:
            await response.write(piece)
    await response.write_eof()
    return response
