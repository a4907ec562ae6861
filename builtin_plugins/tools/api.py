"""Tools as other plugins use them: the catalog, its types, and the hooks that it asks."""

from __future__ import annotations

from .arguments import arguments_from_object, json_object, query_values
from .catalog import TOOLS, ToolReply, Tools, failed_reply
from .definitions import ToolDefinition, ToolDefinitions
from .directory import Directory
from .hookspecs import check_tool_call, offer_tools, on_tool_called
from .sources import PluginEntry, PluginSource
from .tool import Tool, tool_name

__all__ = [
    "TOOLS",
    "Directory",
    "PluginEntry",
    "PluginSource",
    "Tool",
    "ToolDefinition",
    "ToolDefinitions",
    "ToolReply",
    "Tools",
    "arguments_from_object",
    "check_tool_call",
    "failed_reply",
    "json_object",
    "offer_tools",
    "on_tool_called",
    "query_values",
    "tool_name",
]
