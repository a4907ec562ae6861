"""Cleans up after restores that did not happen: releases their files, and closes those of killed commands.

Also removes temporary instances of drills whose worker was killed.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.platform_ops.backup import journal
from builtin_plugins.platform_ops.backup.drilling import instances, remove_instances
from builtin_plugins.platform_ops.backup.restoring import HOLDER, release_blobs
from builtin_plugins.platform_ops.models import BackupJob
from kernel.sdk import Job, NoPayload, Platform, Unit
from kernel.sdk.storage import held_blobs_of, installation_lock

_PATIENCE = 1.0  # seconds; preparing a restore holds the lock for longer than it is worth waiting


async def find_leftovers(platform: Platform) -> None:
    """At each start: close restores whose command was killed, and release unneeded files."""
    if await platform.database.read(_of_operators):
        with suppress(TimeoutError):
            async with installation_lock(platform.database, "restoring", seconds=_PATIENCE):
                await platform.database.write(_close)
    if await platform.database.read(_left):
        await platform.database.write(_ask)
    # Listed before their jobs: one that begins in between isn't a leftover.
    if leftovers := await asyncio.to_thread(instances, platform.settings.home):
        needed = await platform.database.read(_under_way)
        await asyncio.to_thread(remove_instances, [path for path in leftovers if path.name not in needed])


async def _release(platform: Platform, _payload: NoPayload) -> None:
    for holder, contents in (await platform.database.read(_left)).items():
        await release_blobs(contents, platform.database, platform.blobs, holder)


def _of_operators(session: Session) -> list[str]:
    """Restores by commands that are not ordered yet; if the process is gone, nobody continues them."""
    query = select(BackupJob.id).where(
        BackupJob.action == "restore",
        BackupJob.requested_by == "operator",
        BackupJob.status == "running",
        BackupJob.phase == "",
    )
    return list(session.scalars(query))


def _close(unit: Unit) -> None:
    for job_id in _of_operators(unit.session):
        journal.end(unit, job_id, error="the command was killed before anything was replaced")


def _under_way(session: Session) -> set[str]:
    return set(session.scalars(select(BackupJob.id).where(BackupJob.status.in_(("pending", "running")))))


def _left(session: Session) -> dict[str, list[str]]:
    """Held contents of ended restores, by holder."""
    needed = _under_way(session)
    held_by_holder = held_blobs_of(session, HOLDER)
    return {
        holder: own for holder, own in held_by_holder.items() if holder.removeprefix(HOLDER) not in needed
    }


def _ask(unit: Unit) -> None:
    unit.enqueue(RELEASE, NoPayload())


RELEASE = Job("platform_ops.release", NoPayload, _release, lane="quick")
