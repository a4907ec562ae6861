"""The edges: the rows are authoritative; the index in memory is derived from them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Integer, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, plugin_base, utc_now

Base: Any = plugin_base("dependency_graph")


class Edge(Base):
    """A plugin requires, suggests or conflicts with a plugin or a bundle; one edge for each pair."""

    __tablename__ = "dependency_graph_edge"
    __table_args__ = (
        UniqueConstraint("plugin_id", "depends_on_type", "depends_on"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    plugin_id: Mapped[str] = mapped_column(String(100))
    depends_on: Mapped[str] = mapped_column(String(100), index=True)
    dependency_type: Mapped[str] = mapped_column(String(16))
    depends_on_type: Mapped[str] = mapped_column(String(16), default="plugin")
    version_constraint: Mapped[str | None] = mapped_column(String(200))
    plugin_name: Mapped[str | None] = mapped_column(String(200))
    depends_on_name: Mapped[str | None] = mapped_column(String(200))
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
