"""A disk that fills up while a backup is made: nothing half made stays, and the backup follows by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from kernel.sdk import Unit
from kernel.testing import environment, eventually, migrated_home
from tests.builtin_plugins.platform_ops.conftest import Open, Shop
from tests.fakes.processes import platformctl
from tests.fakes.small_disk import SmallDisk, small_disk

ROWS = 6000
SPACE = {"PLATFORM_MIN_FREE_DISK_MB": "1"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 20) as small:
        yield small


def _fill(unit: Unit) -> None:
    unit.session.execute(text("CREATE TABLE platform_ops_sample (n INTEGER PRIMARY KEY, v TEXT)"))
    rows = [
        {"n": n, "v": "".join(f"{(n * 7919 + k * 104729) % 65521:x}" for k in range(60))} for n in range(ROWS)
    ]
    unit.session.execute(text("INSERT INTO platform_ops_sample VALUES (:n, :v)"), rows)


@pytest.mark.long
async def test_a_backup_outlives_a_full_disk(
    open_shop: Open, disk: SmallDisk, database_url: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """It says what it waits for, requests and earlier backups are as before, and with room it is made."""
    env = {"DATABASE_URL": database_url, "PLATFORM_BACKUP_TO": str(disk.folder / "backups")}
    shop: Shop = await open_shop(env=env)
    first = await shop.back_up()
    await shop.running.platform.database.write(_fill)
    disk.fill()
    started = await shop.admin.post("/v1/backups")
    assert started.status == 202, started.body
    working = asyncio.create_task(shop.running.run_jobs())
    await eventually(lambda: "disk is full" in caplog.text)
    assert (await shop.job(started))["status"] == "running"
    assert [one["name"] for one in (await shop.admin.get("/v1/backups")).json()["archives"]] == [first]
    shop.archives.verify(first)
    assert (await shop.running.user()).token
    disk.relieve()
    async with asyncio.timeout(60):
        await working
    done = await shop.job(started)
    assert done["status"] == "done", done
    rows = sum(table.rows for owner in shop.archives.verify(done["archive"]).owners for table in owner.tables)
    assert rows >= ROWS
    assert not list((disk.folder / "backups").rglob(".new-*"))


async def test_a_home_without_room(
    open_shop: Open, disk: SmallDisk, caplog: pytest.LogCaptureFixture
) -> None:
    """With database and backups on the full disk the same holds; what is stored can be read meanwhile."""
    shop: Shop = await open_shop(home=disk.folder / "home", env=SPACE)
    await shop.running.platform.database.write(_fill)
    started = await shop.admin.post("/v1/backups")
    disk.fill()
    working = asyncio.create_task(shop.running.run_jobs())
    await eventually(lambda: "disk is full" in caplog.text or "could not save the state" in caplog.text)
    assert (await shop.admin.get("/v1/backups")).json()["archives"] == []
    disk.relieve()
    async with asyncio.timeout(60):
        await working
    assert (await shop.job(started))["status"] == "done"


def test_the_command_says_so(disk: SmallDisk, tmp_path: Path) -> None:
    """`platformctl backup create` ends with the reason; with room it works."""
    env = environment(tmp_path / "home", {"PLATFORM_BACKUP_TO": str(disk.folder / "backups")})

    migrated_home(Path(env["PLATFORM_HOME"]))
    disk.fill()
    refused = platformctl("backup", "create", env=env)
    assert refused.returncode == 1
    assert "disk" in refused.stderr + refused.stdout
    assert "Traceback" not in refused.stderr
    disk.relieve()
    made = platformctl("backup", "create", env=env)
    assert made.returncode == 0, made.stderr
    assert platformctl("backup", "verify", env=env).returncode == 0
