"""Two platforms on one home: processes of one installation share it, others are refused."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path
from typing import Any

import pytest

from kernel.sdk import StartupError
from kernel.testing import Start
from tests.fakes.processes import running_process, served_platform, without_plugins


async def test_another_database_is_refused(
    start_platform: Start, database_url: str | None, tmp_path: Path
) -> None:
    """It would remove files that the other one needs."""
    home = tmp_path / "home"
    first = await start_platform(home=home, env={"DATABASE_URL": database_url})
    assert (await first.anonymous.get("/livez")).status == 200
    other = f"sqlite:///{tmp_path / 'other.db'}"
    with pytest.raises(StartupError, match="PLATFORM_HOME") as refused:
        await start_platform(home=home, env={"DATABASE_URL": other}, migrated=False)
    assert str(home) in str(refused.value)
    assert (await first.anonymous.get("/livez")).status == 200


async def test_a_file_system_without_locks(
    start_platform: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    flock = fcntl.flock

    def without_locks(file: Any, operation: int) -> None:
        if Path(getattr(file, "name", "")).name == "database":
            raise OSError(errno.ENOLCK, "No locks available")
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", without_locks)
    running = await start_platform()
    assert (await running.anonymous.get("/livez")).status == 200
    assert "locks" in caplog.text


async def test_processes_of_one_installation_share_a_home(
    start_platform: Start, database_url: str | None, tmp_path: Path
) -> None:
    for role in ("api", "worker", "api"):
        await start_platform(home=tmp_path / "home", env={"DATABASE_URL": database_url}, role=role)


async def test_the_next_platform_may_have_another_database(tmp_path: Path) -> None:
    """A process that was killed holds nothing; the command that is refused ends with the reason alone."""
    env = without_plugins()
    home, other = tmp_path / "home", f"sqlite:///{tmp_path / 'other.db'}"
    async with served_platform(home, "--no-worker", env=env) as first:
        late = {**env, "PLATFORM_HOME": str(home), "DATABASE_URL": other, "PLATFORM_PORT": "0"}
        command = ("-m", "cli", "serve", "--no-worker")
        async with running_process(*command, env=late, log=tmp_path / "late.log") as second:
            assert await second.wait(60) == 1
            assert "error: " in second.output() and "PLATFORM_HOME" in second.output()
            assert "Traceback" not in second.output()
        await first.process.kill()
    async with served_platform(home, "--no-worker", env={**env, "DATABASE_URL": other}) as next_one:
        assert (await next_one.get("/livez"))[0] == 200
