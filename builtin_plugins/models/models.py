"""The tables of the service: limits on models, their use by day, pulls."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sqlalchemy import BigInteger, Date, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("models")


class ModelRule(Base):
    """Limits on one model; null means no limit. `model` is its canonical name.

    `rate_limit` counts calls in a minute for each account, `max_tokens` caps one answer. With `allowed_users`
    (usernames or decimal account ids) or `allowed_roles`, others may not call it.
    """

    __tablename__ = "models_rule"

    model: Mapped[str] = mapped_column(String(255), primary_key=True)
    rate_limit: Mapped[int | None] = mapped_column(Integer)
    max_tokens: Mapped[int | None] = mapped_column(Integer)
    allowed_users: Mapped[Any | None] = mapped_column(json_type())
    allowed_roles: Mapped[Any | None] = mapped_column(json_type())
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class ModelUse(Base):
    """Calls of a model on one day (UTC) by one part of the platform. Times are milliseconds.

    `tokens_unknown` counts calls whose runtime didn't report their tokens.
    """

    __tablename__ = "models_use"

    day: Mapped[date] = mapped_column(Date, primary_key=True)
    model: Mapped[str] = mapped_column(String(255), primary_key=True)
    part: Mapped[str] = mapped_column(String(128), primary_key=True)
    calls: Mapped[int] = mapped_column(BigInteger, default=0)
    errors: Mapped[int] = mapped_column(BigInteger, default=0)
    tokens: Mapped[int] = mapped_column(BigInteger, default=0)
    tokens_unknown: Mapped[int] = mapped_column(BigInteger, default=0)
    total_ms: Mapped[int] = mapped_column(BigInteger, default=0)
    longest_ms: Mapped[int] = mapped_column(BigInteger, default=0)


class Pull(Base):
    """A pull: `queued`, `running` (its job has the same id), `done`, `failed`, `cancelled`."""

    __tablename__ = "models_pull"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    model: Mapped[str] = mapped_column(String(255), index=True)
    runtime: Mapped[str] = mapped_column(String(64))
    status: Mapped[str] = mapped_column(String(16), default="queued", index=True)
    error: Mapped[str | None] = mapped_column(Text)
    requested_by: Mapped[int | None] = mapped_column(Integer)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class ModelConnection(Base):
    """A model server that an administrator connected. Its key is a secret of the plugin, by its name."""

    __tablename__ = "models_connection"

    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    url: Mapped[str] = mapped_column(String(500))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class DefaultModel(Base):
    """The model for one purpose, `answers` or `helpers`, if an administrator chose one."""

    __tablename__ = "models_default"

    purpose: Mapped[str] = mapped_column(String(16), primary_key=True)
    model: Mapped[str] = mapped_column(String(255))
