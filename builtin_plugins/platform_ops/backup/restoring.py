"""Restores an archive: everything is fetched and checked, then one transaction replaces all rows.

A kill before its commit leaves the old state, and after it the new one. No process is in service meanwhile
(`guards`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.orm import Session

from builtin_plugins.platform_ops.backup import holdings
from builtin_plugins.platform_ops.backup.archives import Archives, Tell, tell_nobody
from builtin_plugins.platform_ops.backup.creating import Owners
from builtin_plugins.platform_ops.backup.errors import ArchiveBroken, BackupFailed
from builtin_plugins.platform_ops.backup.manifest import ArchivedFile, ArchiveManifest, Content
from builtin_plugins.platform_ops.backup.objects import Objects
from builtin_plugins.platform_ops.backup.rows import JOURNAL, compare_rows, continue_after, highest, put_rows
from kernel.sdk import Account, Database, SecretStore, Unit
from kernel.sdk.jobs import place_jobs_again
from kernel.sdk.storage import BlobStore

_RING = "owner-secrets"
_BLOBS_AT_ONCE = 50


async def check(archives: Archives, name: str, owners: Owners, tell: Tell = tell_nobody) -> ArchiveManifest:
    """Read every byte, and check that this program can restore it. Changes nothing. Raises BackupFailed."""
    try:
        manifest = await asyncio.to_thread(archives.verify, name, tell)
    except FileNotFoundError:
        raise BackupFailed(f"there is no backup called {name}") from None
    problems = holdings.missing_revisions(owners(), manifest.revisions)
    if problems:
        raise BackupFailed(
            f"{name}, made by version {manifest.made_by}, can't be restored here: {'; '.join(problems)}"
        )
    if manifest.sealed is not None and archives.sealer is not None:
        await asyncio.to_thread(archives.sealer.open, manifest.sealed, manifest.about())
    return manifest


HOLDER = "restore:"
"""The prefix, before a job's id, of the name that holds an archive's files until its rows are in place."""


def holder_of(job_id: str) -> str:
    """The name under which this job holds the files of its archive."""
    return f"{HOLDER}{job_id}"


async def bring_blobs(
    manifest: ArchiveManifest, objects: Objects, database: Database, blobs: BlobStore, holder: str, tell: Tell
) -> None:
    """Bring every file of the archive to the blob store, and hold it."""
    for content in manifest.blobs:
        staged = await blobs.stage(_stream(objects, content), max(content.size, 1))
        if staged.sha256 != content.sha256:
            staged.discard()
            raise ArchiveBroken(f"the content {content.sha256[:12]}… is not what was archived")
        await database.write(blobs.keep, staged, holder)
        tell("files", 1)


async def release_blobs(contents: Sequence[str], database: Database, blobs: BlobStore, holder: str) -> None:
    """Release files, by their hashes, of a restore that did not happen."""

    def release(unit: Unit, part: Sequence[str]) -> None:
        for sha256 in part:
            blobs.release(unit, sha256, holder)

    for start in range(0, len(contents), _BLOBS_AT_ONCE):
        await database.write(release, contents[start : start + _BLOBS_AT_ONCE])


async def _stream(objects: Objects, content: Content) -> AsyncIterator[bytes]:
    for digest in content.pieces:
        yield await asyncio.to_thread(objects.read, digest)


async def replace_rows(
    manifest: ArchiveManifest,
    objects: Objects,
    database: Database,
    owners: Owners,
    done: dict[str, Any],
    tell: Tell = tell_nobody,
) -> None:
    """Replace everything in the database by the archive's rows, in one transaction. Raises BackupFailed.

    The journal stays; the job `done["id"]` gets the other values of `done`. Every session ends, as some
    archived sessions were ended since the backup, and current ones may be of accounts that are gone.
    """
    declared = owners()

    def replace(connection: Connection) -> None:
        journal, numbers = _journal(connection), _numbers(connection, manifest)
        epoch = _highest_epoch(connection)
        holdings.build(connection, declared, manifest.revisions)
        _fill(connection, manifest, objects, tell)
        holdings.finish(connection, declared)
        _continue_after(connection, numbers)
        _end_sessions(connection, epoch)
        _write_journal(connection, journal, done)
        with Session(connection, join_transaction_mode="rollback_only") as session:
            place_jobs_again(session)

    async with database.schema_change() as connection:
        await connection.run_sync(replace)


def _numbers(connection: Connection, manifest: ArchiveManifest) -> dict[str, int]:
    """The last number that each table has given to a row, here or in the archive."""
    archived = {table.name: table.highest or 0 for owner in manifest.owners for table in owner.tables}
    names = set(archived) & set(sa.inspect(connection).get_table_names())
    tables = holdings.reflected(connection, names).tables
    return archived | {
        name: max(highest(connection, table) or 0, archived[name]) for name, table in tables.items()
    }


def _continue_after(connection: Connection, numbers: Mapping[str, int]) -> None:
    """Give no number, such as an account's id, twice: migrations that rebuilt a table have lost its last."""
    names = {name for name, number in numbers.items() if number}
    tables = holdings.reflected(connection, names & set(sa.inspect(connection).get_table_names())).tables
    for name, table in tables.items():
        continue_after(connection, table, numbers[name])


def _highest_epoch(connection: Connection) -> int:
    if not sa.inspect(connection).has_table(Account.__tablename__):
        return 0
    return connection.execute(sa.select(sa.func.max(Account.epoch))).scalar() or 0


