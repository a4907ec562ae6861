"""What only the OpenAI-compatible protocol has."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from builtin_plugins.models.runtimes import (
    GenerationRequest,
    ModelRuntimeError,
    OpenAIRuntime,
    RuntimeRefused,
    StreamBroken,
)
from kernel.sdk import OutgoingClient, contracts
from tests.fakes.model_server import Script, model_server

KEY = "sk-very-secret"
ASK = GenerationRequest("tiny", [contracts.ChatMessage("user", "x")])


@pytest.mark.parametrize("key", [KEY, SecretStr(KEY)])
async def test_the_key_opens(client: OutgoingClient, key: str | SecretStr) -> None:
    """The key goes into Authorization, plain or secret, and never with an empty value."""
    async with model_server(Script(api_key=KEY)) as server:
        await OpenAIRuntime(client, server.url, api_key=key).generate(ASK)
        with pytest.raises(RuntimeRefused):
            await OpenAIRuntime(client, server.url, api_key="").generate(ASK)
    assert "Authorization" not in server.requests[-1].headers


async def test_a_wrong_key_is_refused_and_not_told(client: OutgoingClient) -> None:
    """The error says that credentials are the matter and doesn't hold them, its cause neither."""
    async with model_server(Script(api_key=KEY)) as server:
        with pytest.raises(RuntimeRefused, match="credentials") as caught:
            await OpenAIRuntime(client, server.url, api_key="sk-wrong").generate(ASK)
    error: BaseException | None = caught.value
    while error is not None:
        assert "sk-" not in repr(error)
        error = error.__cause__ or error.__context__


async def test_unreachable_holds_no_key(client: OutgoingClient) -> None:
    """A dropped connection's error, and all that caused it, is free of the key."""
    async with model_server(Script(start="drop")) as server:
        with pytest.raises(ModelRuntimeError) as caught:
            await OpenAIRuntime(client, server.url, api_key=KEY).generate(ASK)
    assert KEY not in repr(caught.value) + repr(caught.value.__cause__)


async def test_the_address_may_end_in_v1(client: OutgoingClient) -> None:
    """Both spellings of the base URL that people copy work."""
    async with model_server() as server:
        for url in (server.url, f"{server.url}/v1", f"{server.url}/v1/"):
            assert (await OpenAIRuntime(client, url).generate(ASK)).text == "Hello from the fake."


async def test_a_stream_without_done_counts_if_it_finished(client: OutgoingClient) -> None:
    """Some runtimes end without ``[DONE]``: a finish reason is enough, its absence is a break."""
    async with model_server(Script(done_marker=False)) as server:
        items = [item async for item in OpenAIRuntime(client, server.url).stream(ASK)]
    assert items[-1].text == "Hello from the fake."
    async with model_server(Script(done_marker=False, finish_reason=None)) as server:
        with pytest.raises(StreamBroken):
            [item async for item in OpenAIRuntime(client, server.url).stream(ASK)]


async def test_max_completion_tokens_replaces_max_tokens(client: OutgoingClient) -> None:
    """Models that refuse ``max_tokens`` get only the new name."""
    request = GenerationRequest("tiny", ASK.messages, options={"max_completion_tokens": 9})
    async with model_server() as server:
        await OpenAIRuntime(client, server.url).generate(request)
    assert server.requests[0].body["max_completion_tokens"] == 9
    assert "max_tokens" not in server.requests[0].body


async def test_usage_is_asked_for_in_streams(client: OutgoingClient) -> None:
    """Without ``include_usage`` a stream would report no tokens."""
    async with model_server() as server:
        [item async for item in OpenAIRuntime(client, server.url).stream(ASK)]
    assert server.requests[0].body["stream_options"] == {"include_usage": True}
