"""Rehearsing a restore over HTTP: a worker restores a backup into a temporary instance, and compares."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import audited, platforms
from tests.builtin_plugins.platform_ops.conftest import PLUGINS, Open, Shop
from tests.fakes.processes import without_plugins

LEAN = without_plugins(*PLUGINS)
"""The temporary instance loads as few plugins as the platform."""


async def drilled(shop: Shop, name: str) -> dict[str, Any]:
    started = await shop.admin.post(f"/v1/backups/{name}/drill")
    assert started.status == 202, started.body
    job = started.json()
    assert (job["action"], job["archive"], job["status"]) == ("drill", name, "pending")
    await shop.running.run_jobs()
    return await shop.job(started)


@pytest.mark.long
async def test_a_drill_compares_and_changes_nothing(open_shop: Open, platform_home: Path) -> None:
    """It says what was the same; the temporary instance is gone, and what is in service stays."""
    shop = await open_shop(env=LEAN)
    name = await shop.back_up()
    late = await shop.running.user()
    job = await drilled(shop, name)
    assert job["status"] == "done", job
    assert name in job["output"]
    assert list((platform_home / "drills").iterdir()) == []
    assert (await late.get("/v1/auth/capabilities")).status == 200
    assert [one["action"] for one in (await shop.admin.get("/v1/backups/jobs")).json()["jobs"]] == [
        "drill",
        "backup",
    ]


@pytest.mark.long
async def test_one_drill_of_a_backup_at_a_time(open_shop: Open) -> None:
    """A second request while one waits is refused; who asked is in the audit log."""
    shop = await open_shop(env=LEAN)
    name = await shop.back_up()
    answers = await asyncio.gather(*(shop.admin.post(f"/v1/backups/{name}/drill") for _ in range(3)))
    assert sorted(answer.status for answer in answers) == [202, 409, 409]
    assert {answer.json()["code"] for answer in answers if answer.status == 409} == {"drill_under_way"}
    assert [entry.target_id for entry in await audited(shop.running, "backup.drill_requested")] == [name]
    await shop.running.run_jobs()
    assert (await shop.admin.post(f"/v1/backups/{name}/drill")).status == 202


async def test_a_drill_finds_damage(open_shop: Open, platform_home: Path) -> None:
    """A backup that can't be restored fails it, with the reason; an unknown one is not found."""
    shop = await open_shop(env=LEAN)
    name = await shop.back_up()
    for piece in (platform_home / "backups" / "objects").rglob("*"):
        if piece.is_file():
            piece.write_bytes(piece.read_bytes()[:-1])
    job = await drilled(shop, name)
    assert (job["status"], "damaged" in job["error"]) == ("error", True), job
    assert "Traceback" not in job["error"]
    assert list((platform_home / "drills").iterdir()) == []
    missing = await shop.admin.post("/v1/backups/platform-20200101-000000.tar.gz/drill")
    assert (missing.status, missing.json()["code"]) == (404, "backup_not_found")


async def test_the_instance_of_a_killed_worker_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "home" / "drills" / ("0" * 32)
    left.mkdir(parents=True)
    (left / "platform.db").write_bytes(b"a copy of everything")
    async with platforms(tmp_path / "home") as start:
        await start(*PLUGINS)
        assert not left.exists()
