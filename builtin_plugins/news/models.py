"""The tables of the news plugin: how far it has read each feed, and each item's document."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, plugin_base

Base: Any = plugin_base("news")


class Library(Base):
    """The knowledge base that holds the news; one row."""

    __tablename__ = "news_library"

    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    knowledge_base_id: Mapped[str] = mapped_column(String(36))


class Feed(Base):
    """A feed and its latest reading. `etag` and `modified` are of the last completely stored one."""

    __tablename__ = "news_feed"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    url: Mapped[str] = mapped_column(Text)
    title: Mapped[str] = mapped_column(String(255), default="")
    etag: Mapped[str | None] = mapped_column(String(1000))
    modified: Mapped[str | None] = mapped_column(String(255))
    checked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    error: Mapped[str | None] = mapped_column(String(500))


class Item(Base):
    """An item of a feed, and the document that holds it. `digest` changes with its text."""

    __tablename__ = "news_item"
    __table_args__ = (Index("ix_news_item_feed_published_at", "feed", "published_at"),)

    feed: Mapped[str] = mapped_column(String(64), primary_key=True)
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64))
    title: Mapped[str] = mapped_column(String(500))
    link: Mapped[str] = mapped_column(Text, default="")
    published_at: Mapped[datetime] = mapped_column(UtcDateTime)
    document_id: Mapped[str] = mapped_column(String(36))
