"""Installed by parts: the wheel with what it requires is small and healthy, and says what is missing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tomllib
import venv
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes.processes import free_ports, process_environment

ROOT = Path(__file__).resolve().parents[2]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
MOST_MEGABYTES, MOST_PACKAGES = 135, 35
IN_SERVICE = {"access_tokens", "tenancy", "plugin_registry", "manifest_webhooks", "marketplace", "web_client"}
"""Some plugins that need nothing more than the kernel."""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing but what `pip install platform-kernel` brings."""
    folder = tmp_path_factory.mktemp("core")
    build = [*PIP, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run(
        [*build, "--wheel-dir", str(folder), str(ROOT)], check=True, capture_output=True, timeout=300
    )
    (wheel,) = folder.glob("*.whl")
    environment = folder / "environment"
    venv.create(environment, with_pip=False)
    install = [*PIP, "--python", str(environment), "install", "--quiet", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, timeout=600)
    return environment


def test_few_dependencies() -> None:
    """What everybody installs is a short list, and entry points name extras that there are."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert len(project["dependencies"]) <= MOST_PACKAGES
    extras = project["optional-dependencies"]
    named = {
        target.rpartition("[")[2].rstrip("]")
        for target in project["entry-points"]["platform.plugins"].values()
        if "[" in target
    }
    assert named <= extras.keys()


@pytest.mark.long
def test_small(core: Path) -> None:
    size = sum(path.lstat().st_size for path in core.rglob("*") if path.is_file() and not path.is_symlink())
    assert size / 1e6 <= MOST_MEGABYTES


@pytest.mark.long
async def test_healthy_without_extras(core: Path, tmp_path: Path) -> None:
    """It starts and is healthy; a plugin without its packages is not installed, and says how to get them."""
    port, other = free_ports(2)
    values = {"PLATFORM_HOME": str(tmp_path / "home"), "WEB_CLIENT_PORT": str(other)}
    env, command = process_environment(values), str(core / "bin" / "platformctl")
    serving = (command, "serve", "--port", str(port))
    server = await asyncio.create_subprocess_exec(*serving, cwd=tmp_path, env=env, stdout=DEVNULL)
    try:
        health = await answered(f"http://127.0.0.1:{port}/health")
        said = await explained(command, "rag", tmp_path, env)
    finally:
        server.terminate()
        await server.wait()
    plugins = health["plugins"]
    assert health["status"] == "healthy", health
    assert {plugins[name]["status"] for name in IN_SERVICE} == {"loaded"}
    assert plugins["rag"]["status"] == "not_installed"
    assert "pip install 'platform-kernel[rag]'" in plugins["rag"]["reason"]
    assert {item["status"] for item in plugins.values()} <= {"loaded", "disabled", "not_installed"}
    assert json.loads(said)["reason"] == plugins["rag"]["reason"]


async def explained(command: str, plugin: str, folder: Path, env: dict[str, str]) -> bytes:
    arguments = (command, "plugins", "why", plugin, "--json")
    process = await asyncio.create_subprocess_exec(*arguments, cwd=folder, env=env, stdout=PIPE)
    return (await process.communicate())[0]


async def answered(url: str) -> dict[str, Any]:
    async with aiohttp.ClientSession() as session, asyncio.timeout(90):
        while True:
            try:
                async with session.get(url) as answer:
                    found: dict[str, Any] = await answer.json()
                    return found
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.05)
