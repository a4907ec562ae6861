"""What is stored of conversations: threads, their turns, and where the cited passages are."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, Float, ForeignKey, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("conversations")


class Thread(Base):
    """A conversation. `holder` is the subject that began it; its client chose `conversation_id`.

    `last_activity` is the time of its last answered question; it is hidden until there is one.
    """

    __tablename__ = "conversations_thread"
    __table_args__ = (
        UniqueConstraint("holder", "conversation_id"),
        UniqueConstraint("shared_pipeline_id", "conversation_id"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    holder: Mapped[str] = mapped_column(String(255))
    conversation_id: Mapped[str] = mapped_column(String(255))
    title: Mapped[str | None] = mapped_column(String(200))
    shared_pipeline_id: Mapped[str | None] = mapped_column(String(36))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    last_activity: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)


class Turn(Base):
    """A question and its answer. Ids grow in the order in which questions were asked.

    `pieces` are ``[text, numbers]`` pairs: the answer cut where its citations end. A deleted text is null.
    Until the question is answered, `answered_at` is null.
    """

    __tablename__ = "conversations_turn"
    __table_args__ = {"sqlite_autoincrement": True}

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    thread_id: Mapped[int] = mapped_column(ForeignKey(Thread.id, ondelete="CASCADE"), index=True)
    asked_by: Mapped[str] = mapped_column(String(255))
    pipeline_id: Mapped[str] = mapped_column(String(36))
    question: Mapped[str] = mapped_column(Text)
    pieces: Mapped[Any] = mapped_column(json_type())
    withheld: Mapped[bool] = mapped_column(Boolean, default=False)
    model_used: Mapped[str] = mapped_column(String(255), default="")
    method: Mapped[str] = mapped_column(String(32), default="")
    sources_count: Mapped[int] = mapped_column(Integer, default=0)
    confidence: Mapped[float] = mapped_column(Float, default=0.0)
    tokens_used: Mapped[int | None] = mapped_column(Integer)
    asked_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    answered_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    rating: Mapped[str | None] = mapped_column(String(4))
    rating_comment: Mapped[str | None] = mapped_column(Text)


class Citation(Base):
    """Where a passage is that an answer cites as `[number]`. Its text is only stored in its document.

    `quotes` are ``[start, end]`` pairs, in characters of the document's text; null if unknown.
    Negative numbers are passages cited by earlier turns, which the model was shown as history.
    """

    __tablename__ = "conversations_citation"

    turn_id: Mapped[int] = mapped_column(ForeignKey(Turn.id, ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    document_id: Mapped[str] = mapped_column(String(36), index=True)
    knowledge_base_id: Mapped[str | None] = mapped_column(String(36))
    chunk_id: Mapped[str] = mapped_column(String(255))
    source: Mapped[str] = mapped_column(String(255))
    page: Mapped[int | None] = mapped_column(Integer)
    section: Mapped[str | None] = mapped_column(String(500))
    char_start: Mapped[int] = mapped_column(Integer)
    char_end: Mapped[int] = mapped_column(Integer)
    quotes: Mapped[Any] = mapped_column(json_type(), nullable=True)
    score: Mapped[float] = mapped_column(Float)
