"""The platform as a client of other servers of the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from builtin_plugins.mcp_client.handlers import routes
from builtin_plugins.mcp_client.servers import SERVERS, Server, open_servers
from builtin_plugins.mcp_client.settings import McpClientSettings
from builtin_plugins.mcp_client.tool_catalog import offered
from builtin_plugins.tools.api import Tool
from kernel.sdk import (
    Context,
    HealthCheck,
    NotConfigured,
    Platform,
    Plugin,
    Resource,
    RouteTable,
    Unhealthy,
    hookimpl,
)


class McpClientPlugin(Plugin):
    """Offers the tools of MCP servers that the operator names."""

    name = "mcp_client"
    version = "0.1.0"
    description = "Tools of other MCP servers, offered like the platform's own"
    author = "Platform"
    requires = ("owner_secrets", "tools")

    @hookimpl
    def register_settings(self) -> type[McpClientSettings]:
        return McpClientSettings

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [routes]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Mapping[str, Server]]]:
        return [Resource(SERVERS, open_servers, essential_in=frozenset({"api"}))]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("mcp_servers", _check)]

    @hookimpl
    async def offer_tools(self, ctx: Context) -> Sequence[Tool]:
        return await offered(ctx) if ctx.principal.kind != "anonymous" else []


async def _check(platform: Platform) -> None:
    """Check that every configured server is healthy."""
    servers = platform.resource(SERVERS)
    if not servers:
        raise NotConfigured()
    wrong = [f"{server.name}: {server.problem}" for server in servers.values() if server.problem]
    if wrong:
        raise Unhealthy("; ".join(wrong))
