"""Tables of the oidc plugin: what was used up, and whose a provider's session is."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, plugin_base

Base: Any = plugin_base("oidc")


class Used(Base):
    """A state or a logout token that came in once and must not again, until it would be refused anyway."""

    __tablename__ = "oidc_used"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)


class ProviderSession(Base):
    """The subject of a session at the provider: a logout token may name nothing but the session (`sid`)."""

    __tablename__ = "oidc_session"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    subject: Mapped[str] = mapped_column(String(255))
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
