"""What licensing keeps: licenses, seats, orders, the provider's notices, tiers that plugins need."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Boolean, ForeignKey, Index, Integer, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, plugin_base, utc_now

Base: Any = plugin_base("licensing")


class License(Base):
    """A tier of a plugin, held by one subject or by an organization (exactly one is set).

    `plugin_id` is the id of the catalog's listing. Only a keyed hash of the key, and its last characters, are
    stored.
    """

    __tablename__ = "licensing_license"
    __table_args__ = (
        UniqueConstraint("user_id", "plugin_id"),
        UniqueConstraint("organization_id", "plugin_id"),
    )

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    user_id: Mapped[str | None] = mapped_column(String(255))
    organization_id: Mapped[int | None] = mapped_column(Integer)
    plugin_id: Mapped[str] = mapped_column(String(100), index=True)
    tier: Mapped[str] = mapped_column(String(16))
    key_hash: Mapped[str] = mapped_column(String(64), unique=True)
    key_end: Mapped[str] = mapped_column(String(4))
    valid_from: Mapped[datetime] = mapped_column(UtcDateTime)
    valid_until: Mapped[datetime] = mapped_column(UtcDateTime)
    trial_expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    active: Mapped[bool] = mapped_column(Boolean, default=True)
    seats: Mapped[int | None] = mapped_column(Integer)
    activated_by: Mapped[str | None] = mapped_column(String(255))
    usage_count: Mapped[int] = mapped_column(Integer, default=0)
    last_used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Seat(Base):
    """An account that uses an organization's license."""

    __tablename__ = "licensing_seat"

    license_id: Mapped[str] = mapped_column(ForeignKey(License.id, ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(Integer, primary_key=True, index=True)
    assigned_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    assigned_by: Mapped[int | None] = mapped_column(Integer)


class Order(Base):
    """An order at a payment provider; `services.checkout.RANKS` has its states.

    `replaced` is what the buyer's license was before this order paid for it; a refund brings that back.
    """

    __tablename__ = "licensing_order"
    __table_args__ = (Index("ix_licensing_order_state_created_at", "state", "created_at"),)

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    subject: Mapped[str] = mapped_column(String(255), index=True)
    plugin_id: Mapped[str] = mapped_column(String(100))
    tier: Mapped[str] = mapped_column(String(16))
    provider: Mapped[str | None] = mapped_column(String(50))
    state: Mapped[str] = mapped_column(String(16), default="pending")
    replaced: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class ProviderNotice(Base):
    """A processed notice of a provider, so that the same one changes nothing again."""

    __tablename__ = "licensing_notice"

    provider: Mapped[str] = mapped_column(String(50), primary_key=True)
    event_id: Mapped[str] = mapped_column(String(255), primary_key=True)
    order_id: Mapped[str] = mapped_column(ForeignKey(Order.id, ondelete="CASCADE"))
    received_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class PluginTier(Base):
    """The tier that an administrator requires for a whole plugin, and a key of the instance for it."""

    __tablename__ = "licensing_plugin_tier"

    plugin: Mapped[str] = mapped_column(String(100), primary_key=True)
    tier: Mapped[str] = mapped_column(String(16))
    key_hash: Mapped[str | None] = mapped_column(String(64))
    key_end: Mapped[str | None] = mapped_column(String(4))
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
