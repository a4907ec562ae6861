"""A delivery that finds no room on the disk."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kernel.testing import Start
from tests.builtin_plugins.manifest_webhooks.webhook_support import drop, manifest, send
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.small_disk import small_disk


async def test_refused_as_declared(start_platform: Start, tmp_path: Path) -> None:
    """It is 507, which the API's document names, and is stored once there is room."""
    with small_disk(tmp_path / "disk", 14) as disk:
        home = disk.folder / "home"
        drop(home / "manifests", "a.yaml", manifest())
        env = {"PLATFORM_MIN_FREE_DISK_MB": "1"}
        running = await start_platform(
            "manifest_webhooks", "plugin_registry", "api_docs", HashEmbeddings(), home=home, env=env
        )
        disk.fill()
        async with asyncio.timeout(60):
            while (answer := await send(running.anonymous, "/notes", {"text": "x" * 200})).status == 200:
                pass
        assert (answer.status, answer.json()["code"]) == (507, "storage_full")
        paths = (await running.anonymous.get("/openapi.json")).json()["paths"]
        assert "507" in paths["/webhook/{path}"]["post"]["responses"]
        disk.relieve()
        assert (await send(running.anonymous, "/notes", {"text": "x"})).status == 200
