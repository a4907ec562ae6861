"""Routes of backups (spec 4.8, wire-facts 9.4)."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel, ConfigDict, Field

from builtin_plugins.platform_ops.backup import journal
from builtin_plugins.platform_ops.backup.archives import Archive
from builtin_plugins.platform_ops.backup.drilling import DRILL, Drill
from builtin_plugins.platform_ops.backup.errors import (
    ArchiveNotFound,
    BackupFailed,
    BackupJobNotFound,
    DrillUnderWay,
    NotConfirmed,
)
from builtin_plugins.platform_ops.backup.jobs import BACK_UP, RESTORE, BackUp, Restore
from builtin_plugins.platform_ops.backup.journal import BackupJobOut, BackupJobs
from builtin_plugins.platform_ops.backup.listing import LISTING
from builtin_plugins.platform_ops.backup.service import archives_of
from builtin_plugins.platform_ops.models import BackupJob
from kernel.sdk import ADMIN, Body, Caller, Context, Platform, RouteTable, Unavailable, Unit, audit

routes = RouteTable("Backups")


class ArchiveOut(BaseModel):
    """A backup. `size_bytes` counts what it shares with other backups, too."""

    name: str
    size_bytes: int
    modified_at: str


class ArchiveList(BaseModel):
    """All backups, newest name first."""

    archives: list[ArchiveOut]


class RestoreRequest(Body):
    """The confirmation of a restore."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"confirm_filename": "platform-20260131-030000.tar.gz"}]}
    )

    confirm_filename: str = Field(max_length=255, description="The name of the backup, again.")


class StorageUnavailable(Unavailable):
    code = "backup_storage_unavailable"
    default_detail = "The backup storage can't be reached"


@routes.get("/v1/backups", access=ADMIN, returns=ArchiveList, errors=(StorageUnavailable,))
async def index(ctx: Context) -> ArchiveList:
    """List the backups."""
    archives = await _archives(ctx.platform)
    return ArchiveList(
        archives=[
            ArchiveOut(
                name=archive.name,
                size_bytes=archive.size,
                modified_at=archive.modified_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            )
            for archive in archives
        ]
    )


@routes.post("/v1/backups", access=ADMIN, returns=BackupJobOut, status=202)
async def start(ctx: Context) -> BackupJobOut:
    """Make a backup in the background."""
    return await ctx.write(_start, ctx.caller)


@routes.get("/v1/backups/jobs", access=ADMIN, returns=BackupJobs)
async def jobs(ctx: Context) -> BackupJobs:
    """List the last 50 backups, restores and drills."""
    return await ctx.platform.database.read(journal.latest_jobs)


@routes.get("/v1/backups/jobs/{job_id}", access=ADMIN, returns=BackupJobOut, errors=(BackupJobNotFound,))
async def job(ctx: Context, job_id: str) -> BackupJobOut:
    """Show a backup, a restore or a drill."""
    return await ctx.platform.database.read(journal.find, job_id)


@routes.post(
    "/v1/backups/{name}/restore",
    access=ADMIN,
    body=RestoreRequest,
    returns=BackupJobOut,
    status=202,
    errors=(ArchiveNotFound, NotConfirmed, StorageUnavailable),
    token_scopes=(),
)
async def restore(ctx: Context, name: str, body: RestoreRequest) -> BackupJobOut:
    """Replace everything with a backup.

    It is checked first. Then the platform restarts and stays out of service until the restore is done.
    The current state is backed up first. All sessions end: sign in again to read the job.
    """
    await _require(ctx.platform, name)
    if body.confirm_filename != name:
        raise NotConfirmed()
    return await ctx.write(_restore, ctx.caller, name)


@routes.post(
    "/v1/backups/{name}/drill",
    access=ADMIN,
    returns=BackupJobOut,
    status=202,
    errors=(ArchiveNotFound, DrillUnderWay, StorageUnavailable),
)
async def drill(ctx: Context, name: str) -> BackupJobOut:
    """Rehearse a restore, in the background.

    The backup is restored into a temporary instance, and rows, files and answers to recorded questions are
    compared; the running platform is not changed. The job fails if anything differs.
    """
    await _require(ctx.platform, name)
    return await ctx.write(_drill, ctx.caller, name)


async def _require(platform: Platform, name: str) -> None:
    if name not in {one.name for one in await _archives(platform)}:
        raise ArchiveNotFound()


async def _archives(platform: Platform) -> list[Archive]:
    try:
        archives = await asyncio.to_thread(archives_of, platform)
        return await asyncio.to_thread(platform.resource(LISTING).of, archives)
    except (BackupFailed, OSError) as error:
        raise StorageUnavailable(f"The backup storage can't be reached: {error}") from error


def _start(unit: Unit, caller: Caller) -> BackupJobOut:
    job_id = journal.ask_for(unit, "backup", str(caller.principal.id))
    unit.enqueue(BACK_UP, BackUp(job_id=job_id), owner_id=caller.principal.id)
    return _rendered(unit, job_id)


def _restore(unit: Unit, caller: Caller, name: str) -> BackupJobOut:
    job_id = journal.ask_for(unit, "restore", str(caller.principal.id), name)
    payload = Restore(job_id=job_id, archive=name, origin=caller.origin)
    unit.enqueue(RESTORE, payload, owner_id=caller.principal.id)
    audit(unit, "backup.restore_requested", "backup", name, origin=caller.origin)
    return _rendered(unit, job_id)


def _drill(unit: Unit, caller: Caller, name: str) -> BackupJobOut:
    unit.lock("platform_ops.drill")
    if journal.is_under_way(unit.session, "drill", name):
        raise DrillUnderWay()
    job_id = journal.ask_for(unit, "drill", str(caller.principal.id), name)
    unit.enqueue(DRILL, Drill(job_id=job_id, archive=name), owner_id=caller.principal.id)
    audit(unit, "backup.drill_requested", "backup", name, origin=caller.origin)
    return _rendered(unit, job_id)


def _rendered(unit: Unit, job_id: str) -> BackupJobOut:
    row = unit.session.get(BackupJob, job_id)
    assert row is not None
    return journal.render(row)
