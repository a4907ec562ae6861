"""The tables of the registry: switches of plugins, settings changed by clients, health, collections."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, Integer, String, false
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("plugin_registry")


class Switch(Base):
    """A plugin that an administrator enabled or disabled. Others are as they declare themselves."""

    __tablename__ = "plugin_registry_switch"

    plugin: Mapped[str] = mapped_column(String(255), primary_key=True)
    enabled: Mapped[bool] = mapped_column(Boolean, server_default=false())
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    changed_by: Mapped[int | None] = mapped_column(Integer)


class ConfigValue(Base):
    """A setting, by field name, that overrides the environment.

    The value of a secret is null here; it is stored encrypted among the plugin's secrets.
    """

    __tablename__ = "plugin_registry_config"

    plugin: Mapped[str] = mapped_column(String(255), primary_key=True)
    field: Mapped[str] = mapped_column(String(255), primary_key=True)
    value: Mapped[Any] = mapped_column(json_type(), nullable=True)
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class HealthRecord(Base):
    """A plugin's health at the last regular check, and since when it has been the same."""

    __tablename__ = "plugin_registry_health"

    plugin: Mapped[str] = mapped_column(String(255), primary_key=True)
    status: Mapped[str] = mapped_column(String(16))
    checked_at: Mapped[datetime] = mapped_column(UtcDateTime)
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime)


class Collection(Base):
    """The latest collection of a plugin: `collecting`, `done`, `failed`. `result` is of the last success."""

    __tablename__ = "plugin_registry_collection"

    plugin: Mapped[str] = mapped_column(String(255), primary_key=True)
    job_id: Mapped[str] = mapped_column(String(64))
    status: Mapped[str] = mapped_column(String(16))
    started_at: Mapped[datetime] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    result: Mapped[Any] = mapped_column(json_type(), nullable=True)
    error: Mapped[str | None] = mapped_column(String(2000))
