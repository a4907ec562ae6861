"""Tables of identity: accounts and the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from kernel.db.base import UtcDateTime, json_type, utc_now
from kernel.db.tables import Base, BigId


class Account(Base):
    """A person (or robot) that signs in.

    `epoch` is raised by every session revocation: a token with a lower one is refused, exact however small
    the margin. `*_key` columns hold the case-folded text that must be unique.
    """

    __tablename__ = "kernel_account"
    __table_args__ = {"sqlite_autoincrement": True}

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    username: Mapped[str] = mapped_column(String(64))
    username_key: Mapped[str] = mapped_column(String(64), unique=True)
    email: Mapped[str] = mapped_column(String(320))
    email_key: Mapped[str] = mapped_column(String(320), unique=True)
    password_hash: Mapped[str | None] = mapped_column(Text)
    role: Mapped[str] = mapped_column(String(16), default="user")
    platform_admin: Mapped[bool] = mapped_column(Boolean, default=False)
    is_active: Mapped[bool] = mapped_column(Boolean, default=True)
    must_change_password: Mapped[bool] = mapped_column(Boolean, default=False)
    epoch: Mapped[int] = mapped_column(Integer, default=0)
    sso_subject: Mapped[str | None] = mapped_column(String(512), unique=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class AuditEntry(Base):
    """What somebody changed, written in the transaction of the change (spec 2.7). Never altered."""

    __tablename__ = "kernel_audit_entry"
    __table_args__ = (
        Index("ix_kernel_audit_entry_target_type_target_id", "target_type", "target_id"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    action: Mapped[str] = mapped_column(String(128), index=True)
    target_type: Mapped[str] = mapped_column(String(64))
    target_id: Mapped[str | None] = mapped_column(String(255))
    actor_id: Mapped[int | None] = mapped_column(Integer, index=True)
    before_state: Mapped[Any | None] = mapped_column(json_type())
    after_state: Mapped[Any | None] = mapped_column(json_type())
    ip_address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    scope_org_id: Mapped[int | None] = mapped_column(Integer, index=True)
    scope_type: Mapped[str] = mapped_column(String(32), default="platform")
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now, index=True)
