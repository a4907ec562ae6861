"""The command line beside every kind of misbehaving plugin."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.fakes.processes import platformctl, served_platform
from tests.kernel.conftest import FAKES, install
from tests.kernel.test_strangers import REASONS, environment


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crowd(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, str]]:
    """The environment of a platform that has been started with all of them, and stopped."""
    packages = FAKES / "sample_plugin", FAKES / "misbehaving_plugins"
    folder = await asyncio.to_thread(install, tmp_path_factory.mktemp("packages"), *packages)
    home = tmp_path_factory.mktemp("crowd") / "home"
    async with served_platform(home, "--no-worker", env=environment(folder)):
        pass
    yield {"PLATFORM_HOME": str(home), **environment(folder)}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", ["claims_table", "hangs_at_open"])
async def test_why(crowd: dict[str, str], name: str) -> None:
    """`plugins why` explains one of them, whenever in a start it failed, and its exit code says so."""
    result = await asyncio.to_thread(platformctl, "plugins", "why", name, env=crowd)
    assert result.returncode == 1
    assert REASONS[name] in result.stdout


@pytest.mark.asyncio(loop_scope="module")
async def test_other_commands_work(crowd: dict[str, str]) -> None:
    """None of them stands in the way of the operator."""
    made = await asyncio.to_thread(platformctl, "users", "create", "ada", "--generate", env=crowd)
    assert made.returncode == 0, made.stderr
    doctor = await asyncio.to_thread(platformctl, "doctor", "--json", env=crowd)
    assert doctor.stdout, doctor.stderr
    failed = {
        item["text"].partition(":")[0] for item in json.loads(doctor.stdout) if item["check"] == "plugin"
    }
    assert failed == set(REASONS)


@pytest.mark.asyncio(loop_scope="module")
async def test_release(crowd: dict[str, str]) -> None:
    """A plugin that was kept out is let in again on the operator's word, and only one that was."""
    released = await asyncio.to_thread(platformctl, "plugins", "release", "blocks_on_start", env=crowd)
    assert released.returncode == 0, released.stderr
    again = await asyncio.to_thread(platformctl, "plugins", "release", "blocks_on_start", env=crowd)
    assert again.returncode == 3
    assert "blocks_at_open" in again.stderr
