"""A GGUF file on this machine as a model of the platform: loaded when asked for, unloaded, never trusted."""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import re
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from builtin_plugins.inference import api as inference
from builtin_plugins.models.local.child import ServerOptions
from builtin_plugins.models.local.memory import available_mb
from builtin_plugins.models.services.model_calls import MODELS
from kernel.testing import Actor, Running, eventually, platforms, somebody
from tests.fakes.small_model import model_file

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="module")]

Children = Callable[[], list[psutil.Process]]

CHAT = "/v1/ai/chat/completions"
MB = 1024 * 1024
IN_USE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 12}},
            "required": ["city"],
        },
    },
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(
    tmp_path_factory: pytest.TempPathFactory, others: list[psutil.Process]
) -> AsyncIterator[Running]:
    """A platform with the small model as ``tiny``, and a file that only says that it is a model."""
    folder = tmp_path_factory.mktemp("local")
    liar = folder / "liar.gguf"
    liar.write_bytes(model_file().read_bytes()[:2_000_000])
    files = f"tiny={model_file()},{liar},twin={model_file()}"
    env = {"PLATFORM_MODELS_LOCAL_FILES": files, "PLATFORM_MODELS_LOCAL_THREADS": "1"}
    async with platforms(folder) as start:
        yield await start("models", "orchestrator", env=env)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ann(running: Running) -> Actor:
    """Somebody who asks."""
    return await somebody(running)


async def ask(actor: Actor, words: str, tokens: int = 12, **more: Any) -> Any:
    body = {"messages": [{"role": "user", "content": words}], "max_tokens": tokens, "temperature": 0}
    return await actor.post(CHAT, json={"model": "tiny", **body, **more})


