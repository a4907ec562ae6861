"""What manifest plugins keep beside their points."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("manifest_webhooks")


class PluginRow(Base):
    """A plugin that has stored something, and the collections that it stored into.

    Whoever stores or removes holds this row until the commit, so that a point is never stored after the
    removal of its plugin and an event is never stored twice.
    """

    __tablename__ = "manifest_webhooks_plugin"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    collections: Mapped[Any] = mapped_column(json_type(), default=list)


class EventRow(Base):
    """A delivered event and its point, kept as long as a sender may repeat the delivery."""

    __tablename__ = "manifest_webhooks_event"

    plugin: Mapped[str] = mapped_column(String(64), primary_key=True)
    event_id: Mapped[str] = mapped_column(String(256), primary_key=True)
    collection: Mapped[str] = mapped_column(String(64))
    point_id: Mapped[str] = mapped_column(String(36))
    dimension: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now, index=True)
