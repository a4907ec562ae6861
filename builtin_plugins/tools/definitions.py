"""Tools as function definitions for language models (wire-facts 8.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kernel.sdk.operations import Tier

from .tool import Tool


class ToolFunction(BaseModel):
    """A function as it is described to a language model."""

    name: str
    description: str
    parameters: dict[str, Any] = Field(description="JSON Schema of the arguments.")


class ToolAnnotations(BaseModel):
    """What a call does, in the words of the Model Context Protocol. These are the plugin's own statements."""

    readOnlyHint: bool = Field(description="It changes nothing.")
    destructiveHint: bool = Field(description="It may overwrite or delete something.")
    idempotentHint: bool = Field(description="A second call with the same arguments has no further effect.")
    openWorldHint: bool = Field(description="It works with more than the platform's own data.")


class ToolPlace(BaseModel):
    """Where the function is called, by whom, and what a call does."""

    model_config = ConfigDict(extra="allow")

    plugin: str
    endpoint: str
    method: Literal["GET", "POST"]
    kind: str = Field(description="`action` of a plugin, `rag_pipeline`, or another origin.")
    access: str = Field(description="`public` (no token), `authenticated`, or the permission it needs.")
    tier: Tier
    annotations: ToolAnnotations


class ToolDefinition(BaseModel):
    """One tool (wire-facts 8.1)."""

    type: Literal["function"] = "function"
    function: ToolFunction
    metadata: ToolPlace


class ToolDefinitions(BaseModel):
    """Function definitions."""

    tools: list[ToolDefinition]

    @classmethod
    def of(cls, tools: Iterable[Tool]) -> ToolDefinitions:
        """The definitions of these tools, in their order."""
        return cls(tools=[definition_of(tool) for tool in tools])


def definition_of(tool: Tool) -> ToolDefinition:
    """A tool as a function definition."""
    place = ToolPlace(
        plugin=tool.plugin,
        endpoint=tool.endpoint,
        method=tool.method,
        kind=tool.kind,
        access=str(tool.access),
        tier=tool.tier,
        annotations=ToolAnnotations(**tool.annotations),
        **tool.extra,
    )
    function = ToolFunction(name=tool.name, description=tool.description, parameters=dict(tool.parameters))
    return ToolDefinition(function=function, metadata=place)
