"""Tables of the oidc plugin: single-use values, and the subjects of provider sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, plugin_base

Base: Any = plugin_base("oidc")


class Used(Base):
    """A used state or logout token, kept until it would be refused as expired anyway."""

    __tablename__ = "oidc_used"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)


class ProviderSession(Base):
    """The subject of a session at the provider, as a logout token may name only the session (`sid`)."""

    __tablename__ = "oidc_session"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    subject: Mapped[str] = mapped_column(String(255))
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
