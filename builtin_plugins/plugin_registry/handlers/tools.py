"""Tools: discovery, detail, execution (spec 4.7, wire-facts section 7)."""

from __future__ import annotations

from kernel.sdk import (
    AUTHENTICATED,
    PUBLIC,
    BadRequest,
    Context,
    Forbidden,
    GatewayTimeout,
    NotFound,
    RouteTable,
)

from ..services import tools
from ..tool_schemas import (
    Executed,
    ExecuteRequest,
    ToolDetail,
    ToolList,
    ToolsQuery,
    Validated,
    ValidateRequest,
)

routes = RouteTable("Tools")


@routes.get("/v1/tools", access=PUBLIC, query=ToolsQuery, returns=ToolList)
async def list_tools(ctx: Context, query: ToolsQuery) -> ToolList:
    """List the tools of all plugins, by plugin and name."""
    return await tools.list_tools(ctx.platform, query)


@routes.post(
    "/v1/tools/validate",
    access=AUTHENTICATED,
    body=ValidateRequest,
    returns=Validated,
    errors=(Forbidden,),
    token_scopes=("tools",),
)
async def validate(ctx: Context, body: ValidateRequest) -> Validated:
    """Check an account's tier against a tool; only administrators and services can check others."""
    return await tools.validate(ctx, body.user_id, body.tool_name)


@routes.get("/v1/tools/plugins/{plugin_id:uuid}/tools", access=PUBLIC, returns=ToolList, errors=(NotFound,))
async def tools_of_listing(ctx: Context, plugin_id: str) -> ToolList:
    """List the tools of one plugin, by the id of its listing."""
    return await tools.of_listing(ctx.platform, plugin_id)


@routes.get("/v1/tools/{tool_name}", access=PUBLIC, returns=ToolDetail, errors=(NotFound,))
async def show(ctx: Context, tool_name: str) -> ToolDetail:
    """Show one tool with its plugin's description."""
    return await tools.show(ctx.platform, tool_name)


@routes.post(
    "/v1/tools/{tool_name}/execute",
    access=AUTHENTICATED,
    body=ExecuteRequest | None,
    returns=Executed,
    errors=(NotFound, BadRequest, Forbidden, 409, GatewayTimeout),
    token_scopes=("tools",),
)
async def execute(ctx: Context, tool_name: str, body: ExecuteRequest | None) -> Executed:
    """Execute a tool for the caller.

    Arguments sent as text become numbers, booleans or JSON where the tool declares them so. A tool that needs
    a higher tier than the caller has is a 403 with an object that names both.
    """
    return await tools.execute(ctx, tool_name, body.parameters if body else {})
