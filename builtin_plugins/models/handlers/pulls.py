"""Routes of pulls."""

from __future__ import annotations

from aiohttp import web

from builtin_plugins.models.errors import NoRuntime, PullEnded, PullFailed, PullNotFound, StoreFull
from builtin_plugins.models.schemas import ModelChanged, PullOut, PullRequest
from builtin_plugins.models.services import pulls
from kernel.sdk import ADMIN_OR_SERVICE, Answer, Context, Page, PageQuery, RouteTable, send_events

routes = RouteTable("Models")


@routes.post(
    "/models",
    access=ADMIN_OR_SERVICE,
    body=PullRequest,
    returns=ModelChanged,
    status=201,
    also_statuses=(200, 202),
    errors=(NoRuntime, PullFailed, StoreFull),
    long=True,
)
async def pull(ctx: Context, body: PullRequest) -> ModelChanged | Answer | web.StreamResponse:
    """Pull a model.

    Responds at the end; with `wait: false` at once, with `Accept: text/event-stream` as it goes. 200 if the
    model is already there, 202 without waiting. The pull continues when the client leaves; events
    are named `pull` and contain the whole pull.
    """
    begun = await pulls.begin(ctx, body)
    if isinstance(begun, ModelChanged):
        return Answer(begun, status=200)
    if "text/event-stream" in ctx.request.headers.get("Accept", ""):
        return await send_events(ctx.request, pulls.follow(ctx.caller, begun.id), endless=True)
    if not body.wait:
        return Answer(pulls.started(begun), status=202)
    return await pulls.finish(ctx, begun)


@routes.get("/models/pulls", access=ADMIN_OR_SERVICE, query=PageQuery, returns=Page[PullOut])
async def list_pulls(ctx: Context, query: PageQuery) -> Page[PullOut]:
    """List pulls, newest first: waiting, running and ended ones."""
    return await pulls.list_page(ctx.caller, query)


@routes.get("/models/pulls/{pull_id}", access=ADMIN_OR_SERVICE, returns=PullOut, errors=(PullNotFound,))
async def get_pull(ctx: Context, pull_id: str) -> PullOut:
    """Show how far a pull has got."""
    return await pulls.get(ctx.caller, pull_id)


@routes.get(
    "/models/pulls/{pull_id}/events",
    access=ADMIN_OR_SERVICE,
    media_type="text/event-stream",
    returns=PullOut,
    errors=(PullNotFound,),
    long=True,
)
async def follow_pull(ctx: Context, pull_id: str) -> web.StreamResponse:
    """Follow a pull as server-sent events named `pull`, until it has ended."""
    return await send_events(ctx.request, pulls.follow(ctx.caller, pull_id), endless=True)


@routes.delete(
    "/models/pulls/{pull_id}",
    access=ADMIN_OR_SERVICE,
    status=202,
    returns=PullOut,
    errors=(PullNotFound, PullEnded),
)
async def cancel_pull(ctx: Context, pull_id: str) -> PullOut:
    """Cancel a pull. What was fetched stays with the runtime, so that a later pull continues from there."""
    return await pulls.cancel(ctx.caller, pull_id)
