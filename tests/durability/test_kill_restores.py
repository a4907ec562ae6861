"""Restores whose process is killed: the old state or the new, never between."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.durability.test_kill_backups import ACCOUNTS, PLUGINS, Home, home
from tests.durability.test_kills import Server

__all__ = ["home"]
pytestmark = pytest.mark.durability


@pytest.mark.long
async def test_killed_restores_are_whole_or_nothing(home: Home, request: pytest.FixtureRequest) -> None:
    """After each kill the rows are all old or all new; the next start goes on or cleans up."""
    chance = random.Random(11)
    await home.run("backup", "create")
    archive = await home.newest()
    new = home.state()
    old = (new[0] - ACCOUNTS // 2, new[1])
    half = f"DELETE FROM kernel_account WHERE username LIKE 'copy-%' AND id % 2 = {home.rows(_ANY)[0] % 2}"
    home.change(half)
    assert home.state() == old
    whole = await home.seconds("backup", "restore", archive, "--yes")
    assert home.state() == new
    for _ in range(request.config.getoption("--backup-kills")):
        home.change(half)
        await home.kill(whole * chance.uniform(0.35, 1.0), "backup", "restore", archive, "--yes")
        assert home.state() in (old, new)
        waits = home.rows(_WAITING) != []
        server = Server(home.path, home.database_url, plugins=PLUGINS)
        await server.start()
        try:
            assert home.state() in ((new,) if waits else (old, new))
            assert home.rows(_WAITING) == []
            assert home.rows("SELECT id FROM platform_ops_backup_job WHERE status = 'running'") == []
            async with asyncio.timeout(60):
                while home.rows(_HELD):  # noqa: ASYNC110 - released by another process
                    await asyncio.sleep(0.1)
        finally:
            await server.stop()


_ANY = "SELECT id FROM kernel_account WHERE username LIKE 'copy-%'"
_WAITING = "SELECT id FROM platform_ops_backup_job WHERE phase != ''"
_HELD = "SELECT sha256 FROM kernel_blob_reference WHERE holder LIKE 'restore:%'"
