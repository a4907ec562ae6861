"""Makes an archive of a platform in service.

The order makes it consistent: first the uploads, then one snapshot of all rows, then uploads that arrived
meanwhile, so that everything that the rows refer to is there. If one arrived and was deleted in between, the
snapshot is taken again.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from builtin_plugins.platform_ops.backup.archives import Archives, Tell, tell_nobody
from builtin_plugins.platform_ops.backup.manifest import (
    ArchivedAnswer,
    ArchivedFile,
    ArchivedOwner,
    ArchiveManifest,
    Content,
)
from builtin_plugins.platform_ops.backup.objects import PIECE, Objects
from builtin_plugins.platform_ops.backup.rows import take_owners
from kernel.sdk import Database, HeldBlobs, SecretStore, utc_now
from kernel.sdk.storage import BlobStore, held_blobs, installation_lock

log = logging.getLogger("platform_ops.backup")

REBUILT = ["search indexes", "full-text indexes", "knowledge graphs in memory", "the job queue"]
_TRIES = 5
_LARGEST_CONFIG = 1024 * 1024


Owners = Callable[[], Sequence[Any]]
"""The owners of tables, by the schema."""

Answers = Callable[[], Awaitable[Sequence[ArchivedAnswer]]]
"""Asks the questions that a drill asks again."""


async def no_answers() -> Sequence[ArchivedAnswer]:
    """The default, for a platform that can't answer questions."""
    return ()


@dataclass(frozen=True)
class BackupSource:
    """What to back up. `blobs` is None if the blob store is not open; `folders` are named by plugins."""

    version: str
    home: Path
    database: Database
    owners: Owners
    secrets: SecretStore
    blobs: BlobStore | None
    folders: Mapping[str, Path] = field(default_factory=dict)
    answers: Answers = no_answers


async def create(
    source: BackupSource,
    archives: Archives,
    reason: str,
    tell: Tell = tell_nobody,
    keep: Sequence[str] = (),
    instead_of: str | None = None,
) -> str:
    """Make an archive and remove those that are too old; returns its name. Raises BackupFailed.

    `keep` names archives to keep however old they are, `instead_of` one that the new one replaces.
    """
    async with installation_lock(source.database, "archiving"):
        await asyncio.to_thread(archives.begin)
        before = await source.answers()
        owners, blobs, missing = await _rows_and_blobs(source, archives.objects, tell)
        # Changes during the backup may or may not be in the snapshot.
        after = await source.answers()
        answers = [answer for answer in before if answer in after]
        files = await asyncio.to_thread(_take_folders, source.folders, archives.objects)
        name = await asyncio.to_thread(
            _finish, source, archives, reason, (owners, blobs, files), missing, answers
        )
        await asyncio.to_thread(archives.keep_newest, [name, *keep], instead_of)
        return name


async def _rows_and_blobs(
    source: BackupSource, objects: Objects, tell: Tell
) -> tuple[list[ArchivedOwner], list[Content], list[str]]:
    """All rows, the files that they refer to, and the hashes of files that can't be archived.

    What is not there may have been deleted meanwhile; if the next snapshot refers to it again, it is lost.
    """
    declared = source.owners()
    contents: dict[str, Content] = {}

    def read(session: Session) -> tuple[list[ArchivedOwner], set[str]]:
        references = set(held_blobs(session))
        return take_owners(session.connection(), declared, objects, tell), references

    absent: set[str] = set()
    for _ in range(_TRIES):
        await _take_blobs(source, objects, set(await source.database.read(held_blobs)), contents, tell)
        owners, references = await source.database.snapshot(read)
        await _take_blobs(source, objects, references, contents, tell)
        missing = set() if source.blobs is None else references - set(contents)
        if missing <= absent:
            break
        absent |= missing
    for digest in sorted(missing):
        log.error("the stored file %s… is missing or damaged: the backup is made without it", digest[:12])
    return owners, [contents[digest] for digest in sorted(references & set(contents))], sorted(missing)


async def _take_blobs(
    source: BackupSource, objects: Objects, archived: set[str], contents: dict[str, Content], tell: Tell
) -> None:
    """Archive contents that aren't yet archived; those that are missing or damaged are left out."""
    if source.blobs is None:
        return
    for digest in sorted(archived - set(contents)):
        try:
            async with HeldBlobs.borrowed_from(source.blobs, digest) as path:
                content = await asyncio.to_thread(_take_file, path, objects)
        except FileNotFoundError:
            continue
        if content.sha256 == digest:
            contents[digest] = content
            tell("files", 1)


def _take_file(path: Path, objects: Objects) -> Content:
    digest, size, pieces = hashlib.sha256(), 0, []
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
            size += len(piece)
            pieces.append(objects.write(piece))
    return Content(sha256=digest.hexdigest(), size=size, pieces=pieces)


def _take_folders(folders: Mapping[str, Path], objects: Objects) -> list[ArchivedFile]:
    files = []
    for name, folder in sorted(folders.items()):
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            if path.is_file() and not path.is_symlink():
                content = _take_file(path, objects)
                where = {"folder": name, "path": path.relative_to(folder).as_posix()}
                files.append(ArchivedFile(**content.model_dump(), **where))
    return files


def _finish(
    source: BackupSource,
    archives: Archives,
    reason: str,
    parts: tuple[list[ArchivedOwner], list[Content], list[ArchivedFile]],
    missing: list[str],
    answers: list[ArchivedAnswer],
) -> str:
    owners, blobs, files = parts
    left_out = [] if source.blobs is not None else ["uploaded files"]
    if archives.sealer is None:
        left_out += ["secrets", "config.yaml"]
    manifest = ArchiveManifest(
        created_at=utc_now(),
        made_by=source.version,
        database="sqlite" if source.database.is_sqlite else "postgresql",
        reason=reason,
        owners=owners,
        blobs=blobs,
        files=files,
        without=left_out,
        missing=missing,
        rebuilt=REBUILT,
        answers=answers,
        stored_bytes=0,
    )
    manifest.stored_bytes = archives.objects.size_of(manifest.pieces())
    if archives.sealer is not None:
        manifest.sealed = archives.sealer.seal(_secret_part(source), manifest.about())
    return archives.finish(manifest)


def _secret_part(source: BackupSource) -> dict[str, object]:
    config = source.home / "config.yaml"
    text = config.read_text(encoding="utf-8")[:_LARGEST_CONFIG] if config.is_file() else None
    stored = {path.name: path.read_text(encoding="utf-8") for path in _secret_files(source)}
    return {"secrets": stored, "config": text}


def _secret_files(source: BackupSource) -> list[Path]:
    """Only stored secrets: those from the environment are not the platform's."""
    return [source.home / "secrets" / name for name in source.secrets.names()]
