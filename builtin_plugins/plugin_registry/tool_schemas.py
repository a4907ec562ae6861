"""Bodies and answers of the tools routes (spec 2.8, wire-facts section 7)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from kernel.sdk import Body, PageQuery, example

Tier = Literal["free", "community", "pro", "enterprise"]


class ToolsQuery(PageQuery):
    """Which tools."""

    active_only: bool = Field(True, description="Leave out tools of disabled plugins.")
    tier: Tier | None = Field(None, description="Only tools that need this tier.")


class ToolItem(BaseModel):
    """A tool that can be executed."""

    id: str
    tool_name: str
    type: str | None
    description: str | None
    endpoint: str | None
    method: str | None
    parameters: Any = Field(description="By name: type, description, enum, default, required.")
    response_format: Any
    required_tier: str | None
    active: bool | None
    plugin_id: str
    plugin_name: str
    plugin_display_name: str | None
    annotations: dict[str, bool] = Field(description="What a call does, in MCP's words.")


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


class ExecuteRequest(Body):
    """Arguments of a tool."""

    model_config = example(parameters={"query": "negative wind speed", "limit": 5})

    parameters: dict[str, Any] = Field(default_factory=dict)


class Executed(BaseModel):
    """What a tool answered."""

    tool_name: str
    plugin_name: str
    result: Any
    execution_time: float = Field(description="Seconds.")
    tier_required: str


class ValidateRequest(Body):
    """An account and a tool."""

    model_config = example(user_id="7", tool_name="get_news")

    user_id: Annotated[str, Field(min_length=1, max_length=255)]
    tool_name: Annotated[str, Field(min_length=1, max_length=200)]


class Validated(BaseModel):
    """Whether an account's tier is enough for a tool."""

    allowed: bool
    tier_required: str
    user_tier: str
    reason: str | None = None
