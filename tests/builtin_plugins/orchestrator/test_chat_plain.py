"""Chats without the platform's tools: the superset answer, streams, what is passed on, and failures."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.builtin_plugins.orchestrator.chat_support import HOTEL, Stage, stage_with
from tests.fakes.model_server import SECRET_TEXT, Refusal, Turn

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_whole(stage: Stage) -> None:
    """One body that OpenAI's clients and those of a model runtime both read."""
    stage.play(Turn("A hotel may cost 130 EUR."))
    answer = await stage.answer()
    assert answer["object"] == "chat.completion" and answer["id"].startswith("chatcmpl-")
    choice = answer["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": "A hotel may cost 130 EUR."}
    assert choice["finish_reason"] == "stop" and choice["index"] == 0
    assert answer["message"] == choice["message"] and answer["done"] is True
    assert answer["usage"] == {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    assert answer["model"] == "llama3.2" and answer["created_at"].startswith("20")
    assert not [key for key in answer if key.startswith("platform_")]
    assert "platform_tools" not in stage.prompts[0] and stage.prompts[0]["messages"] == [
        {"role": "user", "content": HOTEL}
    ]


async def test_stream(stage: Stage) -> None:
    """OpenAI's chunks: role first, texts, a reason, the usage where asked for, and the mark of the end."""
    stage.play(Turn("A hotel may cost 130 EUR."))
    streamed = await stage.stream(stream_options={"include_usage": True})
    assert streamed.text == "A hotel may cost 130 EUR." and streamed.done
    assert streamed.deltas[0]["role"] == "assistant" and len(streamed.deltas) > 3
    assert streamed.finish_reason == "stop"
    assert streamed.chunks[-1]["choices"] == [] and streamed.chunks[-1]["usage"]["total_tokens"] == 18
    assert len({chunk["id"] for chunk in streamed.chunks}) == 1
    stage.play(Turn("Again."))
    assert all(chunk["choices"] for chunk in (await stage.stream()).chunks)


async def test_parameters_are_passed_on(stage: Stage) -> None:
    stage.play()
    await stage.answer(temperature=0.25, max_tokens=9, stop=["END"], seed=3, options={"top_k": 5})
    sent = stage.prompts[0]
    if stage.kind == "ollama":
        assert sent["options"] == {
            "temperature": 0.25,
            "num_predict": 9,
            "stop": ["END"],
            "seed": 3,
            "top_k": 5,
        }
    else:
        assert {sent["temperature"], sent["max_tokens"], sent["seed"], sent["top_k"]} == {0.25, 9, 3, 5}
        assert "options" not in sent


async def test_thoughts(stage: Stage) -> None:
    """What a model thinks stands apart from what it says."""
    stage.play(Turn("42.", thought="Let me see"), Turn("42.", thought="Let me see"))
    message = (await stage.answer())["message"]
    assert message["content"] == "42." and message["reasoning_content"] == "Let me see"
    streamed = await stage.stream()
    assert streamed.text == "42."
    assert [d["reasoning_content"] for d in streamed.deltas if "reasoning_content" in d] == ["Let me see"]


async def test_functions_of_the_client(stage: Stage) -> None:
    """A client's own functions go to the model, and its calls come back for the client to run."""
    tools = [{"type": "function", "function": {"name": "beep", "parameters": {"type": "object"}}}]
    stage.play(Turn(calls=[("beep", {"times": 2}), ("beep", {"times": 3})]))
    choice = (await stage.answer(tools=tools))["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    calls = [call["function"] for call in choice["message"]["tool_calls"]]
    assert calls == [{"name": "beep", "arguments": f'{{"times": {n}}}'} for n in (2, 3)]
    assert stage.prompts[0]["tools"] == tools
    stage.play(Turn(calls=[("beep", {"times": 2}), ("beep", {"times": 3})]))
    streamed = await stage.stream(tools=tools)
    pieces: dict[int, str] = {}
    for delta in streamed.deltas:
        for call in delta.get("tool_calls", ()):
            pieces[call["index"]] = pieces.get(call["index"], "") + call["function"]["arguments"]
    assert pieces == {0: '{"times": 2}', 1: '{"times": 3}'} and streamed.finish_reason == "tool_calls"


async def test_images_and_parts(stage: Stage) -> None:
    """Content in parts reaches a runtime in its own shape."""
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    stage.play()
    await stage.answer(messages=[{"role": "user", "content": parts}])
    sent = stage.prompts[0]["messages"][0]
    if stage.kind == "ollama":
        assert sent == {"role": "user", "content": "What is this?", "images": ["AAAA"]}
    else:
        assert sent["content"] == parts


INSIDE = "http://10.0.0.1/latest"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": INSIDE}},
        {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
        {"type": "image_url", "image_url": INSIDE},
        {"type": "video_url", "video_url": {"url": INSIDE}},
        {"type": "text", "text": "What is this?", "image_url": {"url": INSIDE}},
        {"type": "image_url", "Image_URL": {"url": INSIDE}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "URL": INSIDE}},
    ],
)
@pytest.mark.parametrize("key", ["content", "Content"])
async def test_addresses_of_pictures(stage: Stage, part: dict[str, Any], key: str) -> None:
    """A model server would fetch what an address names from inside its own network. Servers written in Go
    read names in any case.
    """
    stage.play()
    refused = await stage.chat(messages=[{"role": "user", "content": "Look", key: [part]}])
    assert (refused.status, refused.json()["code"]) == (400, "media_address_refused"), refused.body
    assert "PLATFORM_MODELS_MEDIA_ADDRESSES" in refused.detail and not stage.prompts


