"""The platform as a server of the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.mcp_server.handlers import routes
from builtin_plugins.mcp_server.methods import VERSION
from builtin_plugins.mcp_server.settings import McpServerSettings
from kernel.sdk import Plugin, RouteTable, hookimpl


class McpServerPlugin(Plugin):
    """Tools, search and documents at `/mcp`, for any client that speaks MCP."""

    name = "mcp_server"
    version = VERSION
    description = "Tools, search and documents over the Model Context Protocol"
    author = "Platform"
    requires = ("tools",)
    after = ("rag",)

    @hookimpl
    def register_settings(self) -> type[McpServerSettings]:
        return McpServerSettings

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [routes]
