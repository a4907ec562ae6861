"""What restores leave behind that did not happen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from builtin_plugins.platform_ops.backup import journal
from kernel.sdk import Unit
from kernel.sdk.storage import held_blobs_of
from kernel.testing import Running, platforms
from tests.builtin_plugins.platform_ops.conftest import PLUGINS, Shop


async def bytes_of_a_file() -> AsyncIterator[bytes]:
    yield b"an original"


async def held_contents(running: Running) -> list[str]:
    return list(await running.platform.database.read(held_blobs_of, "restore:"))


@pytest.mark.long
async def test_a_restore_that_fails_at_the_start_lets_go(database_url: str | None, tmp_path: Path) -> None:
    """The rows stay, the job has the reason, and the archive's files are released."""
    env = {"DATABASE_URL": database_url}
    async with platforms(tmp_path / "home") as start:
        running = await start(*PLUGINS, env=env)
        shop = Shop(running, await running.user("boss", role="admin"))
        staged = await running.platform.blobs.stage(bytes_of_a_file(), 1000)
        await running.platform.database.write(running.platform.blobs.keep, staged, "test")
        name = await shop.back_up()
        started = await shop.order_restore(name)
        assert len(await held_contents(running)) == 1
        await running.user("late")
        (tmp_path / "home" / "backups" / name).write_bytes(b"damaged")
    async with platforms(tmp_path / "home") as start:
        running = await start(*PLUGINS, env=env)
        shop = Shop(running, await running.sign_in("boss", shop.admin.password))
        job = await shop.job(started)
        assert (job["status"], "damaged" in job["error"] or name in job["error"]) == ("error", True), job
        await running.run_jobs()
        assert await held_contents(running) == []
        assert (await running.platform.blobs.local(staged.sha256)).read_bytes() == b"an original"


async def test_a_killed_command_is_closed(tmp_path: Path) -> None:
    """The next start closes the restore of a command that was killed."""

    def begin(unit: Unit) -> str:
        job_id = journal.ask_for(unit, "restore", "operator", "platform-20260131-030000.tar.gz")
        journal.start(unit, job_id)
        return job_id

    async with platforms(tmp_path / "home") as start:
        running = await start(*PLUGINS)
        job_id = await running.platform.database.write(begin)
    async with platforms(tmp_path / "home") as start:
        running = await start(*PLUGINS)
        job = await running.platform.database.read(journal.find, job_id)
        assert (job.status, bool(job.error)) == ("error", True)
