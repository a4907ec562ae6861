"""The blob store: who holds which content, in kernel tables, wherever the contents are stored; by default, in
files named by the SHA-256 of their content, synced before they are acknowledged.

Content is stored and removed only while a write transaction locks its `kernel_blob` row, so an upload and a
deletion of the same content can't cross, and the sweep removes exactly the content without a row.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from kernel.db.base import shared_now
from kernel.db.engine import Database, Unit
from kernel.db.tables import BlobRecord, BlobReference
from kernel.db.units import off_the_loop, uninterrupted
from kernel.errors import PayloadTooLarge
from kernel.libs.prepared import insert_new
from kernel.process.machine_faults import MachineFault
from kernel.stores.disk import DiskSpace, Scratch, sync
from kernel.stores.protocols import BlobStore, Staged

_BUFFER = 1024 * 1024


@dataclass(frozen=True)
class StoredBlob:
    """Stored content: its size in bytes, and when it was stored, in seconds since 1970."""

    size: int
    modified_at: float


class BlobsAway(MachineFault):
    """The server that stores uploads is unavailable: clients get a 503, and jobs try again later.

    `reason` gives the operator the cause and the remedy. It is `refused` if retrying can't help until
    somebody fixes something, such as wrong keys or a missing bucket.
    """

    def __init__(self, reason: str, *, refused: bool = False) -> None:
        super().__init__("uploads")
        self.reason = reason
        self.refused = refused
        self.add_note(reason)  # for the log only: the error's text is public


class HeldBlobs(ABC):
    """A blob store that keeps its books in rows; a subclass stores the contents.

    `place`, `take_away` and `find_stored` block; they are called in threads, the first two while the
    content's row is locked.
    """

    def __init__(self, database: Database, disk: DiskSpace, staging: Path) -> None:
        self._database = database
        self._disk = disk
        self._scratch = Scratch(staging)
        self.leave_alone = 0.0
        """Seconds for which the sweep spares content without a row."""
        self.syncs = False
        """Whether staged files are synced as they are written: they are themselves to be kept."""

    @abstractmethod
    async def secure(self, staged: Staged) -> None:
        """Make staged content durable, to leave little work for the transaction that keeps it."""

    @abstractmethod
    def place(self, staged: Staged) -> None:
        """Put the content into the store; it may already be there."""

    @abstractmethod
    def take_away(self, sha256: str) -> None:
        """Remove content that nobody holds; it may already be gone."""

    @abstractmethod
    def find_stored(self) -> dict[str, StoredBlob]:
        """Every content in the store, held or not, by its SHA-256."""

    @abstractmethod
    async def local(self, sha256: str) -> Path:
        """A file with the content; see `BlobStore.local`. It does not exist if the content is missing."""

    @asynccontextmanager
    async def borrowed(self, sha256: str) -> AsyncIterator[Path]:
        """A file with the content, for use within the block.

        For reading many contents once, as in a backup: a downloaded file is not kept. Raises what `local`
        raises, and FileNotFoundError if the content is missing.
        """
        yield await self.local(sha256)

    @staticmethod
    @asynccontextmanager
    async def borrowed_from(store: BlobStore, sha256: str) -> AsyncIterator[Path]:
        """The same for any store; one without `borrowed` keeps what it downloads."""
        if isinstance(store, HeldBlobs):
            async with store.borrowed(sha256) as path:
                yield path
        else:
            yield await store.local(sha256)

    async def settle(self) -> None:  # noqa: B027
        """Get ready to serve: called at the start of each process that does, after the migrations.

        Raises StartupError to stop the start, for example if the contents belong to another database.
        """

    async def stage(self, chunks: AsyncIterator[bytes], limit: int) -> Staged:
        """Write the stream to a temporary file and make it durable.

        Raises PayloadTooLarge beyond `limit` bytes, InsufficientStorage if the disk is short of space.
        """
        await self._disk.require()
        arriving = _Arriving(self._scratch, syncs=self.syncs)
        try:
            staged = await self._write(arriving, chunks, limit)
            await self.secure(staged)
        except BaseException:  # including a client that leaves: no file stays behind
            arriving.discard()
            raise
        return staged

    async def _write(self, arriving: _Arriving, chunks: AsyncIterator[bytes], limit: int) -> Staged:
        size, waiting = 0, bytearray()
        async for chunk in chunks:
            size += len(chunk)
            if size > limit:
                raise PayloadTooLarge(f"The file is larger than {limit // (1024 * 1024)} MB")
            waiting += chunk
            if len(waiting) >= _BUFFER:
                piece, waiting = waiting, bytearray()
                await self._disk.require()
                await uninterrupted(asyncio.to_thread(arriving.append, piece))
        return await uninterrupted(asyncio.to_thread(arriving.end, waiting, size))

    def keep(self, unit: Unit, staged: Staged, holder: str) -> None:
        """Make the content a blob that `holder` refers to, in the unit's transaction."""
        unit.lock(f"blob:{staged.sha256}")
        _insert(unit, BlobRecord, {"sha256": staged.sha256, "size": staged.size})
        _insert(unit, BlobReference, {"sha256": staged.sha256, "holder": holder})
        off_the_loop(partial(self.place, staged))

    def release(self, unit: Unit, sha256: str, holder: str) -> None:
        """Drop the holder's reference; with the last one, the content is removed after the commit."""
        condition = (BlobReference.sha256 == sha256) & (BlobReference.holder == holder)
        unit.session.execute(delete(BlobReference).where(condition))

        async def remove() -> None:
            await self._database.write(self.remove_unheld, sha256)

        unit.after_commit(remove)

    def remove_unheld(self, unit: Unit, sha256: str) -> int:
        """Remove the content and its row if nobody holds it; returns the number removed."""
        if not self.unless_held(unit, sha256, self.take_away):
            return 0
        unit.session.execute(delete(BlobRecord).where(BlobRecord.sha256 == sha256))
        return 1

    def unless_held(self, unit: Unit, sha256: str, remove: Callable[[str], None]) -> bool:
        """Call `remove(sha256)`, which may block, if nobody holds the content; returns whether it was called.

        Nobody can take hold of it in the meantime.
        """
        unit.lock(f"blob:{sha256}")
        references = select(func.count()).select_from(BlobReference).where(BlobReference.sha256 == sha256)
        if unit.session.scalar(references):
            return False
        off_the_loop(partial(remove, sha256))
        return True

    async def sweep(self) -> int:
        """Remove what a killed process left: unheld contents, those without a row, stale temporary files."""
        removed = await asyncio.to_thread(self._scratch.sweep)
        for sha256 in sorted(await self.unheld()):
            removed += await self._database.write(self.remove_unheld, sha256)
        return removed

    async def unheld(self) -> set[str]:
        """Contents and rows that nobody held a moment ago; check again under the lock."""
        blobs = await self.stored()
        rows, references, now = await self._database.read(_rows_held_and_now)
        until = now - self.leave_alone
        old = {sha256 for sha256, blob in blobs.items() if not self.leave_alone or blob.modified_at < until}
        return (old | rows) - references

    async def stored(self) -> dict[str, StoredBlob]:
        """`find_stored` in a thread."""
        return await asyncio.to_thread(self.find_stored)


