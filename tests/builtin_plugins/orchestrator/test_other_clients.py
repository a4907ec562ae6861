"""Other programs that speak OpenAI's protocol, each in an environment of its own, unmodified.

Their requirements contradict each other's, so the interpreters are named: PLATFORM_TEST_CLIENT_LANGCHAIN,
…_LLAMA_INDEX and …_LLM. Without one the test is skipped and says so.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.builtin_plugins.orchestrator.chat_support import Stage
from tests.fakes.model_server import Turn

pytestmark = pytest.mark.asyncio(loop_scope="session")

CLIENTS = Path(__file__).parents[2] / "clients"


@pytest.mark.parametrize("client", ["langchain", "llama_index", "llm"])
async def test_client(stage: Stage, client: str) -> None:
    """What a user of it does: chats, streams, functions, a pipeline as the model."""
    python = os.environ.get(f"PLATFORM_TEST_CLIENT_{client.upper()}")
    if not python:
        pytest.skip(f"PLATFORM_TEST_CLIENT_{client.upper()} names no interpreter that has it")

    def turn(body: dict[str, Any]) -> Turn | None:
        """Beeps when asked to, looks at the weather when asked for it, each once."""
        last = body["messages"][-1]
        if last["role"] == "user" and "Beep" in str(last["content"]) and body.get("tools"):
            return Turn(calls=[("beep", {"times": 2})])
        if last["role"] == "user" and "weather" in str(last["content"]) and body.get("tools"):
            return Turn(calls=[("office_weather", {"city": "Oslo"})])
        return None

    stage.play()
    stage.server.script.turn = turn
    script = CLIENTS / f"{client}_user.py"
    process = await asyncio.create_subprocess_exec(
        python,
        str(script),
        f"{stage.running.url}/v1/ai",
        str(stage.ann.token),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(120):
        said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()[-2000:]
