"""The settings in effect, for administrators."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kernel.testing import Running, platforms, somebody

pytestmark = pytest.mark.asyncio(loop_scope="module")
_SECRETS = {
    "PLATFORM_BACKUP_PASSPHRASE": "correct horse battery staple",
    "PLATFORM_BACKUP_TO": "s3://keyid:hidden-part@bucket/folder",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    home = tmp_path_factory.mktemp("home")
    (home / "config.yaml").write_text("platform_ops: {backup_keep: 14}\nkernel: {worker_concurrency: 3}\n")
    env = {**_SECRETS, "PLATFORM_BACKUP_SCHEDULE": "@daily"}
    async with platforms(home) as start:
        yield await start("platform_ops", "plugin_registry", "news", home=home, env=env)


async def listed_settings(running: Running) -> dict[str, dict[str, Any]]:
    reply = await (await somebody(running, role="admin")).get("/v1/settings")
    assert reply.status == 200, reply.body
    assert not any(word in reply.body.decode() for word in ("correct horse", "hidden-part"))
    assert reply.json()["count"] == len(reply.json()["settings"])
    return {f"{one['owner']}.{one['name']}": one for one in reply.json()["settings"]}


async def test_each_value_has_its_source(running: Running) -> None:
    """The default, `config.yaml`, the environment; for the kernel as for plugins."""
    found = await listed_settings(running)
    values = {name: (one["value"], one["source"]) for name, one in found.items()}
    assert values["platform_ops.backup_keep"] == ("14", "config.yaml")
    assert values["platform_ops.backup_schedule"] == ("@daily", "environment")
    assert values["platform_ops.backup_before_upgrade"] == ("true", "default")
    assert values["kernel.worker_concurrency"] == ("3", "config.yaml")
    assert found["platform_ops.backup_keep"]["default"] == "7"
    assert found["platform_ops.backup_keep"]["variables"] == ["PLATFORM_BACKUP_KEEP"]
    assert "rag.max_upload_size_mb" not in found


async def test_secrets_are_masked(running: Running) -> None:
    """Those that are set are stars, also inside an address; those that are not are empty."""
    found = await listed_settings(running)
    assert found["platform_ops.backup_passphrase"]["value"] == "***"
    assert found["platform_ops.backup_passphrase"]["secret"] is True
    assert found["platform_ops.backup_to"]["value"] == "s3://keyid:***@bucket/folder"
    assert found["kernel.smtp_password"] | {"description": ""} == {
        "owner": "kernel",
        "name": "smtp_password",
        "variables": ["PLATFORM_SMTP_PASSWORD"],
        "value": "",
        "default": "",
        "source": "default",
        "secret": True,
        "changeable": False,
        "description": "",
    }


async def test_a_stored_value_is_shown_as_such(running: Running) -> None:
    """What an administrator changed through the API is in effect, and says where it comes from."""
    admin = await somebody(running, role="admin")
    assert (await admin.post("/v1/plugins/news/enable")).status == 200
    before = (await listed_settings(running))["news.max_items"]
    assert (before["source"], before["changeable"]) == ("default", True)
    changed = await admin.put("/v1/plugins/news/config", json={before["variables"][0]: 9})
    assert changed.status == 200, changed.body
    after = (await listed_settings(running))["news.max_items"]
    assert (after["value"], after["source"]) == ("9", "stored")


@pytest.mark.parametrize("schedule", ["nightly", "0 0 30 2 *"])
async def test_a_schedule_that_never_comes(tmp_path: Path, schedule: str) -> None:
    async with platforms(tmp_path) as start:
        running = await start("platform_ops", env={"PLATFORM_BACKUP_SCHEDULE": schedule})
        state = (await running.anonymous.get("/health")).json()["plugins"]["platform_ops"]
    assert state["status"] == "failed"
    assert "PLATFORM_BACKUP_SCHEDULE" in state["reason"]
    assert "'0 3 * * *'" in state["reason"]
