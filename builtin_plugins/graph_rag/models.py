"""Tables: a graph for each document, and what it is made of. Indexes and RDF are derived from these rows.

The texts of passages are stored here, too, so that reading evidence and dropping a graph take one
transaction; the price is that they are stored twice.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import blake2b
from typing import Any

from sqlalchemy import BigInteger, Boolean, Float, ForeignKey, Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("graph_rag")

LONGEST_KEY = 255


class Graph(Base):
    """The graph of one document.

    `maker` is the `sub` of the account that constructed it; it is empty for a document of a knowledge base,
    whose visibility then applies. `stamp` changes with each write, which tells derived stores what is new.
    `seal` is a number derived from it: by the number of graphs and the sum of their seals, a store can tell
    that it is up to date without reading thousands of stamps.
    """

    __tablename__ = "graph_rag_graph"
    __table_args__ = (UniqueConstraint("maker", "document_id"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    maker: Mapped[str] = mapped_column(String(255))
    document_id: Mapped[str] = mapped_column(String(255), index=True)
    knowledge_base_id: Mapped[str | None] = mapped_column(String(255), index=True)
    title: Mapped[str | None] = mapped_column(Text)
    source: Mapped[str | None] = mapped_column(Text)
    details: Mapped[Any] = mapped_column(json_type())
    engine: Mapped[str] = mapped_column(String(64))
    relationships: Mapped[bool] = mapped_column(Boolean)
    entity_count: Mapped[int] = mapped_column(Integer)
    relation_count: Mapped[int] = mapped_column(Integer)
    stamp: Mapped[str] = mapped_column(String(32))
    seal: Mapped[int] = mapped_column(BigInteger, server_default="0")
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


def seal_of(stamp: str) -> int:
    """40 bits: two states have equal sums in one of 10^12 cases, and 8 million seals fit into 64 bits."""
    return int.from_bytes(blake2b(stamp.encode(), digest_size=5).digest())


def _graph_id() -> Any:
    return mapped_column(ForeignKey(Graph.id, ondelete="CASCADE"), primary_key=True)


class GraphPassage(Base):
    """A passage, with its mentions: lists of start and end (in its text), entity key, label."""

    __tablename__ = "graph_rag_passage"

    graph_id: Mapped[int] = _graph_id()
    position: Mapped[int] = mapped_column(Integer, primary_key=True)
    passage_id: Mapped[str] = mapped_column(String(64))
    page: Mapped[int | None] = mapped_column(Integer)
    char_start: Mapped[int] = mapped_column(Integer)
    char_end: Mapped[int] = mapped_column(Integer)
    text: Mapped[str] = mapped_column(Text)
    mentions: Mapped[Any] = mapped_column(json_type())


class Entity(Base):
    """An entity of one document; entities with the same key are the same in all documents."""

    __tablename__ = "graph_rag_entity"

    graph_id: Mapped[int] = _graph_id()
    key: Mapped[str] = mapped_column(String(LONGEST_KEY), primary_key=True, index=True)
    name: Mapped[str] = mapped_column(Text)
    label: Mapped[str] = mapped_column(String(32))
    mentions: Mapped[int] = mapped_column(Integer)
    position: Mapped[int] = mapped_column(Integer)


class Alias(Base):
    """A name that stands for another entity of its document, with the reason and the place that shows it."""

    __tablename__ = "graph_rag_alias"

    graph_id: Mapped[int] = _graph_id()
    alias: Mapped[str] = mapped_column(String(LONGEST_KEY), primary_key=True, index=True)
    key: Mapped[str] = mapped_column(String(LONGEST_KEY), index=True)
    name: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(String(16))
    position: Mapped[int] = mapped_column(Integer)
    start: Mapped[int] = mapped_column(Integer)
    end: Mapped[int] = mapped_column(Integer)


class Relation(Base):
    """Two entities that a document relates, and the first place that does (`start`, `end` in its passage)."""

    __tablename__ = "graph_rag_relation"
    __table_args__ = (
        Index("ix_graph_rag_relation_subject", "subject"),
        Index("ix_graph_rag_relation_object", "object"),
    )

    graph_id: Mapped[int] = _graph_id()
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    subject: Mapped[str] = mapped_column(String(LONGEST_KEY))
    predicate: Mapped[str] = mapped_column(String(LONGEST_KEY))
    object: Mapped[str] = mapped_column(String(LONGEST_KEY))
    kind: Mapped[str] = mapped_column(String(16))
    weight: Mapped[float] = mapped_column(Float)
    position: Mapped[int] = mapped_column(Integer)
    start: Mapped[int] = mapped_column(Integer)
    end: Mapped[int] = mapped_column(Integer)
