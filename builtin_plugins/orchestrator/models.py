"""The table of the orchestrator: calls that are waiting for confirmation."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("orchestrator")


class PendingCall(Base):
    """A resolved tool call that its user may confirm once; `id` is a hash of the id that was shown."""

    __tablename__ = "orchestrator_pending_call"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    subject: Mapped[str] = mapped_column(String(255), index=True)
    tool: Mapped[str] = mapped_column(String(64))
    arguments: Mapped[Any] = mapped_column(json_type())
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
