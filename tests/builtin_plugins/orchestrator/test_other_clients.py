"""Other programs that speak OpenAI's protocol, each in its own environment, unmodified."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.builtin_plugins.orchestrator.chat_support import Stage
from tests.fakes.client_environments import CLIENTS, environment_of
from tests.fakes.model_server import Turn
from tests.fakes.processes import free_port, process_environment

pytestmark = pytest.mark.asyncio(loop_scope="session")

LITELLM = """
general_settings: {{master_key: sk-litellm}}
model_list:
  - model_name: small
    litellm_params: {{model: openai/llama3.2, api_base: {url}, api_key: {token}}}
  - model_name: handbook
    litellm_params: {{model: openai/pipeline/Travel handbook, api_base: {url}, api_key: {token}}}
  - model_name: vectors
    litellm_params: {{model: openai/all-minilm, api_base: {url}, api_key: {token}}}
"""


def turn(body: dict[str, Any]) -> Turn | None:
    """Beeps when asked to, looks at the weather when asked for it, each once."""
    last = body["messages"][-1]
    if last["role"] == "user" and "Beep" in str(last["content"]) and body.get("tools"):
        return Turn(calls=[("beep", {"times": 2})])
    if last["role"] == "user" and "weather" in str(last["content"]) and body.get("tools"):
        return Turn(calls=[("office_weather", {"city": "Oslo"})])
    return None


async def run_user(stage: Stage, python: str, script: str, *arguments: str) -> None:
    stage.play()
    stage.server.script.turn = turn
    process = await asyncio.create_subprocess_exec(
        python,
        str(CLIENTS / script),
        *arguments,
        env=process_environment({}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(120):
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-2000:]


@pytest.mark.long
@pytest.mark.parametrize("client", ["langchain", "llama_index", "llm"])
async def test_client(stage: Stage, client: str) -> None:
    """What a user of it does: chats, streams, functions, a pipeline as the model."""
    bin_folder = await asyncio.to_thread(environment_of, client)
    base, token = f"{stage.running.url}/v1/ai", str(stage.ann.token)
    await run_user(stage, str(bin_folder / "python"), f"{client}_user.py", base, token)


@pytest.mark.long
async def test_litellm_in_front(stage: Stage, tmp_path: Path) -> None:
    """OpenAI's SDK speaks to LiteLLM's proxy, which speaks to the platform."""
    bin_folder = await asyncio.to_thread(environment_of, "litellm")
    url, port, config = f"{stage.running.url}/v1/ai", free_port(), tmp_path / "litellm.yaml"
    config.write_text(LITELLM.format(url=url, token=stage.ann.token))
    with (tmp_path / "litellm.log").open("wb") as log:
        proxy = await asyncio.create_subprocess_exec(
            *(bin_folder / "litellm", "--config", config, "--port", str(port), "--host", "127.0.0.1"),
            env=process_environment({"LITELLM_LOCAL_MODEL_COST_MAP": "True"}),
            stdout=log,
            stderr=log,
        )
    try:
        await answering(stage, f"http://127.0.0.1:{port}/health/liveliness", proxy)
        await run_user(stage, sys.executable, "litellm_user.py", f"http://127.0.0.1:{port}/v1", "sk-litellm")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{(tmp_path / 'litellm.log').read_text()[-3000:]}") from None
    finally:
        if proxy.returncode is None:
            proxy.kill()
        await proxy.wait()


async def answering(stage: Stage, url: str, process: asyncio.subprocess.Process) -> None:
    """Until a server answers there."""
    async with asyncio.timeout(90):
        while process.returncode is None:
            try:
                async with stage.running.session.get(url) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                await asyncio.sleep(0.1)
    raise AssertionError(f"the proxy ended with {process.returncode}")
