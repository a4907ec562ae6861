"""The tables of the marketplace. The full-text index `marketplace_search` is only created by a migration."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, ForeignKey, Index, Integer, String, Text, UniqueConstraint, false
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("marketplace")

CASCADE = "CASCADE"
DERIVED = ("marketplace_search",)


class Category(Base):
    """A category of the catalog."""

    __tablename__ = "marketplace_category"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    slug: Mapped[str] = mapped_column(String(100), unique=True)
    description: Mapped[str] = mapped_column(Text, default="")


class Listing(Base):
    """A plugin in the catalog. `number` is for the indexes, `id` for clients.

    `rating_sum` and `rating_count` follow the ratings, under the row's lock. `submitted_by` is its creator's
    `sub`; a first-party listing has none. `self_listed`: an installed plugin created it.
    """

    __tablename__ = "marketplace_listing"
    __table_args__ = (
        Index("ix_marketplace_listing_status_created_at", "status", "created_at", "number"),
        Index(
            "ix_marketplace_listing_status_name_key",
            "status",
            "name_key",
            postgresql_ops={"name_key": "text_pattern_ops"},
        ),
        Index("ix_marketplace_listing_submitted_by", "submitted_by", "updated_at"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(36), unique=True)
    name: Mapped[str] = mapped_column(String(100))
    name_key: Mapped[str] = mapped_column(String(100), unique=True)
    display_name: Mapped[str] = mapped_column(String(200))
    description: Mapped[str | None] = mapped_column(Text)
    author: Mapped[str] = mapped_column(String(100))
    author_email: Mapped[str | None] = mapped_column(String(320))
    repository_url: Mapped[str | None] = mapped_column(String(2000))
    distribution_type: Mapped[str] = mapped_column(String(16), default="git")
    docker_image: Mapped[str | None] = mapped_column(String(500))
    package: Mapped[str | None] = mapped_column(String(200))
    version_range: Mapped[str | None] = mapped_column(String(200))
    current_version: Mapped[str | None] = mapped_column(String(100))
    pricing_model: Mapped[str] = mapped_column(String(16), default="free")
    base_tier: Mapped[str] = mapped_column(String(16), default="community")
    status: Mapped[str] = mapped_column(String(16), default="draft")
    featured: Mapped[bool] = mapped_column(Boolean, default=False)
    download_count: Mapped[int] = mapped_column(Integer, default=0)
    rating_sum: Mapped[int] = mapped_column(Integer, default=0)
    rating_count: Mapped[int] = mapped_column(Integer, default=0)
    requires_services: Mapped[Any] = mapped_column(json_type(), default=list)
    origin: Mapped[str] = mapped_column(String(16), default="submitted")
    self_listed: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    developer_id: Mapped[str | None] = mapped_column(String(36))
    category_id: Mapped[str | None] = mapped_column(ForeignKey(Category.id, ondelete="SET NULL"), index=True)
    submitted_by: Mapped[str | None] = mapped_column(String(255))
    reviewed_by: Mapped[str | None] = mapped_column(String(255))
    review_notes: Mapped[str | None] = mapped_column(Text)
    checks: Mapped[Any] = mapped_column(json_type(), nullable=True)
    wheel: Mapped[Any] = mapped_column(json_type(), nullable=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    submitted_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    published_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class InstalledPlugin(Base):
    """An installed plugin that came with a listing's package, but has another name."""

    __tablename__ = "marketplace_installed_plugin"

    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    plugin_id: Mapped[str] = mapped_column(ForeignKey(Listing.id, ondelete=CASCADE), index=True)


class NameGram(Base):
    """Three consecutive letters of an approved listing's name, to find misspelled names."""

    __tablename__ = "marketplace_name_gram"

    gram: Mapped[str] = mapped_column(String(3), primary_key=True)
    number: Mapped[int] = mapped_column(
        ForeignKey(Listing.number, ondelete=CASCADE), primary_key=True, index=True
    )


class Transition(Base):
    """A transition of a listing from one state to another."""

    __tablename__ = "marketplace_transition"
    __table_args__ = {"sqlite_autoincrement": True}

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    plugin_id: Mapped[str] = mapped_column(ForeignKey(Listing.id, ondelete=CASCADE), index=True)
    from_status: Mapped[str] = mapped_column(String(16))
    to_status: Mapped[str] = mapped_column(String(16))
    actor: Mapped[str] = mapped_column(String(255))
    actor_role: Mapped[str] = mapped_column(String(16))
    notes: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class Installation(Base):
    """A plugin that somebody has installed, or had."""

    __tablename__ = "marketplace_installation"
    __table_args__ = (UniqueConstraint("user_id", "plugin_id"),)

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    user_id: Mapped[str] = mapped_column(String(255))
    plugin_id: Mapped[str] = mapped_column(ForeignKey(Listing.id, ondelete=CASCADE), index=True)
    version: Mapped[str | None] = mapped_column(String(100))
    status: Mapped[str] = mapped_column(String(16), default="installed")
    enabled: Mapped[bool] = mapped_column(Boolean, default=True)
    installed_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    last_updated_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class Rating(Base):
    """An account's rating of a plugin."""

    __tablename__ = "marketplace_rating"
    __table_args__ = (
        UniqueConstraint("plugin_id", "user_id"),
        Index("ix_marketplace_rating_plugin_id_created_at", "plugin_id", "created_at"),
    )

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    plugin_id: Mapped[str] = mapped_column(ForeignKey(Listing.id, ondelete=CASCADE))
    user_id: Mapped[str] = mapped_column(String(255))
    username: Mapped[str] = mapped_column(String(255), default="")
    rating: Mapped[int] = mapped_column(Integer)
    review_text: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class ListedTool(Base):
    """A tool of a listing; one that is no longer in the plugin's manifest is kept but inactive."""

    __tablename__ = "marketplace_tool"
    __table_args__ = (
        UniqueConstraint("plugin_id", "tool_name"),
        # Enough to count and sort lists of tools, so that only a page's rows are read.
        Index("ix_marketplace_tool_listed", "plugin_id", "tool_name", "active", "required_tier"),
    )

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    plugin_id: Mapped[str] = mapped_column(ForeignKey(Listing.id, ondelete=CASCADE))
    tool_name: Mapped[str] = mapped_column(String(200), index=True)
    type: Mapped[str] = mapped_column(String(16))
    description: Mapped[str | None] = mapped_column(Text)
    endpoint: Mapped[str] = mapped_column(String(500))
    method: Mapped[str] = mapped_column(String(8), default="POST")
    parameters: Mapped[Any] = mapped_column(json_type(), nullable=True)
    response_format: Mapped[Any] = mapped_column(json_type(), nullable=True)
    required_tier: Mapped[str] = mapped_column(String(16), default="community")
    active: Mapped[bool] = mapped_column(Boolean, default=True)
