"""A backup before an upgrade, and only where there is something to lose."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from builtin_plugins.platform_ops.backup.operator import restore
from builtin_plugins.platform_ops.backup.service import archives_of, back_up
from kernel.plugins.loading import Candidate
from kernel.sdk import StartupError, Unit
from kernel.sdk.storage import SCHEMA
from kernel.testing import platforms
from tests.fakes.earlier_release import PASSWORD, make_earlier_release


def step_back(unit: Unit) -> None:
    """What an earlier release had: no revision of the newest migration."""
    unit.session.execute(text("DROP TABLE access_tokens_token"))
    unit.session.execute(text("DROP TABLE access_tokens_alembic_version"))


async def test_backup_before_migrations(database_url: str | None, tmp_path: Path) -> None:
    """A start with migrations to run makes an archive of what was; a fresh database needs none."""
    env = {"DATABASE_URL": database_url}
    plugins = ("platform_ops", "access_tokens")
    async with platforms(tmp_path / "home") as start:
        running = await start(*plugins, env=env, migrated=False)
        assert archives_of(running.platform).entries() == []
        await running.user("ann")
        await running.platform.database.write(step_back)
    async with platforms(tmp_path / "home") as start:
        running = await start(*plugins, env=env)
        archives = archives_of(running.platform)
        (entry,) = archives.entries()
        manifest = archives.verify(entry.name)
        assert "access_tokens" in manifest.reason
        assert "access_tokens" not in manifest.revisions


async def test_wrong_setting_stops_an_upgrade(database_url: str | None, tmp_path: Path) -> None:
    """A plugin out of service makes no backup, so nothing is migrated until its setting is corrected."""
    env, wrong = {"DATABASE_URL": database_url}, {"PLATFORM_BACKUP_SCHEDULE": "nightly"}
    plugins = ("platform_ops", "access_tokens")
    async with platforms(tmp_path / "home") as start:
        running = await start(*plugins, env=env, migrated=False)
        await running.user("ann")
    async with platforms(tmp_path / "home") as start:
        running = await start(*plugins, env={**env, **wrong})
        await running.platform.database.write(step_back)
    async with platforms(tmp_path / "home") as start:
        with pytest.raises(StartupError, match=r"platform_ops.*PLATFORM_BACKUP_SCHEDULE"):
            await start(*plugins, env={**env, **wrong})
    async with platforms(tmp_path / "home") as start:
        running = await start(*plugins, env=env)
        (entry,) = archives_of(running.platform).entries()
        assert "access_tokens" in archives_of(running.platform).manifest(entry.name).reason


async def test_a_plugin_that_cannot_be_imported_stops_an_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A built-in plugin whose package is incomplete may be the one that makes backups: nothing is migrated
    until it can be imported, or the operator turns it off.
    """
    plugins = ("platform_ops", "access_tokens")
    async with platforms(tmp_path / "home") as start:
        running = await start(*plugins, migrated=False)
        await running.user("ann")
        await running.platform.database.write(step_back)
    with monkeypatch.context() as broken:
        broken.setitem(sys.modules, "builtin_plugins.platform_ops.plugin", None)
        async with platforms(tmp_path / "home") as start:
            with pytest.raises(StartupError, match=r"'platform_ops'.*_PLUGINS_DISABLED"):
                await start(*plugins)
            running = await start(*plugins, env={"PLATFORM_PLUGINS_DISABLED": "platform_ops"})
            assert running.platform.resource(SCHEMA).pending == []


async def test_a_stranger_that_cannot_be_imported_stops_no_upgrade(tmp_path: Path) -> None:
    """Plugins that were added to the platform may break with a new version, which must start all the same."""

    def load() -> None:
        raise ImportError("cannot import name 'Gone' from 'kernel.sdk'")

    async with platforms(tmp_path / "home") as start:
        running = await start("platform_ops", "access_tokens", migrated=False)
        await running.user("ann")
        await running.platform.database.write(step_back)
    async with platforms(tmp_path / "home") as start:
        running = await start("platform_ops", "access_tokens", Candidate("acme", load, distribution="acme"))
        assert running.platform.resource(SCHEMA).pending == []


def make_migration_fail(unit: Unit) -> None:
    """Its first migration is to run again, and finds the table that it makes."""
    unit.session.execute(text("DROP TABLE access_tokens_alembic_version"))


async def test_an_upgrade_that_fails_again_pushes_out_no_backups(
    database_url: str | None, tmp_path: Path
) -> None:
    """Each start tries a failed migration again; its archive takes the place of the one of the try before."""
    env = {"DATABASE_URL": database_url, "PLATFORM_BACKUP_KEEP": "2"}
    plugins = ("platform_ops", "access_tokens")
    async with platforms(tmp_path / "home") as start:
        running = await start(*plugins, env=env, migrated=False)
        await running.user("ann")
        await back_up(running.platform, "good")
        await running.platform.database.write(make_migration_fail)
    for _ in range(3):
        async with platforms(tmp_path / "home") as start:
            running = await start(*plugins, env=env)
            archives = archives_of(running.platform)
            entries = archives.entries()
            reasons = [archives.verify(entry.name).reason for entry in entries]
            assert (len(reasons), reasons[-1]) == (2, "good")
            assert "access_tokens" in reasons[0]


async def test_an_earlier_release_comes_back(
    database_url: str | None, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The first release's database is backed up by the start that upgrades it. That backup restores into this
    version, on SQLite and PostgreSQL, and people sign in with the passwords that they had.
    """
    store = {"PLATFORM_BACKUP_TO": str(tmp_path / "store")}
    await make_earlier_release(tmp_path / "first", database_url, ann="admin", bob="user")
    async with platforms(tmp_path / "first") as start:
        env = {**store, "DATABASE_URL": database_url}
        running = await start("platform_ops", env=env, migrated=False)
        archives = archives_of(running.platform)
        (entry,) = archives.entries()
        assert archives.verify(entry.name).revisions == {"kernel": "0100"}
    for home, url in (("lite", None), ("post", request.getfixturevalue("empty_postgres_url"))):
        env = {**store, "DATABASE_URL": url}
        async with platforms(tmp_path / home) as start:
            tool = await start("platform_ops", role="tool", env=env, migrated=False)
            await restore(tool.platform, entry.name)
        async with platforms(tmp_path / home) as start:
            running = await start("platform_ops", env=env, migrated=False)
            ann = await running.sign_in("ann", PASSWORD)
            assert (await ann.get("/v1/backups")).status == 200
            await running.sign_in("bob", PASSWORD)
            await running.user("newcomer")
