"""Making an archive: what is in it, what it shares, what is left out, and what it does to writers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from builtin_plugins.platform_ops.backup.creating import create
from builtin_plugins.platform_ops.backup.diagnostics import check_backups, find_newest
from builtin_plugins.platform_ops.backup.service import back_up, source_of
from kernel.jobs.schedules import Scheduler
from kernel.sdk import PLUGIN_STATES, Plugin, Unit, hookimpl, utc_now
from kernel.testing import Start
from tests.builtin_plugins.platform_ops.conftest import Open, Shop
from tests.builtin_plugins.platform_ops.test_restoring import upload


async def test_hook_find_sample_answers_and_find_backup_folders(
    start_platform: Start, tmp_path: Path
) -> None:
    """Answers and folders of plugins are in the archive, by their names."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one.txt").write_text("one")

    class Oracle(Plugin):
        name = "oracle"

        @hookimpl
        def find_sample_answers(self, platform: Any) -> Mapping[str, str]:
            return {"the answer": "42"}

        @hookimpl
        def find_backup_folders(self, platform: Any) -> Mapping[str, Path]:
            return {"notes": tmp_path / "notes"}

    running = await start_platform("platform_ops", Oracle)
    _, manifest = await back_up(running.platform, "test")
    assert [(item.question, item.answer) for item in manifest.answers] == [("the answer", "42")]
    assert [(file.folder, file.path, file.size) for file in manifest.files] == [("notes", "one.txt", 3)]


async def test_second_archive_shares_with_the_first(open_shop: Open) -> None:
    """An archive of the same state writes next to nothing; its size counts what it shares."""
    shop: Shop = await open_shop()
    rows = [{"n": f"a{n}", "v": "x" * 400 + str(n)} for n in range(4000)]

    def fill(unit: Unit) -> None:
        unit.session.execute(text("CREATE TABLE platform_ops_sample (n TEXT PRIMARY KEY, v TEXT)"))
        unit.session.execute(text("INSERT INTO platform_ops_sample VALUES (:n, :v)"), rows)

    await shop.running.platform.database.write(fill)
    first, again = shop.archives, shop.archives
    source = await source_of(shop.running.platform)
    await create(source, first, "first")
    await create(source, again, "second")
    assert again.objects.written < first.objects.written / 5
    listed = (await shop.admin.get("/v1/backups")).json()["archives"]
    assert [one["name"] for one in listed] == sorted((one["name"] for one in listed), reverse=True)
    assert listed[0]["size_bytes"] > first.objects.written / 2


async def test_by_the_clock(open_shop: Open) -> None:
    shop: Shop = await open_shop(env={"PLATFORM_BACKUP_SCHEDULE": "@daily"})
    scheduler, now = Scheduler(shop.running.platform), utc_now()
    await scheduler.turn(now)
    await shop.running.run_jobs()
    assert shop.archives.entries() == []
    await scheduler.turn(now + timedelta(days=1))
    await shop.running.run_jobs()
    assert len(shop.archives.entries()) == 1


async def test_by_the_clock_while_the_storage_is_away(start_platform: Start) -> None:
    """A scheduled backup is retried for minutes, and then is one failure in the history, with its reason."""
    env = {"PLATFORM_BACKUP_SCHEDULE": "@daily", "PLATFORM_BACKUP_TO": "s3://no bucket/platform"}
    running = await start_platform("platform_ops", env=env)
    admin = await running.user("boss", role="admin")
    scheduler, now = Scheduler(running.platform), utc_now()
    await scheduler.turn(now)
    await scheduler.turn(now + timedelta(days=1))
    await running.run_jobs()
    (told,) = (await admin.get("/v1/backups/jobs")).json()["jobs"]
    assert (told["status"], told["requested_by"]) == ("error", "schedule")
    assert "Invalid bucket name" in told["error"] and "after 11 attempts" in told["error"]


async def test_keeps_the_newest(open_shop: Open) -> None:
    """Older archives go, and with them what no other one needs; what is left is complete."""
    shop: Shop = await open_shop(env={"PLATFORM_BACKUP_KEEP": "2"})
    names = [await shop.back_up() for _ in range(3)]
    archives = shop.archives
    assert [entry.name for entry in archives.entries()] == [names[2], names[1]]
    needed = {piece for name in names[1:] for piece in archives.verify(name).pieces()}
    stored = {entry.name for entry in archives.place.entries("objects")}
    assert len(stored) == len(needed)


async def test_a_wrong_clock_pushes_out_no_good_backup(open_shop: Open) -> None:
    """Archives that a clock in the future named are old once others follow; the newest name is the newest."""
    shop: Shop = await open_shop(env={"PLATFORM_BACKUP_KEEP": "2"})
    archives = shop.archives
    earlier = archives.place.read(await shop.back_up(), 2**20)
    for named in ("20990101-000000", "20991231-235959"):
        archives.place.write(f"platform-{named}.tar.gz", earlier)
    made = [await shop.back_up() for _ in range(3)]
    assert [entry.name for entry in archives.entries()] == [made[2], made[1]]
    assert archives.newest() == made[2] == "platform-21000101-000002.tar.gz"


