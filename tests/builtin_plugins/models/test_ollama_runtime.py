"""What only Ollama's protocol has."""

from __future__ import annotations

from builtin_plugins.inference import api as inference
from builtin_plugins.models.runtimes import GenerationRequest, ModelInfo, OllamaRuntime
from kernel.sdk import OutgoingClient
from tests.fakes.model_server import Script, model_server


async def test_models_carry_size_and_family(client: OutgoingClient) -> None:
    async with model_server(Script(models=("llama3.2:latest",))) as server:
        assert await OllamaRuntime(client, server.url).models() == [
            ModelInfo("llama3.2:latest", 1230000000, "2026-11-01T10:00:00Z", "llama", "3.2B")
        ]


async def test_capabilities_come_from_show(client: OutgoingClient) -> None:
    async with model_server() as server:
        details = await OllamaRuntime(client, server.url).describe("tiny")
    assert details.capabilities == ("completion", "tools")
    assert details.details["details"] == {"family": "llama"}


async def test_context_and_options_find_their_place(client: OutgoingClient) -> None:
    """num_ctx and sampling go into ``options``, keep_alive beside it, and the request's own value wins."""
    request = GenerationRequest(
        "tiny", [inference.ChatMessage("user", "x")], options={"keep_alive": "5m", "num_ctx": 16384}
    )
    async with model_server() as server:
        runtime = OllamaRuntime(client, server.url, context_tokens=8192)
        await runtime.generate(GenerationRequest("tiny", [inference.ChatMessage("user", "x")]))
        await runtime.generate(request)
    first, second = (received.body for received in server.requests)
    assert first["options"]["num_ctx"] == 8192
    assert second["options"]["num_ctx"] == 16384
    assert second["keep_alive"] == "5m"
    assert "keep_alive" not in second["options"]