class _Arriving:
    """A temporary file, written in threads; a small one in a single call."""

    def __init__(self, scratch: Scratch, *, syncs: bool) -> None:
        self._scratch = scratch
        self._syncs = syncs
        self._digest = hashlib.sha256()
        self._handle: FileIO | None = None
        self._path: Path | None = None

    def append(self, piece: bytearray) -> None:
        """Append to the file, which is created with the first bytes."""
        if self._handle is None:
            self._path = self._scratch.new()
            self._handle = FileIO(self._path, "wb")
        self._digest.update(piece)
        left = memoryview(piece)
        while left:  # a disk that is filling up takes a part, and refuses only the rest
            left = left[self._handle.write(left) :]

    def end(self, piece: bytearray, size: int) -> Staged:
        """Write the last bytes."""
        self.append(piece)
        assert self._handle is not None and self._path is not None
        if self._syncs:
            os.fsync(self._handle.fileno())
        self._handle.close()
        return Staged(self._path, self._digest.hexdigest(), size)

    def discard(self) -> None:
        """Delete the file."""
        if self._handle is not None:
            self._handle.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def held_blobs(session: Session) -> dict[str, int]:
    """Every held content: its size in bytes, by SHA-256."""
    query = select(BlobRecord.sha256, BlobRecord.size).where(
        BlobRecord.sha256.in_(select(BlobReference.sha256))
    )
    return {row.sha256: row.size for row in session.execute(query)}