async def test_secrets_are_sealed_or_left_out(open_shop: Open, tmp_path: Path) -> None:
    """No secret stands in any stored byte; without a key the archive says what it lacks."""
    key = tmp_path / "key"
    key.write_bytes(b"k" * 64)
    shop: Shop = await open_shop(env={"PLATFORM_BACKUP_KEY_FILE": str(key)})
    shop.running.platform.secrets.set("deploy", "the-secret-of-deploy")
    name = await shop.back_up()
    manifest = shop.archives.manifest(name)
    assert manifest.without == []
    assert b"the-secret" not in manifest.model_dump_json().encode()
    assert shop.archives.sealer is not None and manifest.sealed is not None
    opened = shop.archives.sealer.open(manifest.sealed, manifest.about())
    assert opened["secrets"]["deploy"] == "the-secret-of-deploy"
    other: Shop = await open_shop(home=tmp_path / "other")
    assert other.archives.manifest(await other.back_up()).without == ["secrets", "config.yaml"]


async def test_no_write_waits(database_url: str | None, open_shop: Open) -> None:
    """While an archive is made, no write takes longer than 100 ms over its usual time."""
    shop: Shop = await open_shop(env={"DATABASE_URL": database_url})
    database = shop.running.platform.database

    def fill(unit: Unit) -> None:
        unit.session.execute(text("CREATE TABLE platform_ops_sample (n INTEGER PRIMARY KEY, v TEXT)"))
        rows = [{"n": n, "v": "x" * 500 + str(n)} for n in range(20_000)]
        unit.session.execute(text("INSERT INTO platform_ops_sample VALUES (:n, :v)"), rows)

    def touch(unit: Unit) -> None:
        unit.session.execute(text("UPDATE platform_ops_sample SET v = 'y' WHERE n = 1"))

    await database.write(fill)
    source = await source_of(shop.running.platform)
    usual = max([await timed(database.write(touch)) for _ in range(20)])
    making = asyncio.create_task(create(source, shop.archives, "test"))
    waits = []
    while not making.done():
        waits.append(await timed(database.write(touch)))
    await making
    assert len(waits) > 5
    # The machine of the tests does other things, too: the largest waits say more of it than of us.
    assert sorted(waits)[int(len(waits) * 0.98)] < usual + 0.1, (usual, sorted(waits)[-5:])


async def timed(work: Any) -> float:
    started = time.monotonic()
    await work
    return time.monotonic() - started


async def test_a_start_tells_of_wrong_settings(
    start_platform: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Who makes scheduled backups says at its start that none can be made, and everything else works."""
    (tmp_path / "file").write_text("not a folder")
    for name, value in (
        ("PLATFORM_BACKUP_TO", tmp_path / "file" / "backups"),
        ("PLATFORM_BACKUP_TO", tmp_path / ("x" * 300)),  # as without the right to look into a folder: OSError
        ("PLATFORM_BACKUP_TO", "~nobody-here/backups"),
        ("PLATFORM_BACKUP_KEY_FILE", tmp_path / "gone"),
    ):
        caplog.clear()
        running = await start_platform("platform_ops", env={name: str(value)}, role="worker")
        assert [record.name for record in caplog.records] == ["platform_ops.backup"]
        assert running.platform.resource(PLUGIN_STATES).is_loaded("platform_ops")


async def test_a_damaged_file_stops_no_backup(open_shop: Open) -> None:
    """The rest is archived, and the archive lists what is missing; the job says so and has failed."""
    shop: Shop = await open_shop()
    platform = shop.running.platform
    digests = [await upload(shop.running, f"file {number}".encode()) for number in range(3)]
    damaged, gone, sound = digests
    (await platform.blobs.local(damaged)).write_bytes(b"something else")
    (await platform.blobs.local(gone)).unlink()
    for _ in range(2):
        started = await shop.admin.post("/v1/backups")
        await shop.running.run_jobs()
        job = await shop.job(started)
        assert job["status"] == "error" and damaged[:12] in job["error"]
        manifest = shop.archives.verify(job["archive"])
        assert manifest.missing == sorted([damaged, gone])
        assert sound in [content.sha256 for content in manifest.blobs]
    [finding] = [one async for one in find_newest(platform)]
    assert finding.text == job["archive"]


async def test_a_damaged_archive_is_not_the_newest(open_shop: Open) -> None:
    """One that was cut off, or lacks pieces, is none: for `status`, `doctor` and in metrics."""
    shop: Shop = await open_shop()
    platform = shop.running.platform
    first = await shop.back_up()
    await shop.running.user()
    second = await shop.back_up()
    folder = platform.settings.home / "backups"
    file = folder / second
    whole = file.read_bytes()
    for broken in (whole[: len(whole) // 2], b""):
        file.write_bytes(broken)
        [finding] = [one async for one in find_newest(platform)]
        assert finding.text == first
        [finding] = [one async for one in check_backups(platform)]
        assert finding.status == "warning" and second in finding.text
    metrics = (await shop.running.anonymous.get("/metrics")).body.decode()
    made = next(e for e in shop.archives.entries() if e.name == first).modified_at.timestamp()
    line = next(x for x in metrics.splitlines() if x.startswith("backup_newest_timestamp_seconds"))
    assert float(line.split()[-1]) == pytest.approx(made)