async def test_addresses_for_a_server_elsewhere(tmp_path: Path) -> None:
    part = {"type": "image_url", "image_url": {"url": "https://www.example.org/cat.png"}}
    async with stage_with(tmp_path, "openai", {"PLATFORM_MODELS_MEDIA_ADDRESSES": "true"}) as stage:
        stage.play()
        await stage.answer(messages=[{"role": "user", "content": [part]}])
        assert stage.prompts[0]["messages"][0]["content"] == [part]


async def test_a_photo_fits(stage: Stage) -> None:
    """A picture as a camera makes it, and a thousand passages to embed, are not too large."""
    photo = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{'A' * 6_000_000}"}}
    stage.play()
    await stage.answer(messages=[{"role": "user", "content": [photo]}])
    texts = ["A passage. " * 250] * 1000
    reply = await stage.ann.post("/v1/ai/embeddings", json={"model": "nomic-embed-text", "input": texts})
    assert reply.status == 200 and len(reply.json()["data"]) == 1000


@pytest.mark.parametrize("name", ["content", "tool_calls"])
async def test_parts_without_end(stage: Stage, name: str) -> None:
    """Each part is checked, and that holds up everybody: there is an end to them."""
    refused = await stage.chat(messages=[{"role": "assistant", name: [1] * 2001}])
    assert "too_long" in {item["type"] for item in refused.detail}, refused.body


async def test_null_is_the_default(stage: Stage) -> None:
    """Programs that send every field send null for those that nobody set."""
    stage.play()
    unset = dict.fromkeys(("stream", "stream_options", "tools", "n", "stop", "seed", "response_format"))
    assert (await stage.answer(**unset))["message"]["content"] == "Done."
    assert (await stage.stream(stream_options={"include_usage": None})).text == "Done."
    reply = await stage.ann.post("/v1/ai/responses", json={"input": HOTEL, "stream": None})
    assert reply.status == 200, reply.body


async def test_results_name_their_function(stage: Stage) -> None:
    """Clients send the result of a function with the call's id alone; Ollama's templates need its name."""
    call = {"id": "call_7", "type": "function", "function": {"name": "beep", "arguments": "{}"}}
    stage.play()
    await stage.answer(
        messages=[
            {"role": "user", "content": "Beep!"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_7", "content": "beep"},
            {"role": "tool", "tool_call_id": "call_8", "content": "of no call"},
        ]
    )
    named, unnamed = stage.prompts[0]["messages"][2:]
    if stage.kind == "ollama":
        assert named == {"role": "tool", "content": "beep", "tool_name": "beep"}
        assert "tool_name" not in unnamed
    else:
        assert named == {"role": "tool", "tool_call_id": "call_7", "content": "beep"}


async def test_logprobs(stage: Stage) -> None:
    """How sure the model was of each token, where the client asks; in a stream with the last chunk."""
    told = [{"token": text, "logprob": -0.5, "bytes": None, "top_logprobs": []} for text in ("Do", "ne.")]
    asked = {"logprobs": True, "top_logprobs": 1}
    stage.play(Turn("Done.", logprobs=told), Turn("Done.", logprobs=told))
    assert (await stage.answer(**asked))["choices"][0]["logprobs"] == {"content": told, "refusal": None}
    streamed = await stage.stream(**asked)
    found = [chunk["choices"][0]["logprobs"] for chunk in streamed.chunks]
    assert streamed.text == "Done." and [one["content"] for one in found if one] == [told]
    assert all(prompt["logprobs"] is True and prompt["top_logprobs"] == 1 for prompt in stage.prompts)
    assert (await stage.answer())["choices"][0]["logprobs"] is None


@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        (Refusal(500), 503, "model_runtime_refused"),
        (Refusal(401), 503, "model_runtime_refused"),
        (Refusal(429), 429, "model_runtime_busy"),
        (Refusal(400, '{"error": "temperature must be below 2"}'), 400, "model_runtime_objects"),
    ],
)
async def test_refusals_of_the_runtime(stage: Stage, refusal: Refusal, status: int, code: str) -> None:
    """The client's mistakes are in the answer; the runtime's troubles are not."""
    for stream in (False, True):
        stage.play(refusal)
        reply = await stage.chat(stream=stream)
        assert (reply.status, reply.json()["code"]) == (status, code), reply.body
        assert SECRET_TEXT not in str(reply.body)
    if status == 400:
        assert "temperature must be below 2" in reply.detail