def held_blobs_of(session: Session, prefix: str) -> dict[str, list[str]]:
    """The SHA-256 of the contents held by holders whose names start with `prefix`, by holder."""
    columns = (BlobReference.holder, BlobReference.sha256)
    hashes_by_holder: dict[str, list[str]] = {}
    for holder, sha256 in session.execute(
        select(*columns).where(BlobReference.holder.startswith(prefix, autoescape=True))
    ):
        hashes_by_holder.setdefault(holder, []).append(sha256)
    return hashes_by_holder


def held_among(session: Session, digests: list[str]) -> set[str]:
    """Those of these contents that somebody holds."""
    return set(session.scalars(select(BlobReference.sha256).where(BlobReference.sha256.in_(digests))))


def _rows_held_and_now(session: Session) -> tuple[set[str], set[str], float]:
    rows = set(session.scalars(select(BlobRecord.sha256)))
    references = set(session.scalars(select(BlobReference.sha256).distinct()))
    return rows, references, shared_now(session).timestamp()


# Built once, from tables: the ORM would cost half a millisecond per upload.
_INSERTS = {
    (table, is_sqlite): insert_new(table, is_sqlite=is_sqlite)
    for table in (BlobRecord, BlobReference)
    for is_sqlite in (True, False)
}


def _insert(unit: Unit, table: type[BlobRecord | BlobReference], values: dict[str, object]) -> None:
    unit.session.connection().execute(_INSERTS[table, unit.is_sqlite], values)


class FileBlobs(HeldBlobs):
    """Blobs as files under one folder."""

    def __init__(self, database: Database, folder: Path, disk: DiskSpace) -> None:
        super().__init__(database, disk, folder / "staging")
        self.syncs = True
        self._folder = folder
        self._lasting: set[str] = set()
        """Folders that this process has synced itself; it doesn't rely on another process to do that."""

    async def secure(self, staged: Staged) -> None:
        """Nothing is left to do: the file was synced as it was written."""

    async def local(self, sha256: str) -> Path:
        """The path of the content."""
        return self.path(sha256)

    def path(self, sha256: str) -> Path:
        """The path of the content; the file exists while somebody holds it."""
        return self._folder / sha256[:2] / sha256[2:]

    def place(self, staged: Staged) -> None:
        target = self.path(staged.sha256)
        if _has(target, staged.size):
            staged.discard()
        else:
            try:
                staged.path.replace(target)
            except FileNotFoundError:
                target.parent.mkdir(parents=True, exist_ok=True)
                staged.path.replace(target)
        sync(target.parent)  # even if the file is there: whoever placed it may have been killed before
        if target.parent.name not in self._lasting:
            sync(target.parent.parent)
            self._lasting.add(target.parent.name)

    def take_away(self, sha256: str) -> None:
        self.path(sha256).unlink(missing_ok=True)

    def find_stored(self) -> dict[str, StoredBlob]:
        blobs = {}
        for path in self._folder.glob("??/*"):
            try:
                about = path.stat()
            except FileNotFoundError:
                continue
            blobs[path.parent.name + path.name] = StoredBlob(about.st_size, about.st_mtime)
        return blobs


def _has(path: Path, size: int) -> bool:
    """Whether all of the content is there; if not, the next upload of it replaces what is there."""
    try:
        return path.stat().st_size == size
    except FileNotFoundError:
        return False
