"""The blob store: files named by the SHA-256 of their content, synced before they are acknowledged.

A file comes and goes only while its `kernel_blob` row is locked by a write transaction, so an upload and a
deletion of the same content can't cross, and the sweep at start removes exactly what no row knows.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.orm import Session

from kernel.db.engine import Database, Unit
from kernel.db.tables import BlobRecord, BlobReference
from kernel.db.units import off_the_loop
from kernel.errors import PayloadTooLarge
from kernel.stores.disk import DiskSpace
from kernel.stores.protocols import Staged
from kernel.stores.scratch import Scratch

log = logging.getLogger("platform.blobs")

_BUFFER = 1024 * 1024


class FileBlobs:
    """Blobs as files under one folder."""

    def __init__(self, database: Database, folder: Path, disk: DiskSpace) -> None:
        self._database = database
        self._folder = folder
        self._disk = disk
        self._scratch = Scratch(folder / "staging")

    async def stage(self, chunks: AsyncIterator[bytes], limit: int) -> Staged:
        """Write the stream to a synced temporary file.

        Raises PayloadTooLarge past `limit` bytes, InsufficientStorage when the disk is short of room.
        """
        self._disk.require()
        path = await asyncio.to_thread(self._scratch.new)
        try:
            return await self._write(path, chunks, limit)
        except BaseException:  # a client that leaves leaves no file either
            path.unlink(missing_ok=True)
            raise

    async def _write(self, path: Path, chunks: AsyncIterator[bytes], limit: int) -> Staged:
        digest, size, waiting = hashlib.sha256(), 0, bytearray()
        handle = await asyncio.to_thread(path.open, "wb", buffering=0)
        try:
            async for chunk in chunks:
                size += len(chunk)
                if size > limit:
                    raise PayloadTooLarge(f"The file is larger than {limit // (1024 * 1024)} MB")
                waiting += chunk
                if len(waiting) >= _BUFFER:
                    piece, waiting = waiting, bytearray()
                    self._disk.require()
                    await asyncio.to_thread(_append, handle, digest, piece)
            await asyncio.to_thread(_append, handle, digest, waiting)
            await asyncio.to_thread(os.fsync, handle.fileno())
        finally:
            handle.close()
        return Staged(path, digest.hexdigest(), size)

    def keep(self, unit: Unit, staged: Staged, holder: str) -> None:
        """Make the content a blob that `holder` refers to, in the unit's transaction."""
        unit.lock(f"blob:{staged.sha256}")
        self._insert(unit, BlobRecord, {"sha256": staged.sha256, "size": staged.size})
        self._insert(unit, BlobReference, {"sha256": staged.sha256, "holder": holder})
        off_the_loop(partial(self._place, staged))

    def release(self, unit: Unit, sha256: str, holder: str) -> None:
        """Drop the holder's reference; the last one takes the file with it, after the commit."""
        condition = (BlobReference.sha256 == sha256) & (BlobReference.holder == holder)
        unit.session.execute(delete(BlobReference).where(condition))

        async def remove() -> None:
            await self._remove_unheld(sha256)

        unit.after_commit(remove)

    async def local(self, sha256: str) -> Path:
        """Where the content is."""
        return self.path(sha256)

    def path(self, sha256: str) -> Path:
        """Where the content is; the file exists while somebody holds it."""
        return self._folder / sha256[:2] / sha256[2:]

    async def sweep(self) -> int:
        """Remove what a killed process left: unheld blobs, files without a row, stale temporary files."""
        removed = await asyncio.to_thread(self._scratch.sweep)
        for sha256 in sorted(await self.unheld()):
            removed += await self._remove_unheld(sha256)
        return removed

    async def unheld(self) -> set[str]:
        """Files and rows that nobody held a moment ago; whether it is still so is decided under the lock."""
        stored = set(await asyncio.to_thread(self._stored))
        rows, held = await self._database.read(_rows_and_held)
        return (stored | rows) - held

    async def _remove_unheld(self, sha256: str) -> int:
        return await self._database.write(self._remove, sha256)

    def _remove(self, unit: Unit, sha256: str) -> int:
        unit.lock(f"blob:{sha256}")
        held = select(func.count()).select_from(BlobReference).where(BlobReference.sha256 == sha256)
        if unit.session.scalar(held):
            return 0
        unit.session.execute(delete(BlobRecord).where(BlobRecord.sha256 == sha256))
        off_the_loop(partial(self._unlink, sha256))
        return 1

    def _insert(self, unit: Unit, table: type[BlobRecord | BlobReference], values: dict[str, object]) -> None:
        insert = sqlite_insert if unit.is_sqlite else postgresql_insert
        unit.session.execute(insert(table).values(**values).on_conflict_do_nothing())

    def _place(self, staged: Staged) -> None:
        target = self.path(staged.sha256)
        if target.exists():
            staged.discard()
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        staged.path.replace(target)
        _sync_folder(target.parent)
        _sync_folder(target.parent.parent)

    def _unlink(self, sha256: str) -> None:
        self.path(sha256).unlink(missing_ok=True)

    def _stored(self) -> list[str]:
        if not self._folder.is_dir():
            return []
        return [a.name + b.name for a in self._folder.iterdir() if len(a.name) == 2 for b in a.iterdir()]


def held_blobs(session: Session) -> dict[str, int]:
    """Every content that somebody holds: the SHA-256 of its bytes, and their number."""
    query = select(BlobRecord.sha256, BlobRecord.size).where(
        BlobRecord.sha256.in_(select(BlobReference.sha256))
    )
    return {row.sha256: row.size for row in session.execute(query)}


def held_blobs_of(session: Session, prefix: str) -> dict[str, list[str]]:
    """What the holders whose names start so hold: SHA-256 of contents, by holder."""
    columns = (BlobReference.holder, BlobReference.sha256)
    found: dict[str, list[str]] = {}
    for holder, sha256 in session.execute(
        select(*columns).where(BlobReference.holder.startswith(prefix, autoescape=True))
    ):
        found.setdefault(holder, []).append(sha256)
    return found


def _rows_and_held(session: Session) -> tuple[set[str], set[str]]:
    rows = set(session.scalars(select(BlobRecord.sha256)))
    return rows, set(session.scalars(select(BlobReference.sha256).distinct()))


def _append(handle: object, digest: object, piece: bytearray) -> None:
    digest.update(piece)  # type: ignore[attr-defined]
    handle.write(piece)  # type: ignore[attr-defined]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
