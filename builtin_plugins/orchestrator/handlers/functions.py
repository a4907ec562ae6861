"""Tools for programs that run the conversation themselves: definitions, one call, the tool server."""

from __future__ import annotations

from typing import Any

from builtin_plugins.orchestrator.schemas import FunctionResult
from builtin_plugins.orchestrator.services.call_parsing import loose_object, unwrapped
from builtin_plugins.orchestrator.services.tool_server import document
from builtin_plugins.orchestrator.settings import OrchestratorSettings
from builtin_plugins.tools.api import TOOLS, ToolDefinitions, query_values
from kernel.sdk import (
    API_VERSION,
    PUBLIC,
    PUBLIC_OR_MORE,
    BadGateway,
    Context,
    Forbidden,
    GatewayTimeout,
    NotFound,
    PlatformError,
    RawBody,
    RouteTable,
    TooManyRequests,
    Unauthorized,
    read_body,
    utc_now,
)

routes = RouteTable("Tools")

_BODY_LIMIT = 1024 * 1024
_CALL_ERRORS = (NotFound, Unauthorized, Forbidden, TooManyRequests, BadGateway, GatewayTimeout)
_SERVER = "/v1/ai/tools"


@routes.get(
    "/v1/ai/functions/definitions",
    access=PUBLIC_OR_MORE,
    returns=ToolDefinitions,
    token_scopes=("ask", "tools"),
)
async def definitions(ctx: Context) -> ToolDefinitions:
    """List all that can be called as function definitions; with a token, the caller's pipelines too."""
    return ToolDefinitions.of(await ctx.resource(TOOLS).offered(ctx))


@routes.post(
    "/v1/ai/functions/{name}",
    access=PUBLIC_OR_MORE,
    body=RawBody(example={"question": "How much may a hotel in Oslo cost per night?"}),
    returns=FunctionResult,
    errors=_CALL_ERRORS,
    long=True,
    open_to_writes=True,
    token_scopes=("ask", "tools"),
)
async def call_function(ctx: Context, name: str) -> FunctionResult:
    """Call a tool; the body is its arguments, or `{"parameters": {…}}`. The tool's own access rules apply."""
    tools = ctx.resource(TOOLS)
    tool = await tools.find(ctx, name)
    raw = await read_body(ctx.request, _BODY_LIMIT, ctx.platform.settings.body_timeout)
    arguments = unwrapped(loose_object(raw), tool)
    seconds = ctx.settings_of(OrchestratorSettings).tool_seconds
    try:
        result = await tools.call(ctx, tool, arguments, seconds=seconds)
    except PlatformError as error:
        if error.status == 500:
            raise BadGateway(f"The tool '{name}' failed: {str(error.detail)[:500]}") from None
        raise
    return FunctionResult(result=result, timestamp=utc_now())


@routes.get(f"{_SERVER}/openapi.json", access=PUBLIC, returns=dict[str, Any], token_scopes=("tools",))
async def tool_server(ctx: Context) -> dict[str, Any]:
    """Get an OpenAPI document of the read-only tools, for chat programs that accept a tool server.

    Its paths are those of the gateway. They also exist below `/v1/ai/tools`, for programs that put the
    document's own address before them.
    """
    return document(await ctx.resource(TOOLS).declared(), "/", API_VERSION)


@routes.get(
    f"{_SERVER}/v1/plugins/{{plugin}}/actions/{{action}}",
    access=PUBLIC_OR_MORE,
    returns=dict[str, Any],
    errors=_CALL_ERRORS,
    hidden=True,
    token_scopes=("tools",),
)
async def call_below_server(ctx: Context, plugin: str, action: str) -> dict[str, Any]:
    """Call a read-only action, at the path that follows from the document's own address."""
    tools = ctx.resource(TOOLS)
    tool = await tools.of_action(plugin, action)
    if tool is None or not tool.read_only:
        raise NotFound(f"The plugin '{plugin[:80]}' has no read-only action '{action[:80]}' in service")
    result: dict[str, Any] = await tools.call(ctx, tool, query_values(tool.parameters, ctx.request.query))
    return result
