"""Uploads in an S3 store: held to the kernel's suite, and what happens when the server is away."""

from __future__ import annotations

import asyncio
import hashlib
import io
import secrets
import threading
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from builtin_plugins.platform_ops.backup import journal
from builtin_plugins.platform_ops.backup.operator import restore
from builtin_plugins.platform_ops.backup.service import (
    archives_of,
    back_up,
    folders_of,
    order_restore,
    prepare_restore,
)
from builtin_plugins.s3_blobs.copies import Copies
from builtin_plugins.s3_blobs.ownership import MARKER
from builtin_plugins.s3_blobs.plugin import S3BlobsPlugin
from builtin_plugins.s3_blobs.store import REMOVED, S3Blobs
from cli.stored_checks import check_files
from kernel.db.engine import Database
from kernel.sdk import StartupError, Unavailable, Unit
from kernel.sdk.storage import BlobsAway
from kernel.stores.protocols import BlobStore
from kernel.testing import Running, Start, eventually, platforms
from kernel.testing.conformance import BlobStoreConformance
from tests.builtin_plugins.rag.rag_support import (
    HANDBOOK,
    ingest,
    make_base,
    path_of,
    record,
    somebody,
    upload,
)
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.network import wire_to
from tests.fakes.own_clock import OwnClock
from tests.fakes.s3_server import BUCKET, S3Server, client_of


def settings(server: S3Server, **more: str | None) -> dict[str, str | None]:
    """The environment of a platform with its own prefix."""
    return {**server.environment(secrets.token_hex(4)), **more}


def prefix_of(blobs: BlobStore) -> str:
    """What its objects' names start with."""
    assert isinstance(blobs, S3Blobs)
    return blobs.bucket.place.prefix


def contents(server: S3Server, blobs: BlobStore) -> list[str]:
    prefix = prefix_of(blobs)
    return [key for key in server.keys(prefix) if key != f"{prefix}{MARKER}"]


async def chunks(content: bytes) -> AsyncIterator[bytes]:
    """A body."""
    for start in range(0, len(content), 70_000):
        yield content[start : start + 70_000]


async def keep(running: Running, content: bytes, holder: str = "a") -> str:
    platform = running.platform
    staged = await platform.blobs.stage(chunks(content), 100_000_000)
    await platform.database.write(platform.blobs.keep, staged, holder)
    return staged.sha256


