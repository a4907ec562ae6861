"""Tables of identity: accounts, password resets, SSO links, setup codes, owners' secrets, the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, ForeignKey, Index, Integer, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from kernel.db.base import UtcDateTime, json_type, utc_now
from kernel.db.tables import Base, BigId


class Account(Base):
    """A person or program that signs in.

    Every session revocation raises `epoch`; tokens with another epoch are refused. The `*_key` columns hold
    the case-folded text that must be unique. An account with an `sso_subject` signs in through the identity
    provider `sso_issuer` and has no password; `linked_at` is when a local account became one.

    The row of a deleted account (`deleted_at`) stays without any of its data, so that its id is never used
    again, and is named `deleted account #<id>`.
    """

    __tablename__ = "kernel_account"
    __table_args__ = (
        UniqueConstraint("sso_issuer", "sso_subject", name="uq_kernel_account_sso_issuer_sso_subject"),
        {"sqlite_autoincrement": True},
    )

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
    sso_issuer: Mapped[str | None] = mapped_column(String(512))
    sso_subject: Mapped[str | None] = mapped_column(String(512))
    linked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    deleted_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class AccountRemoval(Base):
    """When a plugin last removed everything that belonged to a deleted account."""

    __tablename__ = "kernel_account_removal"

    account_id: Mapped[int] = mapped_column(ForeignKey(Account.id, ondelete="CASCADE"), primary_key=True)
    plugin: Mapped[str] = mapped_column(String(255), primary_key=True)
    removed_at: Mapped[datetime] = mapped_column(UtcDateTime)


class PasswordReset(Base):
    """A password reset token, sent by e-mail: works once, until it expires. Only its hash is stored."""

    __tablename__ = "kernel_password_reset"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey(Account.id, ondelete="CASCADE"), index=True)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class LinkApproval(Base):
    """The operator's approval for the next SSO sign-in to take over the account (spec 3.5).

    The sign-in of the `identity` with this name, address or subject; without one, of the account's name.
    """

    __tablename__ = "kernel_link_approval"

    account_id: Mapped[int] = mapped_column(ForeignKey(Account.id, ondelete="CASCADE"), primary_key=True)
    identity: Mapped[str | None] = mapped_column(String(512))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class SetupCode(Base):
    """A one-time code that makes an instance administrator the first Platform Admin (spec 3.6).

    The newest row counts; only its hash is kept.
    """

    __tablename__ = "kernel_setup_code"
    __table_args__ = {"sqlite_autoincrement": True}

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    code_hash: Mapped[str] = mapped_column(String(64))
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    consumed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class SetupAttempt(Base):
    """How many wrong codes an account has tried against one setup code."""

    __tablename__ = "kernel_setup_attempt"

    code_id: Mapped[int] = mapped_column(ForeignKey(SetupCode.id, ondelete="CASCADE"), primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey(Account.id, ondelete="CASCADE"), primary_key=True)
    wrong: Mapped[int] = mapped_column(Integer, default=0)


class Milestone(Base):
    """Something that happens once in the life of an instance, such as its first Platform Admin."""

    __tablename__ = "kernel_milestone"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    reached_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class AuditEntry(Base):
    """A change and who made it, written in the same transaction (spec 2.7). Never altered."""

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


class OwnerSecret(Base):
    """An encrypted secret of an account, an organization or a plugin; deleted with its account."""

    __tablename__ = "kernel_owner_secret"
    __table_args__ = (
        UniqueConstraint("owner_kind", "owner_id", "name", name="uq_kernel_owner_secret_owner_name"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    owner_kind: Mapped[str] = mapped_column(String(16))
    owner_id: Mapped[str] = mapped_column(String(255))
    account_id: Mapped[int | None] = mapped_column(ForeignKey(Account.id, ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(255))
    key_id: Mapped[str] = mapped_column(String(16), index=True)
    nonce: Mapped[bytes] = mapped_column(LargeBinary)
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
