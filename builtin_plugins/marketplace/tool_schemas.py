"""Bodies and answers of the tool catalog (spec 2.8, wire-facts 10.5)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from kernel.sdk import Body, PageQuery, example

Tier = Literal["free", "community", "pro", "enterprise"]


class ToolsQuery(PageQuery):
    """Which tools."""

    active_only: bool = Field(True, description="Leave out tools that their plugin no longer has.")
    tier: Tier | None = Field(None, description="Only tools that need this tier.")
    tool_name: str | None = Field(None, max_length=200, description="Exactly this name.")


class ToolItem(BaseModel):
    """A tool of the catalog."""

    id: str
    tool_name: str
    type: str | None
    description: str | None
    endpoint: str | None
    method: str | None
    parameters: Any
    response_format: Any
    required_tier: str | None
    active: bool | None
    plugin_id: str
    plugin_name: str
    plugin_display_name: str | None


class ToolDetail(ToolItem):
    """A tool, with what its plugin is."""

    plugin_description: str | None


class ToolList(BaseModel):
    """A page of tools."""

    tools: list[ToolItem]
    count: int
    total: int
    limit: int
    offset: int


class PluginTools(BaseModel):
    """The active tools of a plugin."""

    plugin_id: str
    plugin_name: str
    tools: list[ToolItem]
    count: int


class SyncRequest(Body):
    """A plugin's manifest, whose tools are to be in the catalog."""

    model_config = example(
        plugin_name="tide-tables",
        plugin_id="3f0e8f6e-0c57-4d0f-9c07-5f8a3a1f6f5b",
        manifest={"ai_tools": [{"name": "next_tide", "description": "The next tide", "action": "next"}]},
    )

    plugin_name: Annotated[str, Field(min_length=1, max_length=100)]
    plugin_id: Annotated[str, Field(min_length=1, max_length=100)]
    manifest: dict[str, Any]


class NothingToSync(BaseModel):
    """The manifest has no tools section."""

    success: bool
    tools_imported: int
    message: str


class Synced(NothingToSync):
    """What happened to the tools."""

    tools_deactivated: int
    errors: list[str]


class Deactivated(BaseModel):
    """How many tools were deactivated."""

    success: bool
    tools_deactivated: int
