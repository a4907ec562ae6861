"""A restore by the operator on the server, whether or not the platform is running."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from sqlalchemy.orm import Session

from builtin_plugins.platform_ops.backup import journal
from builtin_plugins.platform_ops.backup.errors import BackupFailed
from builtin_plugins.platform_ops.backup.guards import act
from builtin_plugins.platform_ops.backup.service import (
    folders_of,
    give_up_restore,
    order_restore,
    prepare_restore,
)
from builtin_plugins.platform_ops.models import BackupJob
from kernel.sdk import Platform, StoreNeeds, Unit
from kernel.sdk.operations import PLUGIN_SETTINGS, Opening
from kernel.sdk.storage import SCHEMA, installation_lock

_TURN = 0.5  # seconds between checks whether another process has done it


async def restore(platform: Platform, name: str) -> str:
    """Restore an archive; returns what was done. Raises BackupFailed, leaving everything unchanged."""
    async with installation_lock(platform.database, "restoring"):
        return await _restore(platform, name)


async def _restore(platform: Platform, name: str) -> str:
    database = platform.database

    def begin(unit: Unit) -> str:
        job_id = journal.ask_for(unit, "restore", "operator", name)
        journal.start(unit, job_id)
        return job_id

    job_id = await database.write(begin)
    try:
        await prepare_restore(platform, job_id, name)
    except BackupFailed as error:
        await database.write(journal.end, job_id, error=str(error))
        await give_up_restore(platform, job_id)
        raise
    await database.write(order_restore, job_id, name, await folders_of(platform))
    ended = await _carried_out(platform, job_id)
    if ended.error is not None:
        await give_up_restore(platform, job_id)
        raise BackupFailed(ended.error)
    return str(ended.output)


async def _carried_out(platform: Platform, job_id: str) -> Any:
    """Wait until no process is in service, then restore, unless a restarting one does it first."""
    while True:
        with suppress(TimeoutError):
            async with installation_lock(platform.database, "serving", seconds=_TURN):
                await act(_opening(platform))
        job = await platform.database.read(_job, job_id)
        if job is not None and job.status in ("done", "error"):
            return job


def _job(session: Session, job_id: str) -> BackupJob | None:
    return session.get(BackupJob, job_id)


def _opening(platform: Platform) -> Opening:
    needs = StoreNeeds(
        platform.settings,
        platform.database,
        platform.secrets,
        platform.disk,
        platform.resource(PLUGIN_SETTINGS),
    )
    return Opening(needs, platform.resource(SCHEMA).owners, platform.blobs)