def serving() -> list[psutil.Process]:
    """All processes of this one that serve a model now."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            found += [child] if "builtin_plugins.models.local.child" in child.cmdline() else []
        except psutil.Error:
            continue
    return found


@pytest.fixture(scope="module")
def others() -> list[psutil.Process]:
    """Those that were there before: the fixture `small_model` of other modules."""
    return serving()


@pytest.fixture
def children(others: list[psutil.Process]) -> Children:
    """Returns the processes that serve a model for the tests of this module."""
    return lambda: [child for child in serving() if child not in others]


def resident(process: psutil.Process) -> int:
    """Bytes that a process has in memory; none once it has ended."""
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


async def test_it_is_listed_before_it_is_loaded(running: Running, children: Children) -> None:
    """Files are models of the provider `local`; what a person needs to know is read from the file."""
    assert children() == []
    page = (await running.anonymous.get("/v1/models")).json()
    first = page["items"][0]
    shown = (first["id"], first["provider"], first["type"], first["size"])
    assert shown == ("tiny", "local", "local", "98.36 MB")
    assert page["data"][0]["id"] == "tiny"
    facts = (await running.anonymous.get("/v1/models/tiny")).json()
    assert facts["details"]["family"] == "llama"
    assert facts["details"]["context_length"] == 8192
    assert children() == []


async def test_it_answers(running: Running, ann: Actor, children: Children) -> None:
    """Loaded by the first question, in a process of lower priority; the second question finds it there."""
    answer = await ask(ann, "What is the capital of France?")
    assert answer.status == 200, answer.body
    body = answer.json()
    assert body["choices"][0]["message"]["content"]
    assert body["usage"]["completion_tokens"] <= 12
    [child] = children()
    assert child.nice() >= 10
    assert (await ask(ann, "And of Italy?")).status == 200
    assert [one.pid for one in children()] == [child.pid]
    assert running.platform.resource(MODELS).local.loaded() == ["tiny"]


async def test_the_server_is_for_us_alone(ann: Actor, children: Children) -> None:
    await ask(ann, "Hello")
    [child] = children()
    [listening] = [one for one in child.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    assert listening.laddr.ip == "127.0.0.1"
    url = f"http://127.0.0.1:{listening.laddr.port}/v1/chat/completions"
    stranger = await ann.post(url, json={"messages": [{"role": "user", "content": "hi"}]})
    assert stranger.status == 401
    assert not re.search(r"key|sk-", " ".join(child.cmdline()))
    assert set(ServerOptions.__annotations__) & set(child.environ()) == set()


async def test_it_streams_and_stops(ann: Actor) -> None:
    """Pieces arrive one by one; leaving in the middle of thousands of tokens frees the model at once."""
    body = {"model": "tiny", "stream": True, "max_tokens": 4_000, "ignore_eos": True}
    messages = [{"role": "user", "content": "Tell a story."}]
    pieces = 0
    async with ann.running.session.post(
        ann.running.url + CHAT,
        json={**body, "messages": messages},
        headers={"Authorization": f"Bearer {ann.token}"},
    ) as answer:
        async for line in answer.content:
            pieces += line.startswith(b"data:")
            if pieces > 4:
                break
    async with asyncio.timeout(30):
        assert (await ask(ann, "Hello", 3)).status == 200


async def test_json_by_grammar(ann: Actor) -> None:
    """A schema is obeyed by a model that knows nothing of it."""
    schema = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "said", "schema": schema}}
    answer = await ask(ann, "Is water wet?", 30, response_format=wanted)
    assert isinstance(json.loads(answer.json()["choices"][0]["message"]["content"])["yes"], bool)


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
async def test_a_demanded_tool_is_called(ann: Actor, choice: Any) -> None:
    answer = await ask(ann, "Weather in Paris?", 60, tools=[WEATHER], tool_choice=choice)
    assert answer.status == 200, answer.body
    [said] = answer.json()["choices"]
    assert said["finish_reason"] == "tool_calls"
    [call] = said["message"]["tool_calls"]
    assert call["function"]["name"] == "weather"
    assert isinstance(json.loads(call["function"]["arguments"])["city"], str)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("tokens", [1, 9])
async def test_a_demanded_call_that_is_cut_off(ann: Actor, tokens: int, stream: bool) -> None:
    """The end of the tokens is reported as such: it is neither retried nor taken for a complete call."""
    city = {
        "type": "object",
        "properties": {"city": {"type": "string", "minLength": 400}},
        "required": ["city"],
    }
    weather = {"type": "function", "function": {"name": "weather", "parameters": city}}
    answer = await ask(ann, "Weather?", tokens * 4, tools=[weather], tool_choice="required", stream=stream)
    assert answer.status == 200, answer.body
    assert '"finish_reason":"length"' in answer.body.decode().replace(" ", "")
    if not stream:
        for call in answer.json()["choices"][0]["message"].get("tool_calls") or ():
            with pytest.raises(ValueError):
                json.loads(call["function"]["arguments"])


async def test_a_demanded_call_that_ends_with_the_tokens(ann: Actor) -> None:
    demanded: dict[str, Any] = {"tools": [WEATHER], "tool_choice": "required"}
    used = (await ask(ann, "Weather in Paris?", 60, **demanded)).json()["usage"]["completion_tokens"]
    for tokens in (used - 1, used):  # the last one is the end itself
        [said] = (await ask(ann, "Weather in Paris?", tokens, **demanded)).json()["choices"]
        assert said["finish_reason"] == "tool_calls", said
        assert isinstance(json.loads(said["message"]["tool_calls"][0]["function"]["arguments"])["city"], str)


def chained(length: int) -> dict[str, Any]:
    """A schema of references, each to the next."""
    links = {f"d{place}": {"$ref": f"#/$defs/d{place + 1}"} for place in range(length)}
    return said({"$ref": "#/$defs/d0", "$defs": {**links, f"d{length}": {"type": "string"}}})


def said(schema: dict[str, Any]) -> dict[str, Any]:
    """The wish for an answer that keeps to a schema."""
    return {"type": "json_schema", "json_schema": {"name": "said", "schema": schema}}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"grammar": "root ::= " + "(" * 200_000 + '"a"' + ")" * 200_000}, 200),
        ({"response_format": chained(9_000)}, 400),
        ({"tools": [{**WEATHER, "more": chained(9_000)}], "tool_choice": "required"}, 400),
        ({"response_format": said({"enum": [f"v{number}" for number in range(4_000)]})}, 400),
        ({"response_format": said({"pattern": "^(a{0,300}){0,300}$", "type": "string"})}, 400),
        ({"response_format": said({"pattern": "^[a-z]{1,64}@[a-z]{1,255}$", "type": "string"})}, 200),
        ({"logprobs": True, "top_logprobs": 2_000_000_000}, 400),
        ({"options": {"repeat_last_n": 2_000_000_000}}, 400),
    ],
    ids=["grammar", "schema", "tool", "choices", "repeats", "address", "logprobs", "penalty"],
)
async def test_no_request_ends_or_stalls_the_model(
    ann: Actor, children: Children, body: dict[str, Any], status: int
) -> None:
    """One process answers everybody: what overflows its stack or its memory does not reach it."""
    assert (await ask(ann, "Hello", 3)).status == 200
    before = children()
    answer = await ask(ann, "Hello", 3, **body)
    assert answer.status == status, answer.body
    assert (await ask(ann, "Hello", 3)).status == 200
    assert children() == before


async def test_a_choice_that_names_no_function_demands_none(ann: Actor) -> None:
    """A list of allowed tools leaves the model free to answer in words, however few it may write."""
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}
    answer = await ask(ann, "Hello", 3, tools=[WEATHER], tool_choice=choice)
    assert answer.status == 200, answer.body


@pytest.mark.parametrize(
    "change",
    [
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,x"}}]}]},
        {"tools": [{"type": "web_search"}]},
    ],
)
async def test_what_it_can_not_do_is_the_requests_fault(ann: Actor, change: dict[str, Any]) -> None:
    refused = await ask(ann, "Hello", 3, **change)
    assert (refused.status, refused.json()["code"]) == (400, "model_runtime_objects"), refused.body
    assert "local model" in refused.detail


async def test_a_name_that_no_model_has(ann: Actor) -> None:
    refused = await ask(ann, "Hello", 3, model="tinny")
    assert (refused.status, refused.json()["code"]) == (404, "model_not_found"), refused.body


async def test_a_damaged_file_hurts_nobody(running: Running, ann: Actor) -> None:
    refused = await ask(ann, "Hello", model="liar")
    assert (refused.status, refused.json()["code"]) == (503, "local_model_unusable"), refused.body
    assert "damaged" in refused.detail
    items = (await running.anonymous.get("/v1/models")).json()["items"]
    assert {item["id"]: item["status"] for item in items} == {
        "tiny": "ready",
        "twin": "ready",
        "liar": "error",
    }
    assert (await ask(ann, "Hello", 3)).status == 200


async def test_a_killed_model_comes_back(ann: Actor, children: Children) -> None:
    await ask(ann, "Hello", 3)
    [child] = children()
    os.kill(child.pid, signal.SIGKILL)
    child.wait(10)
    await eventually(lambda: children() == [])
    assert (await ask(ann, "Hello", 3)).status in (200, 503)
    assert (await ask(ann, "Hello", 3)).status == 200


async def test_a_killed_model_comes_back_before_its_end_is_seen(ann: Actor, children: Children) -> None:
    """What the error promises ("ask again to start it") holds, however late the end is noticed."""
    await ask(ann, "Hello", 3)
    [child] = children()
    parent = child.parent()
    assert parent is not None
    parent.suspend()
    try:
        child.kill()
        lost = await ask(ann, "Hello", 3)
        assert (lost.status, lost.json()["code"]) == (503, "local_model_failed"), lost.body
        asyncio.get_running_loop().call_later(0.3, parent.resume)
        assert (await ask(ann, "Hello", 3)).status == 200
    finally:
        parent.resume()


async def test_one_at_a_time(running: Running, ann: Actor, children: Children) -> None:
    """Another model waits for the answers of the loaded one, and then takes its place."""
    answers = await asyncio.gather(
        ask(ann, "Hello", 20), ask(ann, "Hello", 3, model="twin"), ask(ann, "Hello", 3)
    )
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert len(children()) == 1


async def test_extractive_answers_stay_the_default(running: Running) -> None:
    """A file in a folder replaces nothing: only a question that names it is answered by it."""
    hooks, platform = running.platform.hooks, running.platform
    asked: dict[str, Any] = {"messages": [], "temperature": 0.0, "max_tokens": 5, "options": {}}
    for model, answered in ((None, False), ("llama3.2", False), ("tiny", True)):
        stream = hooks.ask_now(inference.generate_text, platform=platform, model=model, **asked)
        assert (stream is not None) == answered


async def test_memory_is_given_back(tmp_path: Path, children: Children) -> None:
    """After its idle time the model's process has gone, without being asked."""
    env = {
        "PLATFORM_MODELS_LOCAL_FILES": f"tiny={model_file()}",
        "PLATFORM_MODELS_LOCAL_IDLE_SECONDS": "0.5",
        "PLATFORM_MODELS_LOCAL_THREADS": "1",
    }
    async with platforms(tmp_path) as start:
        running = await start("models", "orchestrator", env=env)
        before = {child.pid for child in children()}
        assert (await ask(await somebody(running), "Hello", 3)).status == 200
        [loaded] = [child for child in children() if child.pid not in before]
        assert loaded.memory_info().rss > 100 * MB
        await eventually(lambda: not {child.pid for child in children()} - before, 15)
        assert running.platform.resource(MODELS).local.loaded() == []
        assert resident(loaded) == 0  # all of its memory is the machine's again


