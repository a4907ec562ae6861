"""Platforms with something in them, and their backups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from builtin_plugins.platform_ops.backup.archives import Archives
from builtin_plugins.platform_ops.backup.service import archives_of
from kernel.testing import Actor, Reply, Running, Start

PLUGINS = ("platform_ops", "tenancy", "marketplace", "manifest_webhooks")


@dataclass
class Shop:
    running: Running
    admin: Actor

    @property
    def archives(self) -> Archives:
        archives = archives_of(self.running.platform)
        archives.objects.load_sizes()
        return archives

    async def back_up(self) -> str:
        """Make a backup by the API and the worker; its name."""
        started = await self.admin.post("/v1/backups")
        assert started.status == 202, started.body
        await self.running.run_jobs()
        job = await self.job(started)
        assert job["status"] == "done", job
        return str(job["archive"])

    async def job(self, started: Reply) -> dict[str, Any]:
        reply = await self.admin.get(f"/v1/backups/jobs/{started.json()['id']}")
        assert reply.status == 200, reply.body
        return dict(reply.json())

    async def order_restore(self, name: str) -> Reply:
        """Ask for a restore, and let the worker prepare it."""
        started = await self.admin.post(f"/v1/backups/{name}/restore", json={"confirm_filename": name})
        assert started.status == 202, started.body
        await self.running.run_jobs()
        return started


Open = Callable[..., Any]


@pytest.fixture
def open_shop(start_platform: Start) -> Open:
    """Starts a platform with an administrator: `await open_shop(home=…, env=…, admin=…)`."""

    async def open_one(
        home: Path | None = None, env: Mapping[str, str | None] | None = None, name: str = "boss"
    ) -> Shop:
        running = await start_platform(*PLUGINS, home=home, env=env)
        return Shop(running, await running.user(name, role="admin"))

    return open_one
