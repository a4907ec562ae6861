"""The catalog's tools (wire-facts 10.5)."""

from __future__ import annotations

from kernel.sdk import ADMIN_OR_SERVICE, AUTHENTICATED, PUBLIC_OR_MORE, Context, RouteTable

from ..errors import ListingNotFound, NotEditable
from ..services import tools
from ..services.tools import SyncFailed
from ..tool_schemas import (
    Deactivated,
    NothingToSync,
    PluginTools,
    Synced,
    SyncRequest,
    ToolDetail,
    ToolList,
    ToolsQuery,
)

routes = RouteTable("Tool catalog")

# Open to anybody, so open to every credential.
ANY_SCOPE = ("ask", "tools", "manage")

_OF_PLUGIN = "/v1/marketplace/ai/plugins/{plugin_id:uuid}/tools"


@routes.get(
    "/v1/marketplace/ai/tools",
    access=PUBLIC_OR_MORE,
    token_scopes=ANY_SCOPE,
    query=ToolsQuery,
    returns=ToolList,
)
async def list_tools(ctx: Context, query: ToolsQuery) -> ToolList:
    """List the tools of the catalog, by plugin and name."""
    return await ctx.read(tools.list_page, ctx.principal, query)


@routes.get(
    "/v1/marketplace/ai/tools/{tool_name}",
    access=PUBLIC_OR_MORE,
    token_scopes=ANY_SCOPE,
    returns=ToolDetail,
    errors=(ListingNotFound,),
)
async def show(ctx: Context, tool_name: str) -> ToolDetail:
    """Show an active tool with its plugin's description."""
    return await ctx.read(tools.show, ctx.principal, tool_name)


@routes.get(
    _OF_PLUGIN, access=PUBLIC_OR_MORE, token_scopes=ANY_SCOPE, returns=PluginTools, errors=(ListingNotFound,)
)
async def tools_of_plugin(ctx: Context, plugin_id: str) -> PluginTools:
    """List the active tools of one plugin."""
    return await ctx.read(tools.of_plugin, ctx.principal, plugin_id)


@routes.post(
    "/v1/marketplace/ai/sync",
    access=AUTHENTICATED,
    body=SyncRequest,
    returns=Synced | NothingToSync,
    errors=(ListingNotFound, NotEditable, SyncFailed),
)
async def sync(ctx: Context, body: SyncRequest) -> NothingToSync | Synced:
    """Import the tools of a plugin's manifest into the catalog; for its author, administrators and services.

    The author can do so while the listing is a draft or rejected.

    If a tool is invalid, the response is a 500 whose `detail` says what happened to each.
    """
    done = await ctx.write(tools.sync, ctx.caller, body)
    if isinstance(done, Synced) and not done.success:
        raise SyncFailed(done.model_dump())
    return done


@routes.delete(_OF_PLUGIN, access=ADMIN_OR_SERVICE, returns=Deactivated, errors=(ListingNotFound,))
async def deactivate(ctx: Context, plugin_id: str) -> Deactivated:
    """Deactivate all tools of a plugin."""
    return await ctx.write(tools.deactivate, ctx.caller, plugin_id)
