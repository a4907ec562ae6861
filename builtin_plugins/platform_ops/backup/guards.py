"""At the start of a process: carry out an ordered restore, and back up before migrations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from builtin_plugins.platform_ops.backup import journal
from builtin_plugins.platform_ops.backup.archives import Archives
from builtin_plugins.platform_ops.backup.creating import BackupSource, create
from builtin_plugins.platform_ops.backup.errors import ArchiveBroken, BackupFailed
from builtin_plugins.platform_ops.backup.restoring import apply_files, replace_rows
from builtin_plugins.platform_ops.models import BackupJob
from builtin_plugins.platform_ops.mounts import VERSION
from builtin_plugins.platform_ops.settings import OpsSettings
from kernel.sdk import ANY_ERROR, Account, StartupError, is_machine_fault
from kernel.sdk.operations import Opening, StartGuard
from kernel.sdk.storage import BlobsAway, Pending

log = logging.getLogger("platform_ops.backup")
WAITING = ("ordered", "files")
_BACK = (
    "everybody has to sign in again; what was deleted or revoked since the backup is back: look through"
    " accounts (platformctl users list), access tokens (platformctl token list) and rights"
)


async def waits(opening: Opening) -> bool:
    """Whether a restore was ordered, or interrupted before all its files were in place."""
    return await opening.needs.database.read(_ordered) is not None


async def act(opening: Opening) -> None:
    """Carry out the ordered restore. A failure leaves everything unchanged and is recorded in the journal.

    Raises StartupError for faults of the machine: the restore stays ordered, and the next start tries again.
    """
    order = await opening.needs.database.read(_ordered)
    if order is None:
        return
    job_id, name, phase, folders = order
    archives = _archives(opening)
    try:
        if phase == "ordered":
            await _replace(opening, archives, job_id, name)
        messages = await asyncio.to_thread(_files, opening, archives, name, folders)
    except BackupFailed as error:
        await _failed(opening, job_id, str(error))
    except (sa.exc.SQLAlchemyError, OSError):
        raise  # a fault of the machine: the next start tries again
    except ANY_ERROR as error:  # boundary: the platform must start with its current data
        if is_machine_fault(error):
            raise StartupError(
                f"the restore of {name} was interrupted: {_reason(error)}; the next start tries again"
            ) from error
        log.exception("the restore of %s failed", name)
        await _failed(opening, job_id, f"{type(error).__name__}: {error}")
    else:
        output = await opening.needs.database.read(_output, job_id)
        text = "\n".join([output, *messages, _BACK, f"restored {name}"])
        await opening.needs.database.write(journal.end, job_id, output=text)
        log.info("restored %s", name)


async def before_migrations(opening: Opening, pending: Sequence[Pending]) -> None:
    """Make an archive of a database that is about to change. Raises StartupError if that fails."""
    settings = opening.needs.settings_of(OpsSettings)
    if not settings.backup_before_upgrade:
        return
    owners = ", ".join(f"{item.owner} {item.revisions[-1]}" for item in pending)
    reason, archives = f"before the upgrade to {owners}", _archives(opening)
    try:
        tried = await asyncio.to_thread(_newest_for, archives, reason)
        name = await create(_source(opening), archives, reason, instead_of=tried)
    except sa.exc.SQLAlchemyError:
        raise
    except ANY_ERROR as error:  # boundary: the blob store may raise anything
        raise StartupError(
            f"no backup could be made before the upgrade, so nothing was changed: {_reason(error)}."
            " PLATFORM_BACKUP_BEFORE_UPGRADE=false upgrades without one"
        ) from error
    log.warning(
        "made the backup %s before an upgrade. To go back: stop the platform, install the earlier version,"
        " give it an empty database (move platform.db* out of PLATFORM_HOME, or name a new one in"
        " DATABASE_URL), and run 'platformctl backup restore %s'",
        name,
        name,
    )


def _newest_for(archives: Archives, reason: str) -> str | None:
    """The newest archive, if an earlier attempt at this same upgrade made it.

    Every start retries a failed migration; one more archive each time would push out all good ones.
    """
    entries = archives.entries()
    try:
        return entries[0].name if entries and archives.manifest(entries[0].name).reason == reason else None
    except (ArchiveBroken, FileNotFoundError):
        return None


def _reason(error: BaseException) -> str:
    return error.reason if isinstance(error, BlobsAway) else str(error) or type(error).__name__


GUARD = StartGuard(waits, act, before_migrations)


async def _replace(opening: Opening, archives: Archives, job_id: str, name: str) -> None:
    """Back up the current state, then replace it."""
    manifest = await asyncio.to_thread(_manifest, archives, name)
    needs = opening.needs
    output = "nobody had an account before it, so the earlier state was not backed up"
    if await needs.database.read(_in_use):
        before = await create(_source(opening), archives, f"before the restore of {name}", keep=[name])
        output = f"the state before it is kept; to go back: platformctl backup restore {before}"
    log.info("restoring %s; %s", name, output)
    done = {"id": job_id, "phase": "files", "output": output}
    await replace_rows(manifest, archives.objects, needs.database, opening.owners, done)


def _files(opening: Opening, archives: Archives, name: str, folders: dict[str, str]) -> list[str]:
    needs = opening.needs
    places = {key: Path(path) for key, path in folders.items()}
    return apply_files(_manifest(archives, name), archives, needs.settings.home, needs.secrets, places)


def _manifest(archives: Archives, name: str) -> Any:
    try:
        return archives.manifest(name)
    except FileNotFoundError:
        raise BackupFailed(f"there is no backup called {name}") from None


def _archives(opening: Opening) -> Archives:
    return Archives(opening.needs.settings_of(OpsSettings), opening.needs.settings.home)


def _source(opening: Opening) -> BackupSource:
    needs = opening.needs
    return BackupSource(
        VERSION, needs.settings.home, needs.database, opening.owners, needs.secrets, opening.blobs
    )


def _ordered(session: Session) -> tuple[str, str, str, dict[str, str]] | None:
    """(job id, archive, phase, folders) of the oldest waiting restore; also works with an older schema."""
    inspector = sa.inspect(session.connection())
    if not inspector.has_table(BackupJob.__tablename__):
        return None
    columns = (BackupJob.id, BackupJob.archive, BackupJob.phase, BackupJob.folders)
    query = sa.select(*columns).where(BackupJob.phase.in_(WAITING)).order_by(BackupJob.requested_at)
    row = session.execute(query.limit(1)).first()
    return None if row is None else (row.id, row.archive, row.phase, row.folders or {})


def _in_use(session: Session) -> bool:
    return session.scalar(sa.select(Account.id).limit(1)) is not None


def _output(session: Session, job_id: str) -> str:
    return session.scalar(sa.select(BackupJob.output).where(BackupJob.id == job_id)) or ""


async def _failed(opening: Opening, job_id: str, why: str) -> None:
    log.error("a restore failed, and nothing was changed: %s", why)
    await opening.needs.database.write(journal.end, job_id, error=why)