@pytest.mark.long
async def test_unloaded_when_memory_is_short(tmp_path: Path) -> None:
    """A model that nobody is using gives way to a program that needs its memory, long before it is idle."""
    free = available_mb()
    assert free is not None
    env = {
        "PLATFORM_MODELS_LOCAL_FILES": f"tiny={model_file()}",
        "PLATFORM_MODELS_LOCAL_SPARE_MB": str(max(0, free - 1_500)),
        "PLATFORM_MODELS_LOCAL_THREADS": "1",
    }
    async with platforms(tmp_path) as start:
        running = await start("models", "orchestrator", env=env)
        local = running.platform.resource(MODELS).local
        assert (await ask(await somebody(running), "Hello", 3)).status == 200
        assert local.loaded() == ["tiny"]
        with await asyncio.to_thread(mmap.mmap, -1, 2_500 * MB, flags=IN_USE):
            await eventually(lambda: local.loaded() == [], 15)


async def test_no_room_no_model(tmp_path: Path) -> None:
    """More spare memory than the machine has: the refusal says how much is missing."""
    env = {
        "PLATFORM_MODELS_LOCAL_FILES": f"tiny={model_file()}",
        "PLATFORM_MODELS_LOCAL_SPARE_MB": "99999999",
    }
    async with platforms(tmp_path) as start:
        running = await start("models", "orchestrator", env=env)
        refused = await ask(await somebody(running), "Hello", 3)
        assert (refused.status, refused.json()["code"]) == (503, "local_model_memory")
