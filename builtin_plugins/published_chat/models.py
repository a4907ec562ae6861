"""Tables of the published chat."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sqlalchemy import Boolean, Date, ForeignKey, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import Owned, UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("published_chat")


class ChatEndpoint(Owned, Base):
    """A chat that pages of other sites show. It answers from a pipeline with its owner's rights.

    `slug_key` is the case-folded slug. `allowed_origins` is as the owner wrote it.
    """

    __tablename__ = "published_chat_endpoint"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    slug: Mapped[str] = mapped_column(String(120))
    slug_key: Mapped[str] = mapped_column(String(120), unique=True)
    pipeline_id: Mapped[str] = mapped_column(String(255))
    allowed_origins: Mapped[str | None] = mapped_column(String(2000))
    rag_config: Mapped[Any] = mapped_column(json_type())
    rate_limit_per_minute: Mapped[int] = mapped_column(Integer)
    daily_questions: Mapped[int] = mapped_column(Integer)
    daily_tokens: Mapped[int] = mapped_column(Integer)
    enabled: Mapped[bool] = mapped_column(Boolean, default=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now, index=True)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)

    @property
    def holder(self) -> str:
        """The holder of its visitors' conversations."""
        return f"published_chat:{self.id}"


class VisitorSession(Base):
    """A visitor who has asked something, without name or address."""

    __tablename__ = "published_chat_session"
    __table_args__ = (
        Index("ix_published_chat_session_endpoint_id_last_activity", "endpoint_id", "last_activity"),
    )

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    endpoint_id: Mapped[str] = mapped_column(ForeignKey(ChatEndpoint.id, ondelete="CASCADE"))
    origin: Mapped[str] = mapped_column(String(255))
    started_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    last_activity: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class VisitorTurn(Base):
    """An answered question, and the visitor's rating. Its texts are in the conversation."""

    __tablename__ = "published_chat_turn"

    turn_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    session_id: Mapped[str] = mapped_column(ForeignKey(VisitorSession.id, ondelete="CASCADE"), index=True)
    conversation_id: Mapped[str] = mapped_column(String(255))
    day: Mapped[date] = mapped_column(Date)
    refused: Mapped[bool] = mapped_column(Boolean)
    rating: Mapped[str | None] = mapped_column(String(4))
    comment: Mapped[str | None] = mapped_column(Text)
    rated_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)


class Day(Base):
    """What happened at an endpoint on one day (UTC)."""

    __tablename__ = "published_chat_day"

    endpoint_id: Mapped[str] = mapped_column(
        ForeignKey(ChatEndpoint.id, ondelete="CASCADE"), primary_key=True
    )
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    questions: Mapped[int] = mapped_column(Integer, default=0)
    answered: Mapped[int] = mapped_column(Integer, default=0)
    refused: Mapped[int] = mapped_column(Integer, default=0)
    tokens: Mapped[int] = mapped_column(Integer, default=0)
    up: Mapped[int] = mapped_column(Integer, default=0)
    down: Mapped[int] = mapped_column(Integer, default=0)