class TestS3Blobs(BlobStoreConformance):
    @pytest.fixture
    async def running(self, start_platform: Start, s3: S3Server, database_url: str | None) -> Running:
        """A platform with the store alone."""
        return await start_platform(S3BlobsPlugin, env=settings(s3, DATABASE_URL=database_url))

    @pytest.fixture
    def database(self, running: Running) -> Database:
        """Its database."""
        return running.platform.database

    @pytest.fixture
    def blobs(self, running: Running, s3: S3Server) -> BlobStore:
        """Its store."""
        self.server = s3
        self.staging = running.platform.settings.home / "s3" / "staging"
        store_of(running).leave_alone = 0
        return running.platform.blobs

    async def held(self, blobs: BlobStore) -> int:
        objects = await asyncio.to_thread(contents, self.server, blobs)
        return len([*objects, *self.staging.glob("*")])

    async def abandon(self, blobs: BlobStore, content: bytes) -> None:
        """An object without a row."""
        sha256 = hashlib.sha256(content).hexdigest()
        key = f"{prefix_of(blobs)}{sha256[:2]}/{sha256[2:]}"
        client_of(self.server.url).put_object(Bucket=BUCKET, Key=key, Body=content)

    async def test_other_objects_stay(self, blobs: BlobStore) -> None:
        """The sweep leaves alone what is not named as a content is."""
        key = f"{prefix_of(blobs)}notes/readme.txt"
        client_of(self.server.url).put_object(Bucket=BUCKET, Key=key, Body=b"somebody else's")
        assert await blobs.sweep() == 0
        assert contents(self.server, blobs) == [key]

    async def test_the_sweep_leaves_young_objects_alone(self, blobs: BlobStore) -> None:
        assert isinstance(blobs, S3Blobs)
        await self.abandon(blobs, b"just put")
        blobs.leave_alone = 3600
        assert await blobs.sweep() == 0
        blobs.leave_alone = 0
        assert await blobs.sweep() == 1

    async def test_a_unit_that_is_tried_again(self, blobs: BlobStore, database: Database) -> None:
        assert isinstance(blobs, S3Blobs)
        staged = await blobs.stage(chunks(b"twice"), 1000)
        await asyncio.to_thread(blobs.place, staged)
        await asyncio.to_thread(blobs.bucket.remove, f"{staged.sha256[:2]}/{staged.sha256[2:]}")
        await database.write(blobs.keep, staged, "a")
        assert await self.held(blobs) == 1
        blobs.copies.remove(staged.sha256)
        assert (await blobs.local(staged.sha256)).read_bytes() == b"twice"

    async def test_a_damaged_object_is_not_handed_out(
        self, blobs: BlobStore, running: Running, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Content that is not what its name says raises, and is not kept as a copy; the log says which."""
        sha256 = await keep(running, b"as it was")
        assert isinstance(blobs, S3Blobs)
        blobs.copies.remove(sha256)
        key = f"{prefix_of(blobs)}{sha256[:2]}/{sha256[2:]}"
        client_of(self.server.url).put_object(Bucket=BUCKET, Key=key, Body=b"otherwise")
        with pytest.raises(Unavailable, match="s3_blobs"):
            await blobs.local(sha256)
        assert "DamagedObject" in caplog.text and sha256[:12] in caplog.text
        assert not blobs.copies.path(sha256).exists()


async def test_a_machine_that_is_ahead_leaves_young_objects_alone(
    start_platform: Start, s3: S3Server, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database's clock decides when a day has passed: uploads in progress elsewhere stay."""
    running = await start_platform(S3BlobsPlugin, env=settings(s3, DATABASE_URL=postgres_url))
    blobs, key = store_of(running), f"ab/{'c' * 62}"
    client_of(s3.url).put_object(Bucket=BUCKET, Key=f"{prefix_of(blobs)}{key}", Body=b"just put")
    OwnClock(monkeypatch).by(365 * 24 * 3600.0)
    assert await blobs.sweep() == 0


@pytest.mark.long
async def test_server_killed_in_the_middle_of_a_put(
    start_platform: Start, s3: S3Server, postgres_url: str
) -> None:
    """The upload is a 503 and leaves nothing; what was kept is there afterwards, and a retry succeeds."""
    async with wire_to("127.0.0.1", s3.port) as wire:
        env = settings(s3, DATABASE_URL=postgres_url, PLATFORM_S3_ENDPOINT=f"http://127.0.0.1:{wire.port}")
        running = await start_platform("rag", HashEmbeddings, S3BlobsPlugin, env=env)
        blobs = running.platform.blobs
        assert isinstance(blobs, S3Blobs)
        ann = await somebody(running)
        base = await make_base(ann)
        kept = (await upload(ann, base, "kept.txt", "kept before")).json()
        content = secrets.token_bytes(6_000_000).hex()
        wire.passed, wire.stop_after = 0, 4_000_000
        uploading = asyncio.create_task(upload(ann, base, "large.txt", content))
        async with asyncio.timeout(30):
            await wire.stopped.wait()
        await asyncio.to_thread(s3.kill)
        refused = await uploading
        assert (refused.status, refused.json()["code"]) == (503, "unavailable")
        wire.stop_after = None
        listed = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
        assert [item["document_id"] for item in listed] == [kept["document_id"]]
        health = (await running.anonymous.get("/health")).json()
        assert (health["status"], health["checks"]["s3"][:11]) == ("degraded", "unhealthy: ")
        working = asyncio.create_task(run_without_copies(running))
        await asyncio.to_thread(s3.start)
        async with asyncio.timeout(60):
            await working
        assert len(await asyncio.to_thread(contents, s3, blobs)) == 1
        assert (await record(ann, base, kept["document_id"]))["status"] == "completed"
        again = await upload(ann, base, "large.txt", content)
        assert again.status == 202, again.body
        found = await ann.get(path_of(base, again.json()["document_id"], "/content"))
        assert found.body == content.encode()


async def run_without_copies(running: Running) -> None:
    blobs = running.platform.blobs
    assert isinstance(blobs, S3Blobs)
    for name in blobs.copies.names():
        blobs.copies.remove(name)
    await running.run_jobs()


async def test_an_export_leaves_nothing_on_this_machine(start_platform: Start, s3: S3Server) -> None:
    """Each upload is brought here for as long as it is written: all may be larger than the disk."""
    running = await start_platform("rag_exchange", HashEmbeddings(), S3BlobsPlugin, env=settings(s3))
    ann = await somebody(running)
    base = await make_base(ann)
    for name in ("one.txt", "two.txt"):
        await ingest(running, ann, base, name, f"{HANDBOOK} {name}")
    store = store_of(running)
    for sha256 in store.copies.names():
        store.copies.remove(sha256)
    exported = await ann.get(f"/v1/rag/knowledge-bases/{base}/export")
    assert exported.status == 200, exported.body
    with zipfile.ZipFile(io.BytesIO(exported.body)) as bundle:
        originals = [bundle.read(name) for name in bundle.namelist() if name.startswith("originals/")]
    assert sorted(originals) == [f"{HANDBOOK} {name}".encode() for name in ("one.txt", "two.txt")]
    assert store.copies.names() == []
    assert not list((running.platform.settings.home / "s3" / "staging").glob("*"))


async def test_a_server_that_hangs_holds_up_nobody_else(start_platform: Start, s3: S3Server) -> None:
    """Uploads wait for it; everything else is answered, and a stop waits for no thread that calls it."""
    async with wire_to("127.0.0.1", s3.port) as wire:
        env = settings(s3, PLATFORM_S3_ENDPOINT=f"http://127.0.0.1:{wire.port}")
        running = await start_platform("rag", HashEmbeddings, S3BlobsPlugin, env=env)
        ann = await somebody(running)
        base = await make_base(ann)
        wire.mute()
        uploads = [asyncio.create_task(upload(ann, base, f"{n}.txt", f"text {n}")) for n in range(8)]
        await eventually(lambda: wire.passed > 0)
        async with asyncio.timeout(3):
            for _ in range(20):
                assert (await ann.get("/v1/rag/knowledge-bases")).status == 200
        assert not any(task.done() for task in uploads)
        calling = [thread for thread in threading.enumerate() if thread.name.startswith("s3")]
        assert calling and all(thread.daemon for thread in calling)
        await wire.cut()
        assert {answer.status for answer in await asyncio.gather(*uploads)} == {503}


async def test_word_of_a_removal_comes_late(
    start_platform: Start, s3: S3Server, database_url: str | None
) -> None:
    """A content that was removed and kept again has its copy, which somebody may be reading already."""
    running = await start_platform(S3BlobsPlugin, env=settings(s3, DATABASE_URL=database_url))
    store = store_of(running)
    again = await keep(running, b"kept again")
    stray = running.platform.settings.home / "stray"
    stray.write_bytes(b"removed elsewhere")
    store.copies.add("ab" * 32, stray, 17)

    def tell(unit: Unit) -> None:
        for sha256 in (again, "ab" * 32):
            unit.notify(REMOVED, sha256)

    await running.platform.database.write(tell)
    await eventually(lambda: not store.copies.path("ab" * 32).exists())
    assert store.copies.names() == [again]


@pytest.mark.long
class TestTwoMachines:
    async def test_what_one_stores_the_other_reads_until_it_is_gone(
        self, s3: S3Server, postgres_url: str, tmp_path: Path
    ) -> None:
        env = settings(s3, DATABASE_URL=postgres_url)
        async with platforms(tmp_path / "one") as start, platforms(tmp_path / "two") as start_second:
            one = await start("rag", HashEmbeddings, S3BlobsPlugin, env=env)
            two = await start_second("rag", HashEmbeddings, S3BlobsPlugin, env={**env, **secret_of(one)})
            ann = await somebody(one)
            base = await make_base(ann)
            document = (await upload(ann, base, "handbook.md", HANDBOOK)).json()["document_id"]
            await two.run_jobs()
            assert (await record(ann, base, document))["status"] == "completed"
            copies = [store_of(one).copies, store_of(two).copies]
            assert [len(found.names()) for found in copies] == [1, 1]
            assert (await ann.delete(path_of(base, document))).status == 200
            await eventually(lambda: not any(found.names() for found in copies))
            assert contents(s3, one.platform.blobs) == []

    async def test_a_machine_that_was_away(self, start_platform: Start, s3: S3Server) -> None:
        running = await start_platform(S3BlobsPlugin, env=settings(s3))
        store = store_of(running)
        await keep(running, b"held")
        stray = running.platform.settings.home / "stray"
        stray.write_bytes(b"removed elsewhere")
        store.copies.add("ab" * 32, stray, 17)
        await store.forget_removed()
        assert store.copies.names() == [hashlib.sha256(b"held").hexdigest()]


def secret_of(running: Running) -> dict[str, str]:
    """What machines must have alike."""
    return {"JWT_SECRET": running.platform.secrets.ensure("jwt-secret")}


def store_of(running: Running) -> S3Blobs:
    assert isinstance(running.platform.blobs, S3Blobs)
    return running.platform.blobs


class TestStarting:
    async def test_an_address_that_is_none(self, start_platform: Start, s3: S3Server) -> None:
        env = settings(s3, PLATFORM_BLOB_STORE="s3://Not_A_Bucket")
        with pytest.raises(StartupError, match=r"PLATFORM_BLOB_STORE.*expected s3://bucket"):
            await start_platform(S3BlobsPlugin, env=env)

    async def test_a_bucket_that_is_missing(self, start_platform: Start, s3: S3Server) -> None:
        env = settings(s3, PLATFORM_BLOB_STORE="s3://elsewhere/platform")
        with pytest.raises(StartupError, match="'elsewhere'"):
            await start_platform(S3BlobsPlugin, env=env)

    async def test_wrong_keys(self, start_platform: Start, s3: S3Server) -> None:
        """They stop the start, which names the settings and not the keys."""
        env = settings(s3, PLATFORM_S3_SECRET_KEY="another secret")
        with pytest.raises(StartupError, match="PLATFORM_S3_ACCESS_KEY") as caught:
            await start_platform(S3BlobsPlugin, env=env)
        assert "another secret" not in str(caught.value)

    async def test_half_of_the_keys(self, start_platform: Start, s3: S3Server) -> None:
        with pytest.raises(StartupError, match="PLATFORM_BLOB_STORE"):
            await start_platform(S3BlobsPlugin, env=settings(s3, PLATFORM_S3_SECRET_KEY=None))

    async def test_a_server_that_is_away(
        self, start_platform: Start, s3: S3Server, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with wire_to("127.0.0.1", s3.port) as wire:
            port = wire.port
        env = settings(s3, PLATFORM_S3_ENDPOINT=f"http://127.0.0.1:{port}")
        running = await start_platform(S3BlobsPlugin, env=env)
        assert "PLATFORM_S3_ENDPOINT" in caplog.text
        with pytest.raises(BlobsAway):
            await keep(running, b"refused")
        assert not list((running.platform.settings.home / "s3" / "staging").glob("*"))
        assert (await running.anonymous.get("/health")).json()["status"] == "degraded"


async def test_without_the_store_nothing_is_asked(start_platform: Start) -> None:
    running = await start_platform(S3BlobsPlugin)
    assert (await running.anonymous.get("/health")).json()["checks"]["s3"] == "not configured"
    assert not (running.platform.settings.home / "s3").exists()


class TestCopies:
    def add(self, copies: Copies, folder: Path, name: str, used_at: float | None = None) -> None:
        import os

        file = folder / "new"
        file.write_bytes(b"x" * 1000)
        copies.add(name * 32, file, 1000)
        if used_at is not None:
            os.utime(copies.path(name * 32), (used_at, used_at))

    def test_damaged_ones_are_not_used(self, tmp_path: Path) -> None:
        for damage in (b"", b"x" * 999):
            sha256 = hashlib.sha256(b"x" * 1000).hexdigest()
            file = tmp_path / "new"
            file.write_bytes(b"x" * 1000)
            Copies(tmp_path / "copies", 2500).add(sha256, file, 1000)
            again = Copies(tmp_path / "copies", 2500)
            assert again.use(sha256)
            again.path(sha256).write_bytes(damage)
            assert not Copies(tmp_path / "copies", 2500).use(sha256)
            assert again.names() == []

    def test_old_ones_give_way(self, tmp_path: Path) -> None:
        """What was not used for longest goes first; what was just used stays, whatever the limit."""
        copies = Copies(tmp_path / "copies", 2500)
        self.add(copies, tmp_path, "aa", used_at=1000)
        self.add(copies, tmp_path, "bb", used_at=2000)
        assert copies.use("aa" * 32)
        self.add(copies, tmp_path, "cc")
        assert sorted(copies.names()) == ["aa" * 32, "cc" * 32]
        self.add(copies, tmp_path, "dd")
        assert sorted(copies.names()) == ["aa" * 32, "cc" * 32, "dd" * 32]
        assert not copies.use("bb" * 32)


@pytest.mark.long
class TestBackups:
    async def test_uploads_come_back_from_the_bucket_into_files(
        self, s3: S3Server, tmp_path: Path, empty_postgres_url: str
    ) -> None:
        """Backed up out of a bucket, restored on another machine that keeps files: every byte is there."""
        place = {"PLATFORM_BACKUP_TO": str(tmp_path / "backups")}
        async with platforms(tmp_path / "one") as start:
            env = settings(s3, DATABASE_URL=empty_postgres_url, **place)
            running = await start("platform_ops", S3BlobsPlugin, env=env, migrated=False)
            await running.user("boss", role="admin")
            sha256 = await keep(running, b"an original" * 1000)
            name, _ = await back_up(running.platform, "test")
        async with platforms(tmp_path / "two") as start:
            tool = await start("platform_ops", S3BlobsPlugin, role="tool", env=place)
            await restore(tool.platform, name)
        async with platforms(tmp_path / "two") as start:
            running = await start("platform_ops", S3BlobsPlugin, env=place)
            assert (await running.platform.blobs.local(sha256)).read_bytes() == b"an original" * 1000

    async def test_a_backup_leaves_nothing_on_this_machine(
        self, start_platform: Start, s3: S3Server, tmp_path: Path
    ) -> None:
        env = settings(s3, PLATFORM_BACKUP_TO=str(tmp_path / "backups"))
        running = await start_platform("platform_ops", S3BlobsPlugin, env=env)
        brought, there = await keep(running, b"on another machine"), await keep(running, b"read here", "b")
        store = store_of(running)
        store.copies.remove(brought)
        name, _ = await back_up(running.platform, "test")
        assert store.copies.names() == [there]
        assert not list((running.platform.settings.home / "s3" / "staging").glob("*"))
        archive = await asyncio.to_thread(archives_of(running.platform).manifest, name)
        assert {blob.sha256 for blob in archive.blobs} == {brought, there}

    async def test_a_restore_can_be_taken_back(self, s3: S3Server, tmp_path: Path) -> None:
        env = settings(s3, PLATFORM_BACKUP_TO=str(tmp_path / "backups"))
        async with platforms(tmp_path / "home") as start:
            running = await start("platform_ops", S3BlobsPlugin, env=env)
            await running.user("boss", role="admin")
            first = await keep(running, b"first", "one")
            name, _ = await back_up(running.platform, "test")
            await running.platform.database.write(running.platform.blobs.release, first, "one")
            second = await keep(running, b"second", "two")
        for wanted, gone in ((first, second), (second, first)):
            async with platforms(tmp_path / "home") as start:
                tool = await start("platform_ops", S3BlobsPlugin, role="tool", env=env)
                said = await restore(tool.platform, name)
                name = said.split("platformctl backup restore ")[1].split()[0]
            async with platforms(tmp_path / "home") as start:
                running = await start("platform_ops", S3BlobsPlugin, env=env)
                store = store_of(running)
                await running.run_jobs()  # lets go of what the restore brought
                store.leave_alone = 0
                await store.sweep()
                assert [key.rpartition("/")[2] for key in contents(s3, store)] == [wanted[2:]]
                assert (await store.local(wanted)).exists() and not (await store.local(gone)).exists()

    async def test_a_restore_waits_for_the_server(self, s3: S3Server, tmp_path: Path) -> None:
        env = settings(s3, PLATFORM_BACKUP_TO=str(tmp_path / "backups"))
        async with platforms(tmp_path / "home") as start:
            running = await start("platform_ops", S3BlobsPlugin, env=env)
            await running.user("boss", role="admin")
            sha256 = await keep(running, b"first", "one")
            name, _ = await back_up(running.platform, "test")
            await running.user("newcomer")
        async with platforms(tmp_path / "home") as start:
            tool = await start("platform_ops", S3BlobsPlugin, role="tool", env=env)
            database = tool.platform.database
            job_id = await database.write(journal.ask_for, "restore", "operator", name)
            await database.write(journal.start, job_id)
            await prepare_restore(tool.platform, job_id, name)
            await database.write(order_restore, job_id, name, await folders_of(tool.platform))
            store_of(tool).copies.remove(sha256)
        async with wire_to("127.0.0.1", s3.port) as wire:
            away = {**env, "PLATFORM_S3_ENDPOINT": f"http://127.0.0.1:{wire.port}"}
        async with platforms(tmp_path / "home") as start:
            with pytest.raises(StartupError, match="interrupted"):
                await start("platform_ops", S3BlobsPlugin, env=away)
        async with platforms(tmp_path / "home") as start:
            running = await start("platform_ops", S3BlobsPlugin, env=env)
            names = await running.platform.database.read(usernames)
            assert names == ["boss"]

    async def test_no_backup_before_an_upgrade_while_the_server_is_away(
        self, s3: S3Server, tmp_path: Path
    ) -> None:
        env = settings(s3, PLATFORM_BACKUP_TO=str(tmp_path / "backups"))
        async with platforms(tmp_path / "home") as start:
            running = await start("platform_ops", S3BlobsPlugin, env=env)
            await running.user("boss", role="admin")
            store_of(running).copies.remove(await keep(running, b"first", "one"))
            await running.platform.database.write(step_back)
        async with wire_to("127.0.0.1", s3.port) as wire:
            away = {**env, "PLATFORM_S3_ENDPOINT": f"http://127.0.0.1:{wire.port}"}
        async with platforms(tmp_path / "home") as start:
            with pytest.raises(StartupError, match="PLATFORM_BACKUP_BEFORE_UPGRADE"):
                await start("platform_ops", S3BlobsPlugin, env=away)
        async with platforms(tmp_path / "home") as start:  # a database without an identity takes the marker's
            running = await start("platform_ops", S3BlobsPlugin, env=env)
            assert await store_of(running).sweep() == 0


def usernames(session: Session) -> list[str]:
    return sorted(session.scalars(text("SELECT username FROM kernel_account")))


def step_back(unit: Unit) -> None:
    """The database of a release in which the plugin had no table."""
    unit.session.execute(text("DROP TABLE s3_blobs_identity"))
    unit.session.execute(text("DROP TABLE s3_blobs_alembic_version"))


class TestOnePrefixOneDatabase:
    async def test_another_database_is_refused_and_removes_nothing(
        self, s3: S3Server, tmp_path: Path
    ) -> None:
        env = settings(s3)
        async with platforms(tmp_path / "one") as start:
            running = await start(S3BlobsPlugin, env=env)
            sha256 = await keep(running, b"production's")
            before = s3.keys(prefix_of(running.platform.blobs))
        for _ in range(2):
            async with platforms(tmp_path / "two") as start:
                with pytest.raises(StartupError, match=r"PLATFORM_BLOB_STORE.*DATABASE_URL"):
                    await start(S3BlobsPlugin, env=env)
        async with platforms(tmp_path / "one") as start:
            running = await start(S3BlobsPlugin, env=env)
            store = store_of(running)
            store.leave_alone = 0
            assert await store.sweep() == 0
            assert s3.keys(prefix_of(store)) == before
            assert (await store.local(sha256)).read_bytes() == b"production's"

    async def test_other_objects_without_a_marker(self, s3: S3Server, tmp_path: Path) -> None:
        """Uploads of nobody known are not taken either; whoever has rows of them takes the prefix again."""
        env = settings(s3)
        async with platforms(tmp_path / "one") as start:
            running = await start(S3BlobsPlugin, env=env)
            await keep(running, b"production's")
            prefix = prefix_of(running.platform.blobs)
        client_of(s3.url).delete_object(Bucket=BUCKET, Key=f"{prefix}{MARKER}")
        async with platforms(tmp_path / "two") as start:
            with pytest.raises(StartupError, match="another database"):
                await start(S3BlobsPlugin, env=env)
        assert f"{prefix}{MARKER}" not in s3.keys(prefix)
        async with platforms(tmp_path / "one") as start:
            await start(S3BlobsPlugin, env=env)
        assert f"{prefix}{MARKER}" in s3.keys(prefix)

    async def test_found_out_when_the_server_is_back(self, s3: S3Server, tmp_path: Path) -> None:
        """A platform that started without the server removes and uploads nothing before it has looked."""
        env = settings(s3)
        async with platforms(tmp_path / "one") as start:
            running = await start(S3BlobsPlugin, env=env)
            await keep(running, b"production's")
            before = s3.keys(prefix_of(running.platform.blobs))
        async with wire_to("127.0.0.1", s3.port) as wire, platforms(tmp_path / "two") as start:
            away = {**env, "PLATFORM_S3_ENDPOINT": f"http://127.0.0.1:{wire.port}"}
            await wire.drop()
            running = await start(S3BlobsPlugin, env=away)
            wire.restore()
            store = store_of(running)
            store.leave_alone = 0

            async def refused() -> bool:
                with pytest.raises(BlobsAway) as caught:
                    await store.sweep()
                return caught.value.refused

            await eventually(refused)
            with pytest.raises(BlobsAway):
                await keep(running, b"staging's")
            assert s3.keys(prefix_of(store)) == before


async def test_doctor_looks_into_the_bucket(start_platform: Start, s3: S3Server) -> None:
    async with wire_to("127.0.0.1", s3.port) as wire:
        env = settings(s3, PLATFORM_S3_ENDPOINT=f"http://127.0.0.1:{wire.port}")
        running = await start_platform(S3BlobsPlugin, env=env)
        sha256 = await keep(running, b"kept")
        store = store_of(running)
        found = await check_files(running.platform)
        assert (found.status, found.text[:2], str(store.bucket.place) in found.text) == ("ok", "1 ", True)
        key = f"{prefix_of(store)}{sha256[:2]}/{sha256[2:]}"
        client_of(s3.url).delete_object(Bucket=BUCKET, Key=key)
        found = await check_files(running.platform)
        assert (found.status, sha256[:12] in found.text) == ("failed", True)
        await wire.cut()
        found = await check_files(running.platform)
        assert found.status == "failed"
