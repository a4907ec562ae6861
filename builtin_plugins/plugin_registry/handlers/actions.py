"""Actions of plugins, called by people and programs."""

from __future__ import annotations

from builtin_plugins.tools.api import TOOLS, json_object, query_values
from kernel.sdk import (
    AUTHENTICATED,
    PUBLIC_OR_MORE,
    Context,
    GatewayTimeout,
    NotFound,
    Rate,
    RawBody,
    RouteTable,
    read_body,
)
from kernel.sdk.http import require_access

from ..schemas import ActionResult

routes = RouteTable("Plugin actions")

_PATH = "/v1/plugins/{name}/actions/{action}"
_BODY_LIMIT = 1024 * 1024


@routes.get(
    _PATH,
    access=PUBLIC_OR_MORE,
    returns=ActionResult,
    errors=(NotFound, 409, GatewayTimeout),
    rate=Rate(30, scope="path"),
    token_scopes=("tools",),
)
async def call_read_action(ctx: Context, name: str, action: str) -> ActionResult:
    """Call a read-only action with arguments in the query. Works without a token only for public actions."""
    tool = await ctx.resource(TOOLS).of_action(name, action)
    if tool is None or not tool.read_only:
        raise NotFound(f"The plugin '{name[:80]}' has no active read-only action '{action[:80]}'")
    values = query_values(tool.parameters, ctx.request.query)
    return ActionResult(**await ctx.resource(TOOLS).call(ctx, tool, values, counted=True))


@routes.post(
    _PATH,
    access=AUTHENTICATED,
    body=RawBody(example={"query": "negative wind speed", "limit": 5}),
    returns=ActionResult,
    errors=(NotFound, 409, GatewayTimeout),
    rate=Rate(20, scope="path"),
    token_scopes=("tools",),
)
async def call_action(ctx: Context, name: str, action: str) -> ActionResult:
    """Call an action. The body is an object with its arguments; leave it empty if there are none."""
    tool = await ctx.resource(TOOLS).of_action(name, action)
    if tool is None:
        raise NotFound(f"The plugin '{name[:80]}' has no active action '{action[:80]}'")
    await require_access(ctx, tool.access)
    raw = await read_body(ctx.request, _BODY_LIMIT, ctx.platform.settings.body_timeout)
    values = json_object(raw, "The body") if raw else {}
    return ActionResult(**await ctx.resource(TOOLS).call(ctx, tool, values, counted=True))
