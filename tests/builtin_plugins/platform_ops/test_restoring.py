"""Restoring an archive: what comes back, on either database, and what is left alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import Field
from sqlalchemy import text

from builtin_plugins.platform_ops.backup.operator import restore
from kernel.sdk import Plugin, Settings, hookimpl
from kernel.testing import Actor, Running, Start, audited, platforms
from tests.builtin_plugins.platform_ops.conftest import PLUGINS, Shop


def address(kind: str, request: pytest.FixtureRequest, fixture: str = "postgres_url") -> str | None:
    """None for SQLite, else the address of a database."""
    return None if kind == "sqlite" else request.getfixturevalue(fixture)


async def some_bytes(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def upload(running: Running, content: bytes) -> str:
    platform = running.platform
    staged = await platform.blobs.stage(some_bytes(content), 1_000_000)
    await platform.database.write(platform.blobs.keep, staged, "test")
    return staged.sha256


async def usernames(running: Running) -> set[str]:
    query = text("SELECT username FROM kernel_account")
    return set(await running.platform.database.read(lambda session: list(session.scalars(query))))


class ScalesSettings(Settings):
    """Numbers that SQLite stores as numbers, even in a column of JSON."""

    env_prefix: ClassVar[str] = "SCALES_"
    configurable: ClassVar[frozenset[str]] = frozenset({"count", "step", "share", "label"})

    count: int = Field(1, description="How many.")
    step: float = Field(0.5, description="How far.")
    share: float = Field(0.5, description="How much.")
    label: str = Field("", description="What to call them.")


class Scales(Plugin):
    """Has settings that can be changed while it runs."""

    name = "scales"
    version = "1.0.0"

    @hookimpl
    def register_settings(self) -> type[Settings]:
        return ScalesSettings


WITH_SCALES = (*PLUGINS, "plugin_registry", Scales)


@pytest.mark.long
@pytest.mark.parametrize(("before", "after"), [("sqlite", "postgresql"), ("postgresql", "sqlite")])
async def test_everything_comes_back(
    before: str, after: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Accounts, files, audit log, settings and manifests come back on the other database; what came later
    is gone. Whole and fractional numbers of a plugin's configuration are as they were.
    """
    given = {"SCALES_COUNT": 7, "SCALES_STEP": 2.0, "SCALES_SHARE": 0.1 + 0.2, "SCALES_LABEL": "12"}
    store = {
        "PLATFORM_BACKUP_TO": str(tmp_path / "store"),
        "PLATFORM_BACKUP_PASSPHRASE": "twelve words or so",
    }
    first_url = address(before, request)
    async with platforms(tmp_path / "first") as start:
        running = await start(*WITH_SCALES, env={**store, "DATABASE_URL": first_url}, migrated=False)
        old = Shop(running, await running.user("boss", role="admin"))
        put = await old.admin.put("/v1/plugins/scales/config", json=given)
        assert put.status == 200, put.body
        digest = await upload(old.running, b"an original" * 1000)
        (tmp_path / "first" / "manifests").mkdir(exist_ok=True)
        (tmp_path / "first" / "manifests" / "note.txt").write_text("kept")
        await old.running.user("ann")
        team = await old.admin.post("/v1/teams", json={"name": "Crew"})
        assert team.status == 201
        name = await old.back_up()
        log_before = [entry.action for entry in await audited(old.running)]
        await old.running.user("late")
    second_url = None if after == "sqlite" else request.getfixturevalue("empty_postgres_url")
    home, env = tmp_path / "second", {**store, "DATABASE_URL": second_url}
    async with platforms(home) as start:
        tool = await start(*WITH_SCALES, role="tool", env=env, migrated=False)
        said = await restore(tool.platform, name)
        assert "backed up" in said
    async with platforms(home) as start:
        running = await start(*WITH_SCALES, env=env)
        assert {"boss", "ann"} <= await usernames(running)
        assert "late" not in await usernames(running)
        assert (await running.platform.blobs.local(digest)).read_bytes() == b"an original" * 1000
        assert (home / "manifests" / "note.txt").read_text() == "kept"
        admin = await running.sign_in("boss", old.admin.password)
        assert (await admin.get("/v1/plugins/scales/config")).json()["values"] == given
        assert [team["name"] for team in (await admin.get("/v1/teams")).json()["items"]] == ["Crew"]
        actions = [entry.action for entry in await audited(running)]
        assert actions[: len(log_before) - 1] == log_before[: len(log_before) - 1]
        # New rows get numbers that no row had before.
        await running.user("newcomer")


async def opened(start: Start, env: dict[str, str | None]) -> tuple[Running, object]:
    running = await start(*PLUGINS, env=env)
    return running, await running.user("boss", role="admin")


@pytest.mark.long
async def test_restore_by_the_api(database_url: str | None, tmp_path: Path) -> None:
    """It replaces nothing until the platform starts again, keeps the journal, and can be taken back."""
    env = {"DATABASE_URL": database_url}
    async with platforms(tmp_path / "home") as start:
        shop = Shop(*await opened(start, env))
        name = await shop.back_up()
        late = await shop.running.user("late")
        started = await shop.order_restore(name)
        job = await shop.job(started)
        assert (job["status"], job["archive"]) == ("running", name)
        assert (await late.get("/v1/jobs")).status == 200
    async with platforms(tmp_path / "home") as start:
        running = await start(*PLUGINS, env=env)
        assert "late" not in await usernames(running)
        shop = Shop(running, await running.sign_in("boss", shop.admin.password))
        job = await shop.job(started)
        assert job["status"] == "done", job
        before = job["output"].split("platformctl backup restore ")[1].split()[0]
        await shop.order_restore(before)
    async with platforms(tmp_path / "home") as start:
        running = await start(*PLUGINS, env=env)
        assert "late" in await usernames(running)


@pytest.mark.long
async def test_no_session_outlives_a_restore(database_url: str | None, tmp_path: Path) -> None:
    """One that was ended since the backup stays ended, and none is taken for an account that came later."""
    env = {"DATABASE_URL": database_url}
    async with platforms(tmp_path) as start:
        shop = Shop(*await opened(start, env))
        ann = await shop.running.user("ann")
        name = await shop.back_up()
        assert (await ann.post("/v1/auth/logout")).status == 204
        assert (await ann.get("/v1/teams")).status == 401
        late = await shop.running.user("late")
        started = await shop.order_restore(name)
    async with platforms(tmp_path) as start:
        running = await start(*PLUGINS, env=env)
        newcomer = await running.user("newcomer")
        assert newcomer.user["id"] > late.user["id"]
        for before in (ann, late, shop.admin):
            old = Actor(running, before.token)
            assert (await old.get("/v1/teams")).status == 401
            assert (await old.post("/v1/auth/refresh")).status == 401
        admin = await running.sign_in("boss", shop.admin.password)
        job = (await admin.get(f"/v1/backups/jobs/{started.json()['id']}")).json()
        assert "sign in again" in job["output"] and "access tokens" in job["output"]
