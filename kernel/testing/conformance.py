"""Conformance suites for caches and blob stores: a backend's tests subclass one and provide its fixtures.

The vector store's is in `builtin_plugins.vectors.conformance`.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

import pytest

from kernel.db.engine import Database, Unit
from kernel.errors import PayloadTooLarge
from kernel.stores.protocols import BlobStore, Cache


class CacheConformance:
    """A subclass provides the async fixture `cache`."""

    async def test_counts_within_a_window(self, cache: Cache) -> None:
        """The same key counts up; the rest of the window is between one second and its length."""
        key = f"conformance:{secrets.token_hex(8)}"
        counts = [await cache.increment(key, 3600) for _ in range(3)]
        assert [count for count, _ in counts] == [1, 2, 3]
        assert all(1 <= left <= 3600 for _, left in counts)

    async def test_keys_are_apart(self, cache: Cache) -> None:
        """One caller's count is not another's."""
        first, second = (f"conformance:{secrets.token_hex(8)}" for _ in range(2))
        await cache.increment(first, 3600)
        assert (await cache.increment(second, 3600))[0] == 1

    async def test_counts_under_concurrency(self, cache: Cache) -> None:
        """No call of many at once is lost or counted twice."""
        key = f"conformance:{secrets.token_hex(8)}"
        counts = await asyncio.gather(*(cache.increment(key, 3600) for _ in range(20)))
        assert sorted(count for count, _ in counts) == list(range(1, 21))

    async def test_answers_a_ping(self, cache: Cache) -> None:
        """A store that is up says so."""
        await cache.ping()


class BlobStoreConformance(ABC):
    """A subclass provides the async fixtures `blobs` and `database` (migrated), and the two methods below."""

    @abstractmethod
    async def held(self, blobs: BlobStore) -> int:
        """How many contents are in the store, held or not, including staged ones."""

    @abstractmethod
    async def abandon(self, blobs: BlobStore, content: bytes) -> None:
        """Leave content in the store as a process does that dies before its commit."""

    async def test_keeps_the_very_bytes(self, blobs: BlobStore, database: Database) -> None:
        """What was kept is there, named by its hash, and staging is empty."""
        content = secrets.token_bytes(3_000_000)
        sha256 = await _keep(blobs, database, content, "a")
        assert sha256 == hashlib.sha256(content).hexdigest()
        assert (await blobs.local(sha256)).read_bytes() == content
        assert await blobs.sweep() == 0
        assert await self.held(blobs) == 1

    async def test_refuses_too_much_and_leaves_nothing(self, blobs: BlobStore) -> None:
        """Past the limit the stream is refused, and its temporary file is gone."""
        with pytest.raises(PayloadTooLarge):
            await blobs.stage(_stream(b"x" * 1000), limit=999)
        assert await self.held(blobs) == 0

    async def test_last_holder_takes_the_file(self, blobs: BlobStore, database: Database) -> None:
        """Content held twice is kept until both holders have released it."""
        sha256 = await _keep(blobs, database, b"shared", "a")
        assert await _keep(blobs, database, b"shared", "b") == sha256
        await _release(blobs, database, sha256, "a")
        assert (await blobs.local(sha256)).read_bytes() == b"shared"
        await _release(blobs, database, sha256, "b")
        assert await self.held(blobs) == 0

    async def test_rollback_keeps_nothing(self, blobs: BlobStore, database: Database) -> None:
        """A unit that fails after keeping leaves at most a file that the sweep removes."""
        staged = await blobs.stage(_stream(b"rolled back"), limit=1000)

        def fail(unit: Unit) -> None:
            blobs.keep(unit, staged, "a")
            raise RuntimeError("rolled back")

        with pytest.raises(RuntimeError):
            await database.write(fail)
        await blobs.sweep()
        assert await self.held(blobs) == 0

    async def test_upload_and_deletion_cross(self, blobs: BlobStore, database: Database) -> None:
        """Whoever holds the content at the end finds it, however the two interleave."""
        sha256 = await _keep(blobs, database, b"contested", "first")
        for turn in range(10):
            await asyncio.gather(
                _release(blobs, database, sha256, "first" if turn == 0 else f"holder-{turn - 1}"),
                _keep(blobs, database, b"contested", f"holder-{turn}"),
            )
            assert (await blobs.local(sha256)).read_bytes() == b"contested"

    async def test_sweep_removes_what_no_row_knows(self, blobs: BlobStore, database: Database) -> None:
        """Content that was placed by a process that died before its commit goes; held content stays."""
        sha256 = await _keep(blobs, database, b"kept", "a")
        await self.abandon(blobs, b"stray")
        assert await self.held(blobs) == 2
        assert await blobs.sweep() == 1
        assert await self.held(blobs) == 1
        assert (await blobs.local(sha256)).read_bytes() == b"kept"


async def _stream(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 70_000):
        yield content[start : start + 70_000]


async def _keep(blobs: BlobStore, database: Database, content: bytes, holder: str) -> str:
    staged = await blobs.stage(_stream(content), limit=10_000_000)
    try:
        await database.write(blobs.keep, staged, holder)
    finally:
        staged.discard()
    return staged.sha256


async def _release(blobs: BlobStore, database: Database, sha256: str, holder: str) -> None:
    await database.write(blobs.release, sha256, holder)