async def test_unknown_model(stage: Stage) -> None:
    stage.play()
    reply = await stage.chat(model="gpt-7")
    assert reply.status == 404 and reply.json()["code"] == "model_not_found" and "gpt-7" in reply.detail


@pytest.mark.parametrize("middle", ["error", "drop", "garbage"])
async def test_dead_in_mid_stream(stage: Stage, middle: str) -> None:
    """The text so far stays; an error follows in the stream, and no mark of a good end."""
    stage.play(Turn("A hotel may cost 130 EUR."), middle=middle, middle_after=3)
    streamed = await stage.stream()
    assert streamed.text and not streamed.done
    error = streamed.chunks[-1]["error"]
    assert error["code"] == "model_stream_broken" and error["type"] == "server_error"
    assert SECRET_TEXT not in str(streamed.chunks)


async def test_halves_of_characters(stage: Stage) -> None:
    """A runtime that cuts a character in two breaks nothing, nor does one that loses a half."""
    stage.play(Turn("Sail \ud83d\ude00 at \ud83d dawn \ud83d"), pieces=1)
    assert (await stage.stream()).text == "Sail 😀 at \ufffd dawn \ufffd"
    stage.play(Turn("Sail at \ud83d"))
    answer = await stage.chat()
    assert answer.json()["choices"][0]["message"]["content"] == "Sail at \ufffd"


async def test_leaving_stops_the_model(stage: Stage) -> None:
    """A client that hangs up, streamed or not, ends the runtime's work."""
    for options in ({"start": "hang"}, {"middle": "hang", "middle_after": 2}):
        stage.play(Turn("A long answer that never ends."), **options)
        stream = "middle" in options
        sending = asyncio.create_task(stage.chat(stream=stream))
        async with asyncio.timeout(10):
            while not stage.server.requests:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            sending.cancel()
            await stage.server.disconnected.wait()


async def test_options_keep_to_one_choice(stage: Stage) -> None:
    """What stands in Ollama's `options` can't turn a chat into several, or into another kind of answer."""
    stage.play()
    reply = await stage.chat(options={"n": 50, "stream": True, "stream_options": {}, "top_k": 5})
    assert reply.status == 200, reply.body
    sent = stage.server.requests[-1]
    assert "n" not in sent.body and not sent.body.get("stream") and "stream_options" not in sent.body


@pytest.mark.parametrize(
    "change",
    [
        {"messages": []},
        {"messages": [{"role": "wizard", "content": "x"}]},
        {"messages": [{"content": "x"}]},
        {"n": 2},
        {"platform_tools": "some"},
        {"tools": [{}] * 129},
        {"tools": [{}]},
        {"tools": [{"type": "function", "function": "beep"}]},
        {"tools": [{"type": "function", "function": {"name": 5}}]},
        {"tools": [{"type": "function", "function": {"name": "beep", "parameters": []}}]},
        {"tool_choice": "nonsense"},
        {"tool_choice": {"type": "function", "function": None}},
        {"messages": [{"role": "user", "content": [{"text": "x"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]},
        {"messages": [{"role": "tool", "content": "x", "tool_call_id": 5}]},
        {"model": ""},
    ],
)
async def test_bad_bodies(stage: Stage, change: dict[str, object]) -> None:
    """422, and nothing reaches the model: a runtime that fails at them would be asked again and again."""
    stage.play()
    reply = await stage.chat(**change)
    assert reply.status == 422, reply.body
    assert stage.prompts == []


async def test_no_runtime(bare: Stage) -> None:
    """Without a model a plain chat says what else there is."""
    reply = await bare.chat()
    assert reply.status == 503 and reply.json()["code"] == "no_model_runtime" and "pipeline" in reply.detail
    assert (await bare.chat(stream=True)).status == 503
