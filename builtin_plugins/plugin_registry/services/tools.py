"""Actions of plugins as function definitions for language models (wire-facts 8.1)."""

from __future__ import annotations

import hashlib
import re

from kernel.sdk import DIRECTORY, Action, Platform

from ..schemas import ToolAnnotations, ToolDefinition, ToolFunction, ToolPlace

_MOST = 64
_HASH = 8


async def definitions(platform: Platform) -> list[ToolDefinition]:
    """One definition for each action in service, under names that are unique and fit every client."""
    found: dict[str, ToolDefinition] = {}
    for plugin, action in await platform.resource(DIRECTORY).actions():
        name = tool_name(plugin, action.name)
        name = tool_name(plugin, action.name, hashed=True) if name in found else name
        found[name] = _definition(name, plugin, action)
    return list(found.values())


def tool_name(plugin: str, action: str, *, hashed: bool = False) -> str:
    """Plugin and action in letters, digits and underscores, at most 64 of them (Open WebUI, OpenAI)."""
    name = re.sub(r"\W+", "_", f"{plugin}_{action}", flags=re.ASCII)
    if not hashed and len(name) <= _MOST:
        return name
    digest = hashlib.sha256(f"{plugin}/{action}".encode()).hexdigest()[:_HASH]
    return f"{name[: _MOST - _HASH - 1]}_{digest}"


def _definition(name: str, plugin: str, action: Action) -> ToolDefinition:
    function = ToolFunction(name=name, description=action.description, parameters=action.parameters_schema())
    endpoint = f"/v1/plugins/{plugin}/actions/{action.name}"
    method = "GET" if action.read_only else "POST"
    place = ToolPlace(
        plugin=plugin,
        endpoint=endpoint,
        method=method,
        access=str(action.access),
        annotations=ToolAnnotations(**action.annotations),
    )
    return ToolDefinition(function=function, metadata=place)
