"""The blob store: objects named by the SHA-256 of their contents, and local copies of those that are read."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

from sqlalchemy.exc import SQLAlchemyError

from builtin_plugins.s3_blobs.bucket import Bucket, BucketPrefix
from builtin_plugins.s3_blobs.copies import Copies
from builtin_plugins.s3_blobs.ownership import claim
from builtin_plugins.s3_blobs.settings import S3Settings
from builtin_plugins.s3_blobs.threads import BoundedThreads
from kernel.sdk import HeldBlobs, StartupError, StoreNeeds, Unit
from kernel.sdk.storage import BlobsAway, Staged, StoredBlob, held_among

log = logging.getLogger("s3_blobs")
T = TypeVar("T")

REMOVED = "s3_blobs.removed"
"""Topic of the notice that a content is gone: other machines remove their copies."""

_KEY = re.compile(r"[0-9a-f]{2}/[0-9a-f]{62}")
_LOOK = 600.0  # seconds between checks for copies whose removal was not announced
_AT_ONCE = 500
_THREADS = 16
_DAY = 24 * 60 * 60.0


class DamagedObject(Exception):
    """An object's content doesn't match the hash in its name."""


class S3Blobs(HeldBlobs):
    """Blobs as objects in a bucket.

    An object is written before the transaction that keeps it, which then only checks that it still exists; it
    is removed in the transaction that removes its row.
    """

    def __init__(self, needs: StoreNeeds, bucket: Bucket, copies: Copies) -> None:
        super().__init__(needs.database, needs.disk, needs.settings.home / "s3" / "staging")
        self.bucket = bucket
        self.copies = copies
        self.leave_alone = _DAY
        self._serving = self._ours = False
        # Its own threads: a hanging server must not block those of others.
        self._threads = BoundedThreads("s3", _THREADS)
        self._fetching: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def settle(self) -> None:
        """Check that the prefix belongs to this database. Raises StartupError if it is another's."""
        self._serving = True
        try:
            await self._claim()
        except BlobsAway as error:
            if error.refused:
                raise StartupError(error.reason) from error
            log.warning("%s; nothing is removed until it does", error.reason)

    async def _claim(self) -> None:
        if not self._ours:
            await claim(self.bucket, self._database, self._apart, self.stored)
            self._ours = True

    async def secure(self, staged: Staged) -> None:
        """Write the object, unless it is there already."""
        if self._serving:  # the server may have been unreachable at the start
            await self._claim()
        await self._apart(self._put, staged)

    def place(self, staged: Staged) -> None:
        """Check that the object still exists, else write it again; the file becomes a copy."""
        self._put(staged)
        with suppress(FileNotFoundError):  # kept by two at once
            self.copies.add(staged.sha256, staged.path, staged.size)

    def take_away(self, sha256: str) -> None:
        if not self._ours:  # as in a tool: housekeeping cleans up
            raise BlobsAway(
                f"nothing is removed from {self.bucket.place} until it is known to belong to this platform"
            )
        self.bucket.remove(_key(sha256))
        self.copies.remove(sha256)

    async def sweep(self) -> int:
        await self._claim()
        return await super().sweep()

    def remove_unheld(self, unit: Unit, sha256: str) -> int:
        removed = super().remove_unheld(unit, sha256)
        if removed:
            unit.notify(REMOVED, sha256)
        return removed

    def find_stored(self) -> dict[str, StoredBlob]:
        """List stored contents; objects with other names are somebody else's."""
        return {
            entry.key.replace("/", ""): StoredBlob(entry.size, entry.modified_at.timestamp())
            for entry in self.bucket.objects()
            if _KEY.fullmatch(entry.key)
        }

    async def local(self, sha256: str) -> Path:
        """A copy of the content in a file, fetched if there is none.

        Raises BlobsAway, InsufficientStorage, DamagedObject.
        """
        lock = self._fetching.setdefault(sha256, asyncio.Lock())
        async with lock:  # of several readers, one fetches
            if not await asyncio.to_thread(self.copies.use, sha256):
                await self._disk.require()
                with suppress(FileNotFoundError):
                    await self._apart(self._fetch, sha256)
        return self.copies.path(sha256)

    @asynccontextmanager
    async def borrowed(self, sha256: str) -> AsyncIterator[Path]:
        """A copy if there is one, else the content in a temporary file for the block."""
        if await asyncio.to_thread(self.copies.use, sha256):
            yield self.copies.path(sha256)
            return
        await self._disk.require()
        path = await asyncio.to_thread(self._scratch.new)
        try:
            await self._apart(self._download, sha256, path)
            yield path
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def stored(self) -> dict[str, StoredBlob]:
        return await self._apart(self.find_stored)

    async def check(self) -> None:
        """Check that this database can use the bucket. Raises BlobsAway."""
        await self._apart(self.bucket.check)
        if self._serving:
            await self._claim()

    def close(self) -> None:
        """Refuse new calls, without waiting for those that are running."""
        self._threads.close()

    async def forget_removed(self) -> None:
        """Remove copies of contents that nobody holds any more."""
        names = await asyncio.to_thread(self.copies.names)
        for start in range(0, len(names), _AT_ONCE):
            part = names[start : start + _AT_ONCE]
            still_held = await self._database.read(held_among, part)
            for sha256 in set(part) - still_held:
                await self.forget(sha256)

    async def forget(self, sha256: str) -> None:
        """Remove the copy of a content, if there is one and nobody holds the content any more.

        When notice of a removal arrives, the content may already be back and its copy about to be read.
        """
        if await asyncio.to_thread(self.copies.path(sha256).exists):
            await self._database.write(self.unless_held, sha256, self.copies.remove)

    async def _apart(self, work: Callable[..., T], *args: object) -> T:
        return await self._threads.run(partial(work, *args))

    def _put(self, staged: Staged) -> None:
        key = _key(staged.sha256)
        if self.bucket.size_of(key) == staged.size:
            return
        moved = not staged.path.exists()  # by an earlier attempt of the transaction
        self.bucket.put(key, self.copies.path(staged.sha256) if moved else staged.path, staged.sha256)

    def _fetch(self, sha256: str) -> None:
        path = self._scratch.new()
        try:
            self.copies.add(sha256, path, self._download(sha256, path))
        finally:
            path.unlink(missing_ok=True)

    def _download(self, sha256: str, path: Path) -> int:
        """Write an object into a file; returns its size. Raises DamagedObject, FileNotFoundError."""
        digest, size = hashlib.sha256(), 0
        with path.open("wb") as file:
            for piece in self.bucket.get(_key(sha256)):
                digest.update(piece)
                size += len(piece)
                file.write(piece)
        if digest.hexdigest() != sha256:
            raise DamagedObject(f"the object of {sha256[:12]}… in {self.bucket.place} is damaged")
        return size


