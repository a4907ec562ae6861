"""Tables of the oidc plugin: single-use values, the subjects of provider sessions, groups of accounts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Integer, String
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


class GroupStatement(Base):
    """When an account last signed in, and whether the provider named its groups then.

    `problem` is why its groups are unknown: ``not_sent``, ``unreachable`` or ``too_many``.
    """

    __tablename__ = "oidc_group_statement"

    account_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    made_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    problem: Mapped[str | None] = mapped_column(String(16))


class GroupMember(Base):
    """A group that the provider named for an account at its last sign-in."""

    __tablename__ = "oidc_group_member"

    account_id: Mapped[int] = mapped_column(
        ForeignKey(GroupStatement.account_id, ondelete="CASCADE"), primary_key=True
    )
    name: Mapped[str] = mapped_column(String(255), primary_key=True, index=True)
