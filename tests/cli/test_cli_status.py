"""`platformctl status` and `platformctl support-bundle`."""

from __future__ import annotations

import asyncio
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from kernel.plugins.loading import installed
from kernel.sdk import Job, JobFailed, Platform, Plugin, hookimpl
from kernel.testing import Start
from tests.cli.conftest import Cli
from tests.fakes.processes import free_port

SECRET = "a-very-secret-passphrase"
SMALL = {"platform_ops", "rag"}


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch, bare_cli: Cli) -> None:
    """A port that nobody listens on, and few plugins."""
    others = {one.name for one in installed() if not one.essential} - SMALL
    monkeypatch.setenv("PLATFORM_PORT", str(free_port()))
    monkeypatch.setenv("PLATFORM_PLUGINS_DISABLED", ",".join(others))


def status(cli: Cli, **env: str) -> tuple[int, dict[str, Any]]:
    result = cli("status", "--json", env=env)
    return result.exit_code, json.loads(result.stdout)


def test_before_the_first_start(bare_cli: Cli, platform_home: Path) -> None:
    code, found = status(bare_cli)
    assert (code, found["api"]["answers"]) == (1, False)
    assert found["problems"] and not platform_home.exists()
    assert "set PLATFORM_PORT" in bare_cli("status").stdout


async def fail(platform: Platform, payload: Any) -> None:
    """A job that can't be done."""
    raise JobFailed("the token=abcdefghijkl is not valid")


class Failing(Plugin):
    """Has such a job."""

    name = "failing"

    @hookimpl
    def register_jobs(self) -> list[Job[Any]]:
        return [FAIL]


class Nothing(BaseModel):
    """Nothing to say."""


FAIL = Job("failing.fail", Nothing, fail)


async def test_a_running_platform(cli: Cli, start_platform: Start, platform_home: Path) -> None:
    """Services, queue with ages, failures without secrets, disk and backups, for people and programs."""
    running = await start_platform("platform_ops", Failing, home=platform_home)
    platform = running.platform
    await platform.database.write(lambda unit: unit.enqueue(FAIL, Nothing()))
    await running.run_jobs()
    await platform.database.write(lambda unit: unit.enqueue(FAIL, Nothing(), lane="large"))
    port = running.url.rpartition(":")[2]
    code, found = await asyncio.to_thread(status, cli, PLATFORM_PORT=port)
    assert found["api"]["answers"] and len(found["api"]["services"]) == 9
    assert code == (0 if found["api"]["status"] == "healthy" else 1)
    assert [(one["lane"], one["jobs"], one["status"]) for one in found["queue"]] == [("large", 1, "queued")]
    assert found["failed_last_day"] == 1
    assert "abcdefghijkl" not in found["failures"][0]["error"]
    assert found["disk"]["free_bytes"] > 0 and found["backup"] is None
    shown = await asyncio.to_thread(cli, "status", env={"PLATFORM_PORT": port})
    assert "large: 1 queued" in shown.stdout
    by_port = await asyncio.to_thread(cli, "status", "--port", port, "--json")
    assert json.loads(by_port.stdout)["address"] == running.url and by_port.exit_code == code
    assert "platformctl backup create" in " ".join(shown.stdout.split())


def test_the_support_bundle_has_no_secrets(cli: Cli, platform_home: Path, tmp_path: Path) -> None:
    """Of settings, files, addresses and log lines; it overwrites nothing, and only its owner can read it."""
    cli("secret", "set", "deploy", input="the-deploy-secret")
    log = tmp_path / "platform.log"
    log.write_text(f"began with {SECRET}\nBearer abcdefghijklmnop\nthe-deploy-secret\nall was well\n")
    env = {
        "PLATFORM_BACKUP_PASSPHRASE": SECRET,
        "PLATFORM_LOG_FILE": str(log),
        "REDIS_URL": "redis://:hunter2hunter2@127.0.0.1:1",
    }
    target = tmp_path / "bundle.tar.gz"
    result = cli("support-bundle", str(target), env=env)
    assert result.exit_code == 0, result.output
    assert target.stat().st_mode & 0o777 == 0o600
    with tarfile.open(target) as archive:
        parts = {one.name: archive.extractfile(one).read().decode() for one in archive}  # type: ignore[union-attr]
    names = ("doctor", "machine", "packages", "plugins", "settings", "status")
    assert set(parts) == {f"platform-support/{name}.json" for name in names} | {"platform-support/log.txt"}
    text = "\n".join(parts.values())
    for secret in (SECRET, "abcdefghijklmnop", "the-deploy-secret", "hunter2hunter2"):
        assert secret not in text
    for name in (platform_home / "secrets").iterdir():
        assert name.read_text() not in text
    assert "all was well" in parts["platform-support/log.txt"]
    assert cli("support-bundle", str(target), env=env).exit_code == 4
