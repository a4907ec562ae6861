"""The checks of `platformctl doctor` that look into database and stores. Nothing here changes anything."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import func, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session

from kernel.db.base import shared_now, utc_now
from kernel.db.tables import JobRecord, WorkerRecord
from kernel.platform import Platform
from kernel.plugins.diagnostics import Finding
from kernel.stores.blobs import BlobsAway, FileBlobs, HeldBlobs, StoredBlob, held_blobs

_SKEW = timedelta(seconds=30)
_LARGE_LOG = 512 << 20
_JUST_NOW = 3600.0
DAMAGED_REMEDY = (
    "Stop the platform, copy its home, check the disk, and restore a backup: 'platformctl backup list', "
    "'platformctl backup restore NAME'."
)


async def examine_stored(platform: Platform) -> AsyncIterator[Finding]:
    """Check what is stored; the database must be up to date."""
    yield await check_database_file(platform)
    yield await _check_clock(platform)
    yield await _check_log(platform)
    yield await check_files(platform)


async def examine_storage(platform: Platform) -> AsyncIterator[Finding]:
    """Check whether uploaded files can be reached; the database needs no tables."""
    if isinstance(platform.blobs, HeldBlobs):
        try:
            await platform.blobs.stored()
        except BlobsAway as error:
            yield _away(error)


async def check_database_file(platform: Platform) -> Finding:
    """Look for damage in SQLite's file."""
    damage = await platform.database.find_damage()
    if damage is None:
        return Finding("damage", "ok", "no damage was found")
    return Finding("damage", "failed", f"the database is damaged: {damage}", DAMAGED_REMEDY)


async def _check_clock(platform: Platform) -> Finding:
    moment = await platform.database.read(_newest_moment if platform.database.is_sqlite else shared_now)
    behind = moment - utc_now()
    if abs(behind) <= _SKEW:
        return Finding("clock", "ok", "agrees with the database")
    seconds = abs(int(behind.total_seconds()))
    what = "the newest entry in the database" if platform.database.is_sqlite else "the database server's"
    text = f"this machine's clock is {seconds} s {'behind' if behind > _SKEW else 'ahead of'} {what}"
    return Finding("clock", "warning", text, "Synchronize the clocks (NTP) of all machines.")


def _newest_moment(session: Session) -> datetime:
    """The latest stored time, or now."""
    last_beat = session.scalar(select(func.max(WorkerRecord.seen_at)))
    last_job = session.scalar(select(JobRecord.created_at).order_by(JobRecord.created_at.desc()).limit(1))
    return max(moment for moment in (last_beat, last_job, utc_now()) if moment is not None)


async def _check_log(platform: Platform) -> Finding:
    """Check that the write-ahead log is released: by SQLite's checkpoints, by PostgreSQL's replicas."""
    if platform.database.is_sqlite:
        log = Path(f"{make_url(platform.database.url).database}-wal")
        size = max(await asyncio.to_thread(_size, log), 0)
        remedy = "A program (such as sqlite3) holds a transaction open: stop it, then restart the platform."
    else:
        size = await platform.database.read(_retained)
        remedy = "Drop unused replication slots: SELECT pg_drop_replication_slot(slot_name)."
    if size > _LARGE_LOG:
        return Finding("write log", "warning", f"the write-ahead log has grown to {size >> 20} MB", remedy)
    return Finding("write log", "ok", f"{size >> 20} MB")


def _retained(session: Session) -> int:
    slots = text(
        "SELECT coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)), 0)"
        " FROM pg_replication_slots WHERE NOT active"
    )
    return int(session.scalar(slots) or 0)


async def check_files(platform: Platform) -> Finding:
    """Check that the stored files are exactly those that rows refer to."""
    blobs = platform.blobs
    if not isinstance(blobs, HeldBlobs):
        return Finding("files", "ok", "not in PLATFORM_HOME")
    references = await platform.database.read(held_blobs)
    try:
        stored = await blobs.stored()
    except BlobsAway as error:
        return _away(error)
    still = await platform.database.read(held_blobs)
    lost = [one for one, size in references.items() if one in still and _stored_size(stored, one) != size]
    if lost:
        listed = ", ".join(f"{one[:12]}…" for one in lost[:3])
        return Finding(
            "files",
            "failed",
            f"{len(lost)} of {len(references)} uploaded files are missing: {listed}",
            "Restore a backup that has them: platformctl backup list",
        )
    old = _old(stored, stored.keys() - references.keys() - still.keys())
    if old:
        problem = f"{old} files that nothing refers to"
        return Finding("files", "warning", problem, "The next start of the platform removes them.")
    where = "" if isinstance(blobs, FileBlobs) else f" in {platform.settings.blob_store}"
    return Finding("files", "ok", f"{len(references)} uploaded files{where}, none missing")


def _away(error: BlobsAway) -> Finding:
    remedy = "Until it is back, uploads are refused, and jobs that need uploaded files wait."
    return Finding("files", "failed", error.reason, remedy)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _stored_size(stored: Mapping[str, StoredBlob], sha256: str) -> int:
    return stored[sha256].size if sha256 in stored else -1


def _old(stored: Mapping[str, StoredBlob], orphans: Iterable[str]) -> int:
    """How many are older than any upload still in progress could be."""
    limit = time.time() - _JUST_NOW
    return sum(stored[one].modified_at < limit for one in orphans)
