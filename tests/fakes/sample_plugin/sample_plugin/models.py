"""The plugin's table."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String, Text
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, plugin_base, utc_now

Base = plugin_base("bookmarks")


class Bookmark(Base):
    """An address worth remembering."""

    __tablename__ = "bookmarks_bookmark"

    id: Mapped[int] = mapped_column(primary_key=True)
    address: Mapped[str] = mapped_column(String(2000), unique=True)
    title: Mapped[str] = mapped_column(String(200))
    note: Mapped[str] = mapped_column(Text, default="", server_default="")
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
