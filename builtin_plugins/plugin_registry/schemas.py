"""Answers of the registry (wire-facts 6.1, 6.2, 8.1)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from kernel.sdk import Message


class PluginOut(BaseModel):
    """A plugin."""

    name: str
    version: str
    description: str
    author: str
    status: Literal["registered", "enabled", "disabled", "error"]
    enabled: bool
    dependencies: list[str]
    capabilities: list[str]
    data_sources: list[str]
    databases: list[str]
    registered_at: datetime
    health_status: Literal["unknown", "healthy", "unhealthy", "error"]
    last_health_check: datetime | None
    health_changed_at: datetime | None = Field(description="When the health last changed.")
    install_source: str = Field(description="vendored, package, or manifest.")
    required_tier: Literal["free", "community", "pro", "enterprise"]
    reason: str | None = Field(description="Why it is not in service, or what is wrong with it.")


class PluginList(BaseModel):
    """A page of plugins."""

    plugins: list[PluginOut]
    count: int = Field(description="Plugins on this page.")
    total: int
    limit: int
    offset: int


class PluginHealth(BaseModel):
    """The current health of one plugin."""

    name: str
    healthy: bool
    health_status: Literal["healthy", "unhealthy", "error"]
    last_health_check: datetime
    message: str | None
    checks: dict[str, str] = Field(description="Result of each of the plugin's health checks.")


class ActionResult(BaseModel):
    """The result of an action."""

    plugin: str
    action: str
    result: Any


class ConfigField(BaseModel):
    """One setting that can be changed while the plugin runs."""

    key: str
    type: Literal["string", "int", "float", "bool"]
    default: Any
    description: str
    secret: bool
    options: list[str] | None = Field(None, description="Allowed values, if the setting has a fixed list.")
    fixed_by: str | None = Field(
        None, description="The environment variable that sets it and wins, so it can't be changed here."
    )


class PluginConfig(BaseModel):
    """A plugin's configuration; secrets that are set show as `***`."""

    plugin: str
    configurable: bool
    fields: list[ConfigField] = Field(serialization_alias="schema")
    values: dict[str, Any]


class ConfigChanged(BaseModel):
    """The result of a configuration change."""

    plugin: str
    updated: list[str]
    values: dict[str, Any]


class Installed(Message):
    """A manifest that is now live."""

    plugin: str
    webhook_path: str = Field(description="As in the manifest, without the leading /webhook.")


class Reloaded(Message):
    """A manifest that replaced an earlier one."""

    webhook_path: str
    registered_routes: list[str]


class Webhooks(Message):
    """All live webhooks."""

    webhooks: list[str]


class CollectionTriggered(Message):
    """A collection that is under way."""

    plugin: str
    status: Literal["collecting"] = "collecting"
    triggered_by: str
    timestamp: datetime
    note: str
    job_id: str = Field(description="Follow it at GET /v1/jobs/{job_id}.")


class CollectionOut(BaseModel):
    """The latest collection of a plugin."""

    plugin: str
    status: Literal["collecting", "done", "failed"]
    started_at: datetime
    finished_at: datetime | None
    result: Any = Field(description="What the plugin reported when it last succeeded.")
    error: str | None = Field(description="Why the latest collection failed.")
    job_id: str
