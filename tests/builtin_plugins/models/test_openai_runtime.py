"""What only the OpenAI-compatible protocol has."""

from __future__ import annotations

import json

import pytest
from pydantic import SecretStr

from builtin_plugins.inference import api as inference
from builtin_plugins.models.runtimes import (
    GenerationRequest,
    ModelRuntimeError,
    OpenAIRuntime,
    RuntimeRefused,
    StreamBroken,
)
from kernel.sdk import OutgoingClient
from tests.fakes.model_server import Script, Turn, model_server

KEY = "sk-very-secret"
ASK = GenerationRequest("tiny", [inference.ChatMessage("user", "x")])


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
    request = GenerationRequest("tiny", ASK.messages, options={"max_completion_tokens": 9})
    async with model_server() as server:
        await OpenAIRuntime(client, server.url).generate(request)
    assert server.requests[0].body["max_completion_tokens"] == 9
    assert "max_tokens" not in server.requests[0].body


async def test_usage_is_asked_for_in_streams(client: OutgoingClient) -> None:
    async with model_server() as server:
        [item async for item in OpenAIRuntime(client, server.url).stream(ASK)]
    assert server.requests[0].body["stream_options"] == {"include_usage": True}


def _call(name: str, arguments: object, **more: object) -> dict[str, object]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


@pytest.mark.parametrize(
    "deltas",
    [
        pytest.param(
            [[_call("look", '{"q":"x"}', index=0, id="a")], [_call("look", '{"q":"y"}', index=0, id="b")]],
            id="one index, two ids",
        ),
        pytest.param(
            [[_call("look", '{"q":"x"}', index=0)], [_call("look", '{"q":"y"}', index=0)]],
            id="one index, no id",
        ),
        pytest.param([[_call("look", '{"q":"x"}'), _call("look", '{"q":"y"}')]], id="no index, one list"),
        pytest.param([[_call("look", '{"q":"x"}')], [_call("look", '{"q":"y"}')]], id="no index, two lists"),
        pytest.param(
            [[_call("look", {"q": "x"}, index=0)], [_call("look", {"q": "y"}, index=1)]], id="objects"
        ),
        pytest.param(
            [
                [_call("look", "", index=0, id="a")],
                [_call("", '{"q":', index=0)],
                [_call("", '"x"}', index=0)],
                [_call("look", "", index=0, id="b")],
                [_call("", '{"q":"y"}', index=0)],
            ],
            id="pieces below one index",
        ),
        pytest.param(
            [
                [_call("look", '{"q":', index=0, id="a"), _call("look", '{"q":', index=1, id="b")],
                [_call("look", '"x"}', index=0, id="a"), _call("look", '"y"}', index=1, id="b")],
            ],
            id="name and id in each piece",
        ),
    ],
)
async def test_parallel_calls_stay_apart(
    client: OutgoingClient, deltas: list[list[dict[str, object]]]
) -> None:
    """However a server numbers its calls and writes their arguments, each is a call of its own, in JSON."""
    async with model_server(Script(turn=lambda _body: Turn(call_deltas=deltas))) as server:
        request = inference.ChatRequest([{"role": "user", "content": "x"}])
        arguments: dict[int, str] = {}
        async for piece in OpenAIRuntime(client, server.url).chat(request, "tiny"):
            if isinstance(piece, inference.ToolCallPart):
                arguments[piece.index] = arguments.get(piece.index, "") + piece.arguments
    assert [json.loads(text) for text in arguments.values()] == [{"q": "x"}, {"q": "y"}]
