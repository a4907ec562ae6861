"""The service on its own port, its callers, and services to register."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel.testing import Actor, Reply, Running, platforms, somebody


@dataclass
class Ops:
    running: Running
    admin: Actor
    user: Actor

    async def register(self, name: str, host: str, port: int, **more: Any) -> Reply:
        body = {"service_name": name, "service_type": "http", "host": host, "port": port, **more}
        return await self.admin.post("/v1/services/register", json=body)


@asynccontextmanager
async def serving(home: Path, env: dict[str, str], *plugins: str) -> AsyncIterator[Ops]:
    async with platforms(home) as start:
        running = await start("platform_ops", *plugins, env=env, only="platform-ops")
        yield Ops(running, await somebody(running, role="admin"), await somebody(running))
