"""What the registry keeps: which plugins are switched off, and settings that clients changed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("plugin_registry")


class SwitchedOff(Base):
    """A plugin that an administrator disabled; enabling it removes the row."""

    __tablename__ = "plugin_registry_switched_off"

    plugin: Mapped[str] = mapped_column(String(255), primary_key=True)
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    changed_by: Mapped[int | None] = mapped_column(Integer)


class ConfigValue(Base):
    """A setting, by its field's name, that wins over the environment.

    The value of a secret is null here; the value itself is kept encrypted among the plugin's secrets.
    """

    __tablename__ = "plugin_registry_config"

    plugin: Mapped[str] = mapped_column(String(255), primary_key=True)
    field: Mapped[str] = mapped_column(String(255), primary_key=True)
    value: Mapped[Any] = mapped_column(json_type(), nullable=True)
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
