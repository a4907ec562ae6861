"""The file blob store, on both databases."""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kernel.db.engine import Database
from kernel.process.housekeeping import housekeep
from kernel.stores.blobs import FileBlobs
from kernel.stores.disk import Scratch
from kernel.stores.protocols import BlobStore
from kernel.testing import Running, Start, eventually, open_unit
from kernel.testing.conformance import BlobStoreConformance
from tests.fakes.statements import statements


@pytest.fixture
async def running(start_platform: Start, database_url: str | None) -> Running:
    """A platform without plugins."""
    return await start_platform(env={"DATABASE_URL": database_url})


class TestFileBlobs(BlobStoreConformance):
    @pytest.fixture
    def database(self, running: Running) -> Database:
        """Its database."""
        return running.platform.database

    @pytest.fixture
    def blobs(self, running: Running, tmp_path: Path) -> FileBlobs:
        """A store of its own folder."""
        return FileBlobs(running.platform.database, tmp_path / "blobs", running.platform.disk)

    async def held(self, blobs: BlobStore) -> int:
        """The files in its folder."""
        folder = (await blobs.local("00" * 32)).parent.parent
        return sum(path.is_file() for path in folder.rglob("*"))

    async def abandon(self, blobs: BlobStore, content: bytes) -> None:
        """A file in its place, without a row."""
        path = await blobs.local(hashlib.sha256(content).hexdigest())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    async def test_a_holder_that_comes_while_it_sweeps(self, blobs: FileBlobs, database: Database) -> None:
        """Content that nobody held when the sweep looked, and that somebody holds when it acts, stays."""
        content = b"held again"

        async def chunks() -> AsyncIterator[bytes]:
            yield content

        await self.abandon(blobs, content)
        staged = await blobs.stage(chunks(), limit=1000)
        async with open_unit(database, lambda unit: blobs.keep(unit, staged, "a")):
            assert await blobs.unheld() == {staged.sha256}
            with statements() as seen:
                sweeping = asyncio.create_task(blobs.sweep())
                await eventually(lambda: bool(seen) or sweeping.done())
        assert await sweeping == 0
        assert blobs.path(staged.sha256).read_bytes() == content
        assert await blobs.unheld() == set()


async def test_synced_before_it_is_acknowledged(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes are on the disk once they are staged, and the name that they are kept under before the
    commit, whoever made it: a process that was killed may not have synced it.
    """
    synced, sync = list[os.stat_result](), os.fsync

    def fsync(descriptor: int) -> None:
        sync(descriptor)
        synced.append(os.fstat(descriptor))

    async def chunks() -> AsyncIterator[bytes]:
        yield b"lasting"

    monkeypatch.setattr(os, "fsync", fsync)
    blobs = FileBlobs(running.platform.database, tmp_path / "blobs", running.platform.disk)
    staged = await blobs.stage(chunks(), limit=1000)
    (content,) = synced
    assert os.path.samestat(content, staged.path.stat()) and content.st_size == len(b"lasting")
    kept = blobs.path(staged.sha256).parent
    async with open_unit(running.platform.database, lambda unit: blobs.keep(unit, staged, "a")):
        for folder in (kept, kept.parent):
            assert any(os.path.samestat(one, folder.stat()) for one in synced)
    again = await blobs.stage(chunks(), limit=1000)
    synced.clear()
    async with open_unit(running.platform.database, lambda unit: blobs.keep(unit, again, "b")):
        assert any(os.path.samestat(one, kept.stat()) for one in synced)


@pytest.mark.either_database
async def test_cut_off_by_the_system(
    running: Running, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A system that takes only a part of the bytes, as at the end of a disk or quota, fails the upload: what
    is acknowledged is whole.
    """

    async def chunks() -> AsyncIterator[bytes]:
        yield bytes(1000)

    blobs = FileBlobs(running.platform.database, tmp_path / "blobs", running.platform.disk)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    request.addfinalizer(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    with pytest.raises(OSError, match="too large"):
        await blobs.stage(chunks(), limit=1000)
    assert not [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]


async def test_leftovers_of_a_killed_process(start_platform: Start, platform_home: Path) -> None:
    """A temporary file of a process that is gone is removed at the start; a living one keeps its own."""
    staging = platform_home / "blobs" / "staging"
    mine = Scratch(staging).new()
    place, _, rest = mine.name.split("-")
    dead = staging / f"{place}-4194000-{rest}"
    for path in (mine, dead):
        path.touch()
    running = await start_platform()
    await housekeep(running.platform)
    assert (mine.exists(), dead.exists()) == (True, False)
