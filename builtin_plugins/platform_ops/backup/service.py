"""Backup and restore from within a platform: what routes, jobs and commands share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from builtin_plugins.platform_ops import api
from builtin_plugins.platform_ops.backup import journal
from builtin_plugins.platform_ops.backup.archives import Archives, Tell, tell_nobody
from builtin_plugins.platform_ops.backup.creating import BackupSource, create
from builtin_plugins.platform_ops.backup.errors import BackupFailed
from builtin_plugins.platform_ops.backup.manifest import ArchivedAnswer, ArchiveManifest
from builtin_plugins.platform_ops.backup.restoring import bring_blobs, check, holder_of, release_blobs
from builtin_plugins.platform_ops.mounts import VERSION
from builtin_plugins.platform_ops.settings import OpsSettings
from kernel.sdk import Platform, Unit, audit
from kernel.sdk.operations import request_restart
from kernel.sdk.storage import SCHEMA, held_blobs_of

_MAX_DIGESTS = 5

log = logging.getLogger("platform_ops.backup")


def archives_of(platform: Platform, to: str | None = None) -> Archives:
    """The archives of a platform, or those at another address. Raises BackupFailed."""
    return Archives(platform.settings_of(OpsSettings), platform.settings.home, to)


def storage_problem(platform: Platform) -> str | None:
    """Why no backup can be made with these settings, as far as known without making one."""
    try:
        archives_of(platform).place.check()
    except (BackupFailed, OSError, RuntimeError) as error:  # the last is of a `~` that is nobody's home
        return str(error)
    return None


async def warn_of_storage(platform: Platform) -> None:
    """Called when a process that makes scheduled backups starts: a mistake shows now, not at night."""
    if platform.role == "worker" and (problem := await asyncio.to_thread(storage_problem, platform)):
        log.warning("no backup can be made: %s", problem)


async def folders_of(platform: Platform) -> dict[str, Path]:
    """The folders that plugins want backed up, by name."""
    paths_by_name: dict[str, Path] = {}
    for folders in await platform.hooks.ask(api.find_backup_folders, platform=platform):
        paths_by_name.update(folders)
    return paths_by_name


async def answers_of(platform: Platform) -> list[ArchivedAnswer]:
    """Questions whose answers must be the same after a restore.

    Empty if plugins have not been opened.
    """
    if platform.role == "tool":
        return []
    answers_by_question: dict[str, str] = {}
    for answers in await platform.hooks.ask(api.find_sample_answers, platform=platform):
        answers_by_question.update(answers)
    return [
        ArchivedAnswer(question=question, answer=answer)
        for question, answer in sorted(answers_by_question.items())
    ]


async def source_of(platform: Platform) -> BackupSource:
    """The platform as a source of backups."""
    return BackupSource(
        version=VERSION,
        home=platform.settings.home,
        database=platform.database,
        owners=platform.resource(SCHEMA).owners,
        secrets=platform.secrets,
        blobs=platform.blobs,
        folders=await folders_of(platform),
        answers=partial(answers_of, platform),
    )


async def back_up(
    platform: Platform, reason: str, tell: Tell = tell_nobody, to: str | None = None
) -> tuple[str, ArchiveManifest]:
    """Make an archive; returns its name and contents. Raises BackupFailed."""
    archives = await asyncio.to_thread(archives_of, platform, to)
    name = await create(await source_of(platform), archives, reason, tell)
    return name, await asyncio.to_thread(archives.manifest, name)


def described(name: str, manifest: ArchiveManifest) -> str:
    """An archive's contents, in a few lines."""
    rows = sum(table.rows for owner in manifest.owners for table in owner.tables)
    lines = [
        f"{name}: {rows} rows of {len(manifest.owners)} owners, {len(manifest.blobs)} uploaded files,"
        f" {len(manifest.files)} other files"
    ]
    if manifest.without:
        lines.append(f"without: {', '.join(manifest.without)}")
    if manifest.missing:
        lines.append(incomplete(manifest))
    return "\n".join(lines)


def incomplete(manifest: ArchiveManifest) -> str:
    """What an archive lacks of what it should contain."""
    names = ", ".join(digest[:12] for digest in manifest.missing[:_MAX_DIGESTS])
    more = len(manifest.missing) - _MAX_DIGESTS
    return (
        f"{len(manifest.missing)} uploaded files are NOT in it, as their stored content is missing or "
        f"damaged ({names}{f' and {more} more' if more > 0 else ''}); see: platformctl doctor"
    )


async def prepare_restore(
    platform: Platform, job_id: str, name: str, tell: Tell = tell_nobody
) -> ArchiveManifest:
    """Check an archive and fetch its files, without changing the running platform. Raises BackupFailed."""
    archives = await asyncio.to_thread(archives_of, platform)
    manifest = await check(archives, name, platform.resource(SCHEMA).owners, tell)
    await bring_blobs(manifest, archives.objects, platform.database, platform.blobs, holder_of(job_id), tell)
    return manifest


def order_restore(
    unit: Unit, job_id: str, name: str, folders: Mapping[str, Path], origin: dict[str, object] | None = None
) -> None:
    """Make every process in service restart; the first that is alone replaces the rows."""
    journal.change(unit, job_id, phase="ordered", folders={key: str(path) for key, path in folders.items()})
    audit(unit, "backup.restore_ordered", "backup", name, origin=origin)
    request_restart(unit)


async def give_up_restore(platform: Platform, job_id: str) -> None:
    """Release the files that were fetched for a restore that does not happen."""
    holder = holder_of(job_id)
    blobs_by_holder = await platform.database.read(held_blobs_of, holder)
    await release_blobs(blobs_by_holder.get(holder, []), platform.database, platform.blobs, holder)