def _end_sessions(connection: Connection, epoch: int) -> None:
    past = sa.case((Account.epoch > epoch, Account.epoch), else_=epoch)
    connection.execute(sa.update(Account).values(epoch=past + 1))


def _fill(connection: Connection, manifest: ArchiveManifest, objects: Objects, tell: Tell) -> None:
    archived = [table for owner in manifest.owners for table in owner.tables]
    present = holdings.reflected(connection, [table.name for table in archived])
    constraints = _defer_references(connection, [table.name for table in archived])
    for table in archived:
        # Migrations write their own rows, too.
        connection.execute(sa.delete(present.tables[table.name]))
    for table in archived:
        put_rows(connection, table, present.tables[table.name], objects, tell)
    _check_references(connection, constraints)
    # The end of the savepoint closes PostgreSQL's cursors on these tables; until then, no migration can alter
    # them.
    with connection.begin_nested() as reading:
        problems = [compare_rows(connection, table, present.tables[table.name]) for table in archived]
        reading.rollback()
    for problem in filter(None, problems):
        raise BackupFailed(f"the restored rows are not those of the backup: {problem}")


def _defer_references(connection: Connection, tables: Sequence[str]) -> list[tuple[str, str]]:
    """Allow rows in any order. SQLite doesn't check references during schema changes anyway."""
    if connection.dialect.name == "sqlite":
        return []
    inspector, quote = sa.inspect(connection), connection.dialect.identifier_preparer.quote
    constraints = []
    for table in tables:
        for key in inspector.get_foreign_keys(table):
            constraints.append((quote(table), quote(str(key["name"]))))
    for table, name in constraints:
        change = f"ALTER TABLE {table} ALTER CONSTRAINT {name} DEFERRABLE INITIALLY DEFERRED"
        connection.execute(sa.text(change))
    return constraints


def _check_references(connection: Connection, constraints: Sequence[tuple[str, str]]) -> None:
    if not constraints:
        return
    connection.execute(sa.text("SET CONSTRAINTS ALL IMMEDIATE"))
    for table, name in constraints:
        connection.execute(sa.text(f"ALTER TABLE {table} ALTER CONSTRAINT {name} NOT DEFERRABLE"))


def _journal(connection: Connection) -> list[dict[str, Any]]:
    if not sa.inspect(connection).has_table(JOURNAL):
        return []
    table = holdings.reflected(connection, [JOURNAL]).tables[JOURNAL]
    return [dict(row) for row in connection.execute(sa.select(table)).mappings()]


def _write_journal(connection: Connection, rows: list[dict[str, Any]], done: dict[str, Any]) -> None:
    table = holdings.reflected(connection, [JOURNAL]).tables[JOURNAL]
    for row in rows:
        columns = {name: value for name, value in row.items() if name in table.columns}
        connection.execute(sa.insert(table), {**columns, **(done if row["id"] == done["id"] else {})})


def apply_files(
    manifest: ArchiveManifest, archives: Archives, home: Path, secrets: SecretStore, folders: dict[str, Path]
) -> list[str]:
    """Put secrets and the files of plugins into place; returns what was done. Idempotent.

    `config.yaml` also describes the machine, so it is restored as `config.restored.yaml`.
    """
    messages = []
    if manifest.sealed is not None and archives.sealer is not None:
        content = archives.sealer.open(manifest.sealed, manifest.about())
        messages += _apply_secrets(content["secrets"], secrets)
        if content["config"] is not None:
            target = home / "config.restored.yaml"
            _write_private(target, content["config"].encode())
            messages.append(f"the backup's config.yaml is at {target}; take from it what you need")
    elif manifest.sealed is not None:
        messages.append(
            "the backup's secrets and config.yaml were left out: to restore them, too, set "
            "PLATFORM_BACKUP_PASSPHRASE or PLATFORM_BACKUP_KEY_FILE as when it was made, and restore it again"
        )
    for name, folder in folders.items():
        files = [file for file in manifest.files if file.folder == name]
        messages += _apply_folder(files, archives.objects, folder)
    return messages


def _apply_secrets(values: dict[str, str], secrets: SecretStore) -> list[str]:
    """The archive's secrets replace those of the same name; all keys that rows may be sealed with stay."""
    changed = []
    for name, value in sorted(values.items()):
        here = secrets.get(name)
        if name == _RING and here is not None:
            lines = dict.fromkeys([*value.split("\n"), *here.split("\n")])
            value = "\n".join(filter(None, lines))
        if here != value:
            secrets.set(name, value)
            changed.append(name)
    return [f"secrets restored: {', '.join(changed)}"] if changed else []


def _apply_folder(files: Sequence[ArchivedFile], objects: Objects, folder: Path) -> list[str]:
    changed = 0
    for file in files:
        target = folder / file.path
        if target.is_symlink() or not target.resolve().is_relative_to(folder.resolve()):
            raise ArchiveBroken(f"the path {file.path} leads outside of {folder}")
        content = b"".join(objects.read_all(file.pieces))
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            _write_private(target, content)
            changed += 1
    return [f"{changed} files restored in {folder}"] if changed else []


def _write_private(target: Path, content: bytes) -> None:
    temporary = target.with_name(f".{target.name}.restoring")
    temporary.unlink(missing_ok=True)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(target)
