"""The jobs that make and restore archives; each is shown under `/v1/jobs` and in the journal."""

from __future__ import annotations

import logging

from pydantic import BaseModel, Field

from builtin_plugins.platform_ops.backup import journal
from builtin_plugins.platform_ops.backup.errors import BackupFailed, StorageAway
from builtin_plugins.platform_ops.backup.service import (
    back_up,
    described,
    folders_of,
    give_up_restore,
    incomplete,
    order_restore,
    prepare_restore,
)
from builtin_plugins.platform_ops.models import BackupJob
from builtin_plugins.platform_ops.settings import OpsSettings
from kernel.sdk import JobFailed, LongJob, Platform, Progress, Unavailable, Unit, audit

log = logging.getLogger("platform_ops.backup")


class BackUp(BaseModel):
    """The id of the journal's entry; a scheduled backup has no entry yet and makes one with this id."""

    job_id: str = Field(default_factory=journal.new_id)


class Restore(BaseModel):
    """The journal's entry and the archive."""

    job_id: str
    archive: str
    origin: dict[str, object] | None = None


async def run_backup(platform: Platform, payload: BackUp, progress: Progress) -> str | None:
    """Make an archive. If interrupted, it starts again; stored pieces are not stored twice."""
    job_id = payload.job_id
    if not await platform.database.write(_start, job_id):
        return None
    progress.report(0, unit="rows and files", message="Backing up")
    try:
        name, manifest = await back_up(platform, "asked for", _teller(progress))
    except StorageAway as error:
        raise Unavailable(str(error)) from error
    except BackupFailed as error:
        raise JobFailed(str(error)) from error

    lack = f"{name} was made, but {incomplete(manifest)}" if manifest.missing else None

    def end(unit: Unit) -> None:
        journal.end(unit, job_id, error=lack, archive=name, output=described(name, manifest))
        audit(unit, "backup.created", "backup", name)

    await platform.database.write(end)
    if lack is not None:
        raise JobFailed(lack)
    return f"/v1/backups/jobs/{job_id}"


def _start(unit: Unit, job_id: str) -> bool:
    if unit.session.get(BackupJob, job_id) is None:
        journal.ask_for(unit, "backup", "schedule", job_id=job_id)
    return journal.start(unit, job_id) is not None


async def run_restore(platform: Platform, payload: Restore, progress: Progress) -> str | None:
    """Check an archive and fetch its files, then restart the platform, which replaces the rows."""
    if await platform.database.write(journal.start, payload.job_id) is None:
        return None
    progress.report(0, unit="rows and files", message="Checking")
    try:
        await prepare_restore(platform, payload.job_id, payload.archive, _teller(progress))
    except StorageAway as error:
        raise Unavailable(str(error)) from error
    except BackupFailed as error:
        raise JobFailed(str(error)) from error
    folders = await folders_of(platform)
    await platform.database.write(order_restore, payload.job_id, payload.archive, folders, payload.origin)
    return f"/v1/backups/jobs/{payload.job_id}"


async def _backup_failed(platform: Platform, payload: BackUp, reason: str) -> None:
    await platform.database.write(journal.end, payload.job_id, error=reason)


async def _restore_failed(platform: Platform, payload: Restore, reason: str) -> None:
    await platform.database.write(journal.end, payload.job_id, error=reason)
    await give_up_restore(platform, payload.job_id)


async def _backup_cancelled(platform: Platform, payload: BackUp) -> None:
    await _backup_failed(platform, payload, "cancelled")


async def _restore_cancelled(platform: Platform, payload: Restore) -> None:
    await _restore_failed(platform, payload, "cancelled")


def _teller(progress: Progress):  # type: ignore[no-untyped-def]
    def tell(what: str, by: int) -> None:
        progress.advance(by)
        progress.report(message=f"Working on {what}")

    return tell


def _schedule(platform: Platform) -> str | None:
    return platform.settings_of(OpsSettings).backup_schedule or None


BACK_UP = LongJob(
    "platform_ops.back_up",
    BackUp,
    run_backup,
    title="Back up",
    lane="large",
    retries=10,  # about five minutes, if the storage is unreachable
    schedule=_schedule,
    on_give_up=_backup_failed,
    on_cancel=_backup_cancelled,
)
RESTORE = LongJob(
    "platform_ops.restore",
    Restore,
    run_restore,
    title="Restore a backup",
    lane="large",
    on_give_up=_restore_failed,
    on_cancel=_restore_cancelled,
)
