"""A backup before an upgrade, and only where there is something to lose."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import text

from builtin_plugins.platform_ops.backup.service import archives_of
from kernel.sdk import Unit
from kernel.testing import platforms


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
        assert "before the upgrade to access_tokens" in manifest.reason
        assert "access_tokens" not in manifest.revisions
