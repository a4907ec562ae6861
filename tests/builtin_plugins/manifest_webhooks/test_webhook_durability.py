"""Webhooks against the real server with the real embedding engine, killed in the middle of deliveries."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from sqlalchemy import func, select

from builtin_plugins.manifest_webhooks.models import EventRow
from builtin_plugins.vectors.api import VECTORS
from kernel.boot import open_platform
from kernel.settings.loading import SettingsLoader
from kernel.testing import candidates_of, eventually
from tests.builtin_plugins.manifest_webhooks.webhook_support import drop, manifest
from tests.fakes.processes import Served, served_platform, without_plugins

Acknowledged = dict[str, str]


async def deliver(served: Served, event: str) -> str:
    body, headers = {"text": f"report {event} of the night shift"}, {"webhook-id": event}
    async with served.session.post(f"{served.url}/webhook/notes", json=body, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        return str((await answer.json())["result"]["point_id"])


async def deliver_until_killed(served: Served, prefix: str, acknowledged: Acknowledged) -> None:
    number = 0
    with suppress(aiohttp.ClientConnectionError):
        while True:
            event = f"{prefix}-{number}"
            acknowledged[event] = await deliver(served, event)
            number += 1


@pytest.mark.long
@pytest.mark.durability
async def test_kill_loses_nothing_acknowledged(
    platform_home: Path, database_url: str | None, request: pytest.FixtureRequest
) -> None:
    """After SIGKILL in mid-delivery every acknowledged event is there once, under its point, and found."""
    drop(platform_home / "manifests", "a.yaml", manifest())
    env = {"PLATFORM_MANIFESTS_DIR": str(platform_home / "manifests")}
    env |= without_plugins("manifest_webhooks", "embeddings", "plugin_registry")
    env |= {"DATABASE_URL": database_url} if database_url else {}
    acknowledged: Acknowledged = {}
    kills = request.config.getoption("--webhook-kills")
    for round_ in range(kills):
        async with served_platform(platform_home, "--no-worker", env=env) as served:
            acknowledged[f"first-{round_}"] = await deliver(served, f"first-{round_}")
            senders = [
                asyncio.create_task(deliver_until_killed(served, f"{round_}-{sender}", acknowledged))
                for sender in range(4)
            ]
            before = len(acknowledged)
            await eventually(lambda at=before + 8 + round_: len(acknowledged) >= at)  # type: ignore[misc]
            await served.process.kill()
            await asyncio.gather(*senders)
    assert len(acknowledged) >= kills * 8
    async with served_platform(platform_home, "--no-worker", env=env) as served:
        for event, point in acknowledged.items():
            assert await deliver(served, event) == point
        query = {"query": "first-0 night shift", "limit": "100"}
        headers = await served.sign_up()
        status, body = await served.get("/v1/plugins/notes/actions/search", params=query, headers=headers)
        found = [hit["point_id"] for hit in body["result"]["hits"]]
        assert status == 200 and acknowledged["first-0"] in found
    points, events = await stored(platform_home, env)
    assert points == events >= len(acknowledged)


async def stored(home: Path, env: dict[str, str]) -> tuple[int, int]:
    loader = SettingsLoader({"PLATFORM_HOME": str(home), **env})
    async with open_platform(loader, role="tool", candidates=candidates_of("vectors")) as platform:
        points = await platform.resource(VECTORS).count("manifest:notes:notes")
        query = select(func.count()).select_from(EventRow)
        return points, int(await platform.database.read(lambda session: session.scalar(query)) or 0)