def _key(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256[2:]}"


@asynccontextmanager
async def open_store(needs: StoreNeeds) -> AsyncIterator[S3Blobs]:
    """The store of `PLATFORM_BLOB_STORE`. Raises StartupError for one that is refused.

    An unreachable server doesn't prevent the start: whatever needs no uploads works meanwhile.
    """
    settings = needs.settings_of(S3Settings)
    try:
        place = BucketPrefix.at(needs.settings.blob_store)
    except ValueError as error:
        raise StartupError(f"PLATFORM_BLOB_STORE is '{needs.settings.blob_store}': {error}") from None
    bucket = Bucket(place, settings)
    copies = Copies(needs.settings.home / "s3" / "copies", settings.copies_mb * 1024 * 1024)
    store = S3Blobs(needs, bucket, copies)
    try:
        await _begin(store)
        yield store
    finally:
        store.close()


async def _begin(store: S3Blobs) -> None:
    try:
        await store.check()
    except ImportError:
        what = "pip install 'platform-kernel[s3]'"
        raise StartupError(f"{store.bucket.place} needs packages that are not installed: {what}") from None
    except BlobsAway as error:
        if error.refused:
            raise StartupError(error.reason) from error
        log.warning("%s; uploads are refused until it does", error.reason)


async def look_after(store: S3Blobs) -> None:
    """Remove stale copies now and then, in case this process missed a removal elsewhere."""
    while True:
        await _noted(store.forget_removed())
        await asyncio.sleep(_LOOK)


async def follow(store: S3Blobs, removed: asyncio.Queue[str]) -> None:
    """Remove the local copy of each content that is removed anywhere."""
    while True:
        await _noted(store.forget(await removed.get()))


async def _noted(removing: Awaitable[None]) -> None:
    """Log a failure; the next check tries again."""
    try:
        await removing
    except (SQLAlchemyError, OSError) as error:
        log.warning("can't remove copies of uploads: %s", type(error).__name__)
