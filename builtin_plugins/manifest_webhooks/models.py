"""The tables of manifest plugins; their points are in the vector store."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from sqlalchemy import BigInteger, Boolean, Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("manifest_webhooks")

LONGEST_NAME = 64  # characters of a plugin's name


class PluginRow(Base):
    """A plugin that has stored something, and the collections that it stored into.

    Storing and removing lock this row until the commit, so that a point is never stored after its plugin's
    removal, and an event is never stored twice.
    """

    __tablename__ = "manifest_webhooks_plugin"

    name: Mapped[str] = mapped_column(String(LONGEST_NAME), primary_key=True)
    collections: Mapped[Any] = mapped_column(json_type(), default=list)


class ClaimRow(Base):
    """A name or a webhook path and the file that holds it (see `catalog.resolve`).

    The row of a missing file stays until another file claims it, as a folder may be away for a moment.
    """

    __tablename__ = "manifest_webhooks_claim"

    kind: Mapped[Literal["name", "path"]] = mapped_column(String(8), primary_key=True)
    value: Mapped[str] = mapped_column(String(100), primary_key=True)
    file: Mapped[str] = mapped_column(String(1020))
    """At most 255 bytes, each of which may be escaped as four characters."""


class EventRow(Base):
    """A delivered event and its point, kept as long as a sender may repeat the delivery."""

    __tablename__ = "manifest_webhooks_event"

    plugin: Mapped[str] = mapped_column(String(LONGEST_NAME), primary_key=True)
    event_id: Mapped[str] = mapped_column(String(256), primary_key=True)
    collection: Mapped[str] = mapped_column(String(64))
    point_id: Mapped[str] = mapped_column(String(36))
    dimension: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now, index=True)


class DeliveryRow(Base):
    """One of the last deliveries of a plugin and what happened to it (see `deliveries`)."""

    __tablename__ = "manifest_webhooks_delivery"
    __table_args__ = (Index("ix_manifest_webhooks_delivery_plugin_proven_id", "plugin", "proven", "id"),)

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    plugin: Mapped[str] = mapped_column(String(LONGEST_NAME))
    proven: Mapped[bool] = mapped_column(Boolean)
    received_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now, index=True)
    event_id: Mapped[str | None] = mapped_column(String(256))
    event: Mapped[str | None] = mapped_column(String(80))
    outcome: Mapped[str] = mapped_column(String(16))
    status: Mapped[int] = mapped_column(Integer)
    reason: Mapped[str | None] = mapped_column(String(300))
    point_id: Mapped[str | None] = mapped_column(String(36))
