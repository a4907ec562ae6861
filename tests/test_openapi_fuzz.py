"""schemathesis against the running platform: no 5xx, no undocumented status, answers of the declared shape.

`pytest tests/test_openapi_fuzz.py --openapi-examples 100` is the nightly run; CI takes a few examples each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from tests.benchmarks.serving import platform

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


async def test_every_operation_keeps_its_word(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Generated requests, valid and invalid, with a token of an ordinary account."""
    examples = request.config.getoption("--openapi-examples")
    async with platform(tmp_path / "home", "--no-worker", env={"MAX_UPLOAD_SIZE_MB": "1"}) as served:
        token = await _token(served.url)
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{served.url}/openapi.json"),
            *("--checks", CHECKS, "--max-examples", str(examples), "--seed", "20", "--no-color"),
            *("-H", f"Authorization: Bearer {token}", "--request-timeout", "30"),
            *("--phases", "examples,coverage,fuzzing", "--suppress-health-check", "all"),
        ]
        done = await _run(command, tmp_path)
    assert done.returncode == 0, done.stdout[-6000:]


async def _token(url: str) -> str:
    account = {"username": "fuzz", "email": "fuzz@example.org", "password": "long enough"}
    async with aiohttp.ClientSession(url) as session:
        await session.post("/v1/auth/register", json=account)
        login = {"username": "fuzz", "password": "long enough"}
        async with session.post("/v1/auth/login", json=login) as answer:
            return str((await answer.json())["access_token"])


async def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    import asyncio

    environment = {**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis")}
    return await asyncio.to_thread(
        subprocess.run, command, cwd=folder, env=environment, capture_output=True, text=True, timeout=3000
    )
