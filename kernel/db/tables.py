"""The kernel's own tables, apart from identity (`kernel.auth.models`)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    Index,
    Integer,
    String,
    Text,
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


def _partial(name: str, *columns: str, where: str) -> Index:
    """An index of the jobs that fulfil a condition."""
    condition = text(where)
    return Index(f"ix_kernel_job_{name}", *columns, sqlite_where=condition, postgresql_where=condition)


class JobRecord(Base):
    """A durable job, and its place in the queue (see `kernel.jobs.queue`).

    `attempts` counts the starts, `failures` those that ended with an error of the job, `faults` those that
    ended with a fault of the machine; the rest died with their worker. A long job has a `title`.
    `done_before` is the progress made before the current attempt, `paced_from` that by `paced_since`, when
    an attempt's pace changed, if it did. `worker` has the job while it runs. A job
    that takes turns with others has a `weight`, how much it counts, and a `share`, on whose behalf, beside
    its owner, it takes them. For a job that waits to be tried again, alone, `not_before` is the earliest
    time, by the clock that all processes share. `trace` is the ``traceparent`` of what enqueued it.
    """

    __tablename__ = "kernel_job"
    __table_args__ = (
        Index("ix_kernel_job_status_created_at", "status", "created_at"),
        Index("ix_kernel_job_finished_at", "finished_at"),
        Index("ix_kernel_job_owner_id_created_at", "owner_id", "created_at"),
        Index("ix_kernel_job_name_subject", "name", "subject"),
        _partial("in_order", "lane", "created_at", "id", where="status = 'queued' AND weight IS NULL"),
        _partial(
            *("in_turn", "lane", "name", "owner_id", "share", "not_before", "created_at"),
            where="status = 'queued' AND weight IS NOT NULL",
        ),
        _partial("worker", "worker", where="worker IS NOT NULL"),
        _partial("not_before", "not_before", where="not_before IS NOT NULL"),
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
    paced_from: Mapped[int] = mapped_column(BigInteger, default=0)
    paced_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    total: Mapped[int | None] = mapped_column(BigInteger)
    unit: Mapped[str] = mapped_column(String(32), default="")
    message: Mapped[str] = mapped_column(Text, default="")
    result: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    progress_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    cancel_requested_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    worker: Mapped[str | None] = mapped_column(String(128))
    share: Mapped[str | None] = mapped_column(String(64))
    weight: Mapped[int | None] = mapped_column(Integer)
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
