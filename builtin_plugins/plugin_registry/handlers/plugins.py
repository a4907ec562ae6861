"""What is installed: list, record, health, schema."""

from __future__ import annotations

from typing import Any

from builtin_plugins.tools.api import TOOLS, Directory, ToolDefinitions
from kernel.sdk import PUBLIC, Context, NotFound, PageQuery, RouteTable

from ..collecting.watching import health_records
from ..schemas import PluginHealth, PluginList, PluginOut
from ..services.installing import source_for_documents
from ..services.records import get_entry, health_of, record_of

routes = RouteTable("Plugins")


@routes.get("/v1/plugins", access=PUBLIC, query=PageQuery, returns=PluginList)
async def list_plugins(ctx: Context, query: PageQuery) -> PluginList:
    """List all plugins by name, including those that are out of service, with the reason."""
    entries = await Directory(ctx.platform).entries()
    records = await ctx.read(health_records)
    page = entries[query.offset : query.offset + query.limit]
    return PluginList(
        plugins=[record_of(entry, records.get(entry.name)) for entry in page],
        count=len(page),
        total=len(entries),
        limit=query.limit,
        offset=query.offset,
    )


@routes.get("/plugins", access=PUBLIC, query=PageQuery, returns=PluginList, deprecated=True)
async def list_plugins_by_old_path(ctx: Context, query: PageQuery) -> PluginList:
    """Use GET /v1/plugins."""
    return await list_plugins(ctx, query)


@routes.get("/v1/plugins/schema", access=PUBLIC, returns=dict[str, Any], errors=(NotFound,))
async def manifest_schema(ctx: Context) -> dict[str, Any]:
    """Get the JSON Schema (draft-07) of plugin manifests."""
    source = source_for_documents(ctx.platform)
    if source is None:
        raise NotFound("No active plugin accepts manifests")
    return dict(source.schema())


@routes.get("/v1/plugins/ai/tools", access=PUBLIC, returns=ToolDefinitions)
async def ai_tools(ctx: Context) -> ToolDefinitions:
    """List the actions of all active plugins as function definitions."""
    return ToolDefinitions.of(await ctx.resource(TOOLS).declared())


@routes.get("/v1/plugins/{name}", access=PUBLIC, returns=PluginOut, errors=(NotFound,))
async def get_plugin(ctx: Context, name: str) -> PluginOut:
    """Show one plugin."""
    entry = await get_entry(ctx.platform, name)
    return record_of(entry, (await ctx.read(health_records)).get(name))


@routes.get("/v1/plugins/{name}/health", access=PUBLIC, returns=PluginHealth, errors=(NotFound,))
async def plugin_health(ctx: Context, name: str) -> PluginHealth:
    """Run one plugin's health checks and show the results."""
    return await health_of(ctx.platform, await get_entry(ctx.platform, name))
