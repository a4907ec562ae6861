"""Tables: sources, the items that each has listed, and runs.

No content is stored here: documents are the knowledge base's own.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, ForeignKey, Index, Integer, String, Text, false, text
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("sources")


class SourceRecord(Base):
    """A source of a knowledge base.

    `account_id` is whose secret its credential is. `leaving` is set while it is being removed: what becomes
    of its documents. `problem` is why the last run did not succeed.
    """

    __tablename__ = "sources_source"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    knowledge_base_id: Mapped[str] = mapped_column(String(36), index=True)
    kind: Mapped[str] = mapped_column(String(50))
    name: Mapped[str] = mapped_column(String(255))
    settings: Mapped[Any] = mapped_column(json_type())
    filters: Mapped[Any] = mapped_column(json_type())
    schedule: Mapped[str | None] = mapped_column(String(64))
    account_id: Mapped[int | None] = mapped_column(Integer)
    push_digest: Mapped[str | None] = mapped_column(String(64), unique=True)
    cursor: Mapped[str | None] = mapped_column(Text)
    """Where the next listing may begin; None for a whole one."""
    next_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    pushed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    problem: Mapped[str | None] = mapped_column(Text)
    leaving: Mapped[str | None] = mapped_column(String(8))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    is_guarded: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    """Whether its documents have the readers that they have there."""
    rights_seconds: Mapped[int | None] = mapped_column(Integer)
    """How often its permissions are read between runs; None as often as is usual."""
    rights_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """The moment of those that count now: when reading them began."""
    rights_due_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    rights_mark: Mapped[str | None] = mapped_column(Text)
    rights_pass: Mapped[str | None] = mapped_column(String(36))
    """The latest reading of permissions, until it ends; an earlier one writes no longer."""
    rights_problem: Mapped[str | None] = mapped_column(Text)
    sign_in_groups: Mapped[str | None] = mapped_column(String(8))
    """Whether a group there is also the group of the sign-in with the same ``id`` or ``name``."""
    is_closed: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    """Whether nobody may read its documents, because its permissions were not read for too long."""
    watcher: Mapped[str | None] = mapped_column(String(36))
    """The process that watches it."""
    watched_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    watch_problem: Mapped[str | None] = mapped_column(Text)


class ItemRecord(Base):
    """An item of a source.

    `digest` is that of its identity. `etag` is that of the content that was last dealt with, `listed_etag`
    that of the last listing; `listed_by` is the pass that last listed it. `stored_name` is the file name of
    its document.
    """

    __tablename__ = "sources_item"
    __table_args__ = (
        Index("uq_sources_item_digest", "source_id", "digest", unique=True),
        Index("ix_sources_item_state", "source_id", "state", "id"),
        Index(
            "ix_sources_item_fingerprint",
            "source_id",
            "fingerprint",
            sqlite_where=text("fingerprint IS NOT NULL"),
            postgresql_where=text("fingerprint IS NOT NULL"),
        ),
    )

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    source_id: Mapped[str] = mapped_column(ForeignKey(SourceRecord.id, ondelete="CASCADE"))
    digest: Mapped[str] = mapped_column(String(64))
    identity: Mapped[str] = mapped_column(Text)
    path: Mapped[str] = mapped_column(String(1000))
    name: Mapped[str] = mapped_column(String(255))
    stored_name: Mapped[str | None] = mapped_column(String(255))
    etag: Mapped[str | None] = mapped_column(String(255))
    listed_etag: Mapped[str] = mapped_column(String(255))
    fingerprint: Mapped[str | None] = mapped_column(String(255))
    size_bytes: Mapped[int | None] = mapped_column(BigInteger)
    media_type: Mapped[str | None] = mapped_column(String(255))
    modified_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    link: Mapped[str | None] = mapped_column(Text)
    details: Mapped[Any] = mapped_column(json_type())
    state: Mapped[str] = mapped_column(String(16))
    """`waiting`, `stored`, `skipped`, `failed`, or `deleted_here`, by a person, until it changes."""
    reason: Mapped[str | None] = mapped_column(String(500))
    document_id: Mapped[str | None] = mapped_column(String(36), index=True)
    listed_by: Mapped[str | None] = mapped_column(String(36))
    is_gone: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    """Whether the last listing named it as gone, or a filter now leaves it out."""
    readers: Mapped[str | None] = mapped_column(Text)
    """Who may read it there, as JSON (`services/rights/readers.py`); None as long as that isn't known."""
    granted_by: Mapped[str | None] = mapped_column(String(36))
    """The pass of a listing that said so itself."""


