"""The tables of the service."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import String, Text
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("platform_ops")


class BackupJob(Base):
    """A backup, a restore or a drill, as its requester sees it (wire-facts 9.4).

    `phase` is the stage of a restore: ``ordered`` waits for a start that finds no other process in service,
    ``files`` has its rows in place; it is empty otherwise. `folders` are where its files of plugins belong.
    """

    __tablename__ = "platform_ops_backup_job"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    action: Mapped[str] = mapped_column(String(16))
    archive: Mapped[str | None] = mapped_column(String(64))
    status: Mapped[str] = mapped_column(String(16), default="pending", index=True)
    phase: Mapped[str] = mapped_column(String(16), default="")
    requested_by: Mapped[str] = mapped_column(String(255))
    requested_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now, index=True)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    error: Mapped[str | None] = mapped_column(Text)
    folders: Mapped[Any] = mapped_column(json_type(), nullable=True)
    output: Mapped[str] = mapped_column(Text, default="")


class RegisteredService(Base):
    """A service that registered itself (wire-facts 9.1), and its last known health."""

    __tablename__ = "platform_ops_service"

    name: Mapped[str] = mapped_column(String(120), primary_key=True)
    type: Mapped[str] = mapped_column(String(120))
    host: Mapped[str] = mapped_column(String(255))
    port: Mapped[int] = mapped_column()
    health_path: Mapped[str] = mapped_column(String(500))
    details: Mapped[Any] = mapped_column(json_type())
    health: Mapped[str] = mapped_column(String(16), default="unknown")
    checked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    registered_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    registered_by: Mapped[str] = mapped_column(String(255))


class BundleSwitch(Base):
    """The desired state of a bundle; one without a row is enabled (wire-facts 9.2)."""

    __tablename__ = "platform_ops_bundle"

    name: Mapped[str] = mapped_column(String(120), primary_key=True)
    enabled: Mapped[bool] = mapped_column()
    changed_by: Mapped[str] = mapped_column(String(255))
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now, onupdate=utc_now)
