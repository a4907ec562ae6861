"""Our client of OpenAI-compatible runtimes against a real one, which no script softens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
import pytest_asyncio

from builtin_plugins.inference import api as inference
from builtin_plugins.models.runtimes import (
    GenerationRequest,
    ModelRuntimeError,
    OpenAIRuntime,
    RuntimeLacksModel,
    TextDelta,
)
from kernel.sdk import OUTGOING
from kernel.testing import platforms
from tests.fakes.small_model import SmallModel

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = [inference.ChatMessage("user", "What is the capital of France?")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runtime(
    small_model: SmallModel, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[OpenAIRuntime]:
    """A client of the server, as a platform makes it."""
    async with platforms(tmp_path_factory.mktemp("runtime")) as start:
        running = await start("plugin_registry")
        outgoing = running.platform.resource(OUTGOING)
        async with outgoing.client("tests", named=[small_model.url]) as client:
            yield OpenAIRuntime(client, small_model.url, api_key=small_model.key)


def asking(tokens: int = 24, **options: object) -> GenerationRequest:
    exact = {"cache_prompt": False, **options}
    return GenerationRequest("smollm2", QUESTION, temperature=0, max_tokens=tokens, options=exact)


async def test_streams_add_up_to_the_whole(runtime: OpenAIRuntime) -> None:
    """Asked twice without chance, once in pieces and once whole, it says the same and counts its tokens."""
    whole = await runtime.generate(asking())
    async with aclosing(runtime.stream(asking())) as stream:
        pieces = [item async for item in stream]
    *deltas, end = pieces
    assert len(deltas) > 3
    assert isinstance(end, inference.Completion)
    assert "".join(item.text for item in deltas if isinstance(item, TextDelta)) == end.text == whole.text
    assert (end.finish_reason in ("stop", "length"), end.model) == (True, "smollm2")
    assert end.tokens_used is not None
    assert end.tokens_used > len(deltas)


async def test_a_schema_is_obeyed(runtime: OpenAIRuntime) -> None:
    """Grammar makes JSON of whatever so small a model would say."""
    schema = {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}, "people": {"type": "integer"}},
        "required": ["city", "people"],
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema}}
    found = json.loads((await runtime.generate(asking(60, response_format=wanted))).text)
    assert found["city"] in ("Paris", "Rome")
    assert isinstance(found["people"], int)


async def test_a_closed_stream_frees_the_model(runtime: OpenAIRuntime) -> None:
    """Four answers of thousands of tokens are given up after their first; the next one is quick."""
    long = asking(4_000, ignore_eos=True)
    for _ in range(4):
        async with aclosing(runtime.stream(long)) as stream:
            async for _piece in stream:
                break
    async with asyncio.timeout(20):
        assert (await runtime.generate(asking(4))).text


async def test_answers_are_made_at_the_same_time(runtime: OpenAIRuntime) -> None:
    """Batching: the short answer does not wait for the end of the long one."""
    ended: list[str] = []

    async def ask(name: str, tokens: int) -> None:
        await runtime.generate(asking(tokens, ignore_eos=True))
        ended.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(ask("long", 150))
        group.create_task(ask("short", 5))
    assert ended == ["short", "long"]


async def test_what_it_has(runtime: OpenAIRuntime) -> None:
    """Its list, its health; a prompt beyond its context is refused with a status."""
    assert [model.id for model in await runtime.models()] == ["smollm2"]
    assert await runtime.healthy()
    endless = [inference.ChatMessage("user", "word " * 20_000)]
    with pytest.raises(ModelRuntimeError) as refused:
        await runtime.generate(GenerationRequest("smollm2", endless, max_tokens=4))
    assert not isinstance(refused.value, RuntimeLacksModel)
    assert "word" not in refused.value.detail