class PrincipalRecord(Base):
    """A person or a group at a guarded source. `digest` is that of the id there.

    `people` and `groups` are the ids of who is in a group. `accounts` is for how many accounts it
    stands here, -1 for everybody who sees the knowledge base. `has_sign_in_group`: some of them are in it,
    or in a group within it, because of a group of the sign-in, whose members its owner needn't know.
    """

    __tablename__ = "sources_principal"
    __table_args__ = (Index("uq_sources_principal_digest", "source_id", "kind", "digest", unique=True),)

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    source_id: Mapped[str] = mapped_column(ForeignKey(SourceRecord.id, ondelete="CASCADE"))
    kind: Mapped[str] = mapped_column(String(8))
    digest: Mapped[str] = mapped_column(String(64))
    principal: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(String(255))
    email_key: Mapped[str | None] = mapped_column(String(320))
    issuer: Mapped[str | None] = mapped_column(String(512))
    subject: Mapped[str | None] = mapped_column(String(512))
    people: Mapped[Any] = mapped_column(json_type())
    groups: Mapped[Any] = mapped_column(json_type())
    accounts: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    has_sign_in_group: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())


class CounterpartRecord(Base):
    """What a person or group at a source is here, as the owner of the knowledge base says.

    `target` is ``account``, ``team``, ``sign_in_group`` (`target_name`), ``everyone`` or ``nobody``; it takes
    the place of the e-mail address.
    """

    __tablename__ = "sources_counterpart"
    __table_args__ = (Index("ix_sources_counterpart_digest", "source_id", "kind", "digest"),)

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    source_id: Mapped[str] = mapped_column(ForeignKey(SourceRecord.id, ondelete="CASCADE"))
    kind: Mapped[str] = mapped_column(String(8))
    digest: Mapped[str] = mapped_column(String(64))
    principal: Mapped[str] = mapped_column(Text)
    target: Mapped[str] = mapped_column(String(16))
    target_id: Mapped[int | None] = mapped_column(Integer)
    target_name: Mapped[str | None] = mapped_column(String(255))


class RunRecord(Base):
    """One run of a source; `is_dry` if it only says what would change (`plan`).

    `phase` is `listing`, then `applying`. `confirmed` is how many missing items a person has confirmed.
    """

    __tablename__ = "sources_run"
    __table_args__ = (Index("ix_sources_run_source_id_started_at", "source_id", "started_at"),)

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    source_id: Mapped[str] = mapped_column(ForeignKey(SourceRecord.id, ondelete="CASCADE"))
    trigger: Mapped[str] = mapped_column(String(16))
    is_dry: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    state: Mapped[str] = mapped_column(String(20), index=True)
    phase: Mapped[str] = mapped_column(String(16))
    error: Mapped[str | None] = mapped_column(Text)
    job_id: Mapped[str | None] = mapped_column(String(64))
    started_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    resume_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    listing: Mapped[str | None] = mapped_column(String(36))
    """The id of its latest pass over the source."""
    cursor: Mapped[str | None] = mapped_column(Text)
    is_partial: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    """Whether its listing named only changes."""
    confirmed: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    found: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    added: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    changed: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    moved: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    gone: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    skipped: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    failed: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    fetched_bytes: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    plan: Mapped[Any | None] = mapped_column(json_type())
