"""schemathesis against the running platform: no 5xx, no undocumented status, answers of the declared shape.

It tries one example of each operation as an administrator; with `--openapi-examples 5` it is everybody, with
more examples and schemathesis's systematic ones.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from kernel.testing import migrated_home
from tests.benchmarks.serving import platform
from tests.fakes.model_server import Script, model_server
from tests.fakes.processes import platformctl

pytestmark = pytest.mark.long
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


# A pull waits for a worker, and there is none; fine-tuning is 501 by its nature; after signing out, or
# without its account, the rest would be asked by a stranger; schemathesis can't write JSON lines.
APART = (
    "model_management_pull",
    "model_management_fine_tune",
    "api_gateway_logout",
    "api_gateway_delete_me",
    "rag_pipeline_upload",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """An administrator gets furthest into the handlers; the others come with more examples."""
    many = metafunc.config.getoption("openapi_examples") > 1
    metafunc.parametrize("who", ["administrator", "user", "nobody"] if many else ["administrator"])


async def test_every_operation_keeps_its_word(
    tmp_path: Path, request: pytest.FixtureRequest, who: str
) -> None:
    """Generated requests, valid and invalid, from a stranger, an ordinary account and an administrator."""
    examples = request.config.getoption("--openapi-examples")
    phases = "examples,coverage,fuzzing" if examples > 1 else "examples,fuzzing"
    # With servers for answers and speech: 503 tells of what is missing, and tests no handler.
    script = Script(models=("llama3.2", "llama3.2:latest"))
    async with (
        model_server(script) as runtime,
        platform(
            migrated_home(tmp_path / "home"),
            "--no-worker",
            env={
                "MAX_UPLOAD_SIZE_MB": "1",
                "OLLAMA_BASE_URL": runtime.url,
                "PLATFORM_SPEECH_STT_URL": runtime.url,
            },
        ) as served,
    ):
        headers = (
            []
            if who == "nobody"
            else ["-H", f"Authorization: Bearer {await _token(served.url, who, tmp_path / 'home')}"]
        )
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{served.url}/openapi.json"),
            *("--checks", CHECKS, "--max-examples", str(examples), "--seed", "20", "--no-color"),
            *(*headers, "--request-timeout", "30"),
            *("--phases", phases, "--suppress-health-check", "all"),
            *(part for name in APART for part in ("--exclude-operation-id", name)),
        ]
        done = await _run(command, tmp_path)
    assert done.returncode == 0, done.stdout[-6000:]


async def _token(url: str, who: str, home: Path) -> str:
    """Of a new account; the operator makes the administrator, as nobody else can."""
    account = {"username": "fuzz", "email": "fuzz@example.org", "password": "long enough"}
    async with aiohttp.ClientSession(url) as session:
        if who == "administrator":
            account["password"] = await asyncio.to_thread(_administrator, home)
        else:
            await session.post("/v1/auth/register", json=account)
        async with session.post("/v1/auth/login", json=account) as answer:
            return str((await answer.json())["access_token"])


def _administrator(home: Path) -> str:
    command = ("users", "create", "fuzz", "--admin", "--generate", "--json")
    done = platformctl(*command, env={"PLATFORM_HOME": str(home)})
    return str(json.loads(done.stdout)["password"])


async def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis")}
    return await asyncio.to_thread(
        subprocess.run, command, cwd=folder, env=environment, capture_output=True, text=True, timeout=3000
    )
