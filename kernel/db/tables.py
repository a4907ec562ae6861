"""The kernel's own tables, apart from identity (`kernel.auth.models`)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from kernel.db.base import UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("kernel")

# SQLite numbers rows automatically only with an INTEGER primary key.
BigId = BigInteger().with_variant(Integer(), "sqlite")


class Notice(Base):
    """A change that other processes must know of; written in its transaction."""

    __tablename__ = "kernel_notice"
    __table_args__ = {"sqlite_autoincrement": True}

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    topic: Mapped[str] = mapped_column(String(64))
    key: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now, index=True)


class JobRecord(Base):
    """A durable job as people see it; the queue itself is the job library's.

    `attempts` counts the starts, `failures` those that ended with an error of the job, `faults` those that
    ended with a fault of the machine; the rest died with their worker. A long job has a `title`.
    `done_before` is the progress made before the current attempt. For a job that runs together with others,
    `gathered` is where it waits or which worker has it (see `kernel.jobs.gathering`); `share` says on whose
    behalf, beside its owner, it takes turns, and `weight` how much it counts. For a job that waits to be
    tried again, alone, `not_before` is the earliest time, by the clock that all processes share. `trace` is
    the ``traceparent`` of what enqueued it.
    """

    __tablename__ = "kernel_job"
    __table_args__ = (
        Index("ix_kernel_job_status_created_at", "status", "created_at"),
        Index("ix_kernel_job_finished_at", "finished_at"),
        Index("ix_kernel_job_owner_id_created_at", "owner_id", "created_at"),
        Index("ix_kernel_job_name_subject", "name", "subject"),
        Index("ix_kernel_job_gathered_status", "gathered", "status"),
        Index(
            "ix_kernel_job_not_before",
            "not_before",
            sqlite_where=text("not_before IS NOT NULL"),
            postgresql_where=text("not_before IS NOT NULL"),
        ),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    payload: Mapped[Any] = mapped_column(json_type())
    lane: Mapped[str] = mapped_column(String(16), default="standard")
    status: Mapped[str] = mapped_column(String(16), default="queued")
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    failures: Mapped[int] = mapped_column(Integer, default=0)
    faults: Mapped[int] = mapped_column(Integer, default=0)
    error: Mapped[str | None] = mapped_column(Text)
    title: Mapped[str | None] = mapped_column(String(128))
    owner_id: Mapped[int | None] = mapped_column(Integer)
    subject: Mapped[str | None] = mapped_column(String(64))
    done: Mapped[int] = mapped_column(BigInteger, default=0)
    done_before: Mapped[int] = mapped_column(BigInteger, default=0)
    total: Mapped[int | None] = mapped_column(BigInteger)
    unit: Mapped[str] = mapped_column(String(32), default="")
    message: Mapped[str] = mapped_column(Text, default="")
    result: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    progress_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    cancel_requested_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    gathered: Mapped[str | None] = mapped_column(String(192))
    share: Mapped[str | None] = mapped_column(String(64))
    weight: Mapped[int] = mapped_column(Integer, default=1, server_default="1")
    trace: Mapped[str | None] = mapped_column(String(64))
    not_before: Mapped[datetime | None] = mapped_column(UtcDateTime)


class ScheduleRecord(Base):
    """When a scheduled job is due, and its last run."""

    __tablename__ = "kernel_schedule"

    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    cron: Mapped[str] = mapped_column(String(128))
    next_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    job_id: Mapped[str | None] = mapped_column(String(64))


class WorkerRecord(Base):
    """A worker process and its last sign of life, by the clock that all processes share; if it falls silent,
    others take over its jobs.
    """

    __tablename__ = "kernel_worker"

    id: Mapped[str] = mapped_column(String(128), primary_key=True)
    started_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    seen_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class CollectionRecord(Base):
    """A set of points that are searched together, embedded by the same engine.

    `version` counts the committed changes. A change of the collection's points raises it first, which locks
    the row until the commit: versions follow the order of commits on every database. Tombstones up to `floor`
    are deleted: an older index is rebuilt.
    """

    __tablename__ = "kernel_collection"
    __table_args__ = {"sqlite_autoincrement": True}

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str] = mapped_column(String(255), unique=True)
    dimension: Mapped[int] = mapped_column(Integer)
    engine: Mapped[str] = mapped_column(String(255))
    version: Mapped[int] = mapped_column(BigInteger, default=0)
    floor: Mapped[int] = mapped_column(BigInteger, default=0)


class PointRecord(Base):
    """A text with its vector: the source of truth from which every search index is derived.

    `version` is the collection's version that made the point visible; NULL while it is staged.
    """

    __tablename__ = "kernel_point"
    __table_args__ = (
        Index("ix_kernel_point_collection_id_version_label", "collection_id", "version", "label"),
        Index("ix_kernel_point_collection_id_group_key_position", "collection_id", "group_key", "position"),
        UniqueConstraint("collection_id", "id", name="uq_kernel_point_collection_id_id"),
        {"sqlite_autoincrement": True},
    )

    label: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    collection_id: Mapped[int] = mapped_column(ForeignKey(CollectionRecord.id, ondelete="CASCADE"))
    id: Mapped[str] = mapped_column(String(64))
    group_key: Mapped[str] = mapped_column(String(64))
    position: Mapped[int] = mapped_column(Integer)
    text: Mapped[str] = mapped_column(Text)
    payload: Mapped[Any] = mapped_column(json_type())
    vector: Mapped[bytes] = mapped_column(LargeBinary)
    version: Mapped[int | None] = mapped_column(BigInteger)


class TombstoneRecord(Base):
    """A deleted point, for indexes that have not seen the deletion yet."""

    __tablename__ = "kernel_tombstone"
    __table_args__ = (Index("ix_kernel_tombstone_collection_id_version", "collection_id", "version"),)

    label: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    collection_id: Mapped[int] = mapped_column(ForeignKey(CollectionRecord.id, ondelete="CASCADE"))
    version: Mapped[int] = mapped_column(BigInteger)


class BlobRecord(Base):
    """A stored blob, by the hash of its content. Its row is the lock for writing and removing its file."""

    __tablename__ = "kernel_blob"

    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    size: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class BlobReference(Base):
    """A holder of a blob; removing the last reference removes the file."""

    __tablename__ = "kernel_blob_reference"

    sha256: Mapped[str] = mapped_column(ForeignKey(BlobRecord.sha256), primary_key=True)
    holder: Mapped[str] = mapped_column(String(255), primary_key=True)


class RateWindow(Base):
    """A key's count in a window, over all API processes; see `kernel.stores.shared_counters`."""

    __tablename__ = "kernel_rate_window"

    key_hash: Mapped[str] = mapped_column(String(32), primary_key=True)
    window_end: Mapped[int] = mapped_column(BigInteger, primary_key=True, index=True, autoincrement=False)
    count: Mapped[int] = mapped_column(Integer)
