"""The table of the counters."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import plugin_base

Base: Any = plugin_base("shared_counters")


class RateWindow(Base):
    """A key's count in a window, over all API processes."""

    __tablename__ = "shared_counters_window"

    key_hash: Mapped[str] = mapped_column(String(32), primary_key=True)
    window_end: Mapped[int] = mapped_column(BigInteger, primary_key=True, index=True, autoincrement=False)
    count: Mapped[int] = mapped_column(Integer)
