"""What `platformctl doctor`, `status` and `upgrade --check` say about backups."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.platform_ops.backup.errors import BackupFailed
from builtin_plugins.platform_ops.backup.service import archives_of, storage_problem
from builtin_plugins.platform_ops.backup.storage import StoredFile
from builtin_plugins.platform_ops.settings import OpsSettings
from kernel.sdk import Account, Diagnostic, Finding, Platform, utc_now

_OLD = timedelta(days=7)


async def check_storage(platform: Platform) -> AsyncIterator[Finding]:
    """Tell why no backup can be made; the tables are not needed."""
    entries = await asyncio.to_thread(_entries, platform)
    if isinstance(entries, Finding):
        yield entries


async def check_backups(platform: Platform) -> AsyncIterator[Finding]:
    """Check that there is a recent backup, once somebody has an account."""
    used = await platform.database.read(_has_accounts)
    entries = await asyncio.to_thread(_entries, platform)
    remedy = "Set PLATFORM_BACKUP_SCHEDULE=@daily, or run 'platformctl backup create'."
    if isinstance(entries, Finding):
        yield entries
    elif not used:
        yield Finding("backups", "ok", "nobody has an account yet")
    elif not entries:
        yield Finding("backups", "warning", "none has been made", remedy)
    else:
        newest = await asyncio.to_thread(archives_of(platform).newest_sound)
        if newest is None or newest.name != entries[0].name:
            text = f"{entries[0].name} is damaged or incomplete"
            again = "Make another: 'platformctl backup create'; 'platformctl backup verify NAME' reads one."
            yield Finding("backups", "failed" if newest is None else "warning", text, again)
        elif (age := utc_now() - newest.modified_at) > _OLD:
            yield Finding("backups", "warning", f"the newest is {age.days} days old", remedy)
        else:
            yield Finding("backups", "ok", f"{len(entries)}, the newest is {newest.name}")


def _entries(platform: Platform) -> Sequence[StoredFile] | Finding:
    """The backups, newest first, or why none can be made or found. Blocks."""
    correct = "Correct PLATFORM_BACKUP_TO or PLATFORM_BACKUP_KEY_FILE."
    if problem := storage_problem(platform):
        return Finding("backups", "failed", f"no backup can be made: {problem}", correct)
    try:
        return list(archives_of(platform).entries())
    except (BackupFailed, OSError) as error:
        return Finding("backups", "failed", f"the backup storage can't be read: {error}", correct)


def _has_accounts(session: Session) -> bool:
    return session.scalar(select(Account.id).limit(1)) is not None


async def find_newest(platform: Platform) -> AsyncIterator[Finding]:
    """The newest backup, for `status`."""
    try:
        entries = await asyncio.to_thread(lambda: list(archives_of(platform).entries()))
        newest = await asyncio.to_thread(lambda: archives_of(platform).newest_sound())
    except (BackupFailed, OSError) as error:
        yield Finding("newest backup", "failed", f"the backup storage can't be read: {error}")
        return
    if not entries:
        text = "none; make one: platformctl backup create"
        yield Finding("newest backup", "ok", text, facts={"backup": None})
        return
    if newest is None:
        text = "all are damaged or incomplete; make one: platformctl backup create"
        yield Finding("newest backup", "failed", text, facts={"backup": None})
        return
    facts = {"name": newest.name, "made_at": newest.modified_at, "count": len(entries)}
    yield Finding("newest backup", "ok", newest.name, at=newest.modified_at, facts={"backup": facts})


async def explain_upgrade(platform: Platform) -> AsyncIterator[Finding]:
    """Whether a backup is made before migrations are applied."""
    if platform.settings_of(OpsSettings).backup_before_upgrade:
        yield Finding("backup", "ok", "A backup is made before they are applied.")
    else:
        text = "No backup is made first: PLATFORM_BACKUP_BEFORE_UPGRADE is false."
        yield Finding("backup", "warning", text)


DIAGNOSTICS = (
    Diagnostic("stores", check_storage),
    Diagnostic("rows", check_backups),
    Diagnostic("status", find_newest),
    Diagnostic("upgrade", explain_upgrade),
)
