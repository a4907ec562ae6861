"""Everything that generates, with the real small model in place of the scripted one.

It invents things, so these tests hold the platform to its promises around the text: citations that exist,
streams that add up to the whole, counted tokens, calls that are made, work that ends with its client.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from kernel.testing import Actor, Running, eventually, platforms, somebody
from tests.builtin_plugins.conversations.talk_support import fresh, turns
from tests.builtin_plugins.orchestrator.chat_support import CHAT, HOTEL, Office, Streamed
from tests.builtin_plugins.rag.rag_support import ask, ingest, make_base, make_pipeline
from tests.builtin_plugins.rag.test_generation import events_of
from tests.fakes.small_model import model_file

if TYPE_CHECKING:
    from openai import AsyncOpenAI

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="module")]

METHODS = (
    *("standard", "raptor"),
    *(pytest.param(method, marks=pytest.mark.long) for method in ("hyde", "self_rag", "corrective", "auto")),
)
NAMED: Any = {"type": "function", "function": {"name": "office_weather"}}
BEEP: Any = {
    "type": "function",
    "function": {
        "name": "beep",
        "parameters": {
            "type": "object",
            "properties": {"times": {"type": "integer", "minimum": 1, "maximum": 9}},
            "required": ["times"],
        },
    },
}


@dataclass
class Stage:
    """A platform whose default model is the small one, and an account with a pipeline over a document."""

    running: Running
    office: Office
    ann: Actor
    pipeline: str

    @property
    def sdk(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI  # it takes a second in each process of a run

        return AsyncOpenAI(
            base_url=f"{self.running.url}/v1/ai", api_key=str(self.ann.token), max_retries=0, timeout=60
        )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    env = {
        "PLATFORM_MODELS_LOCAL_FILES": f"tiny={model_file()}",
        "PLATFORM_MODELS_LOCAL_THREADS": "1",
        "OLLAMA_LLM_MODEL": "tiny",
        "PLATFORM_RAG_VERDICT_TOKENS": "50",
    }
    async with platforms(tmp_path_factory.mktemp("generation")) as start:
        office = Office()
        plugins = (
            "embeddings",
            "models",
            "rag",
            "rag_methods",
            "extractive_answers",
            "conversations",
            "orchestrator",
            "plugin_registry",
        )
        running = await start(*plugins, office, env=env)
        ann = await somebody(running)
        base = await make_base(ann)
        await ingest(running, ann, base)
        config = {"temperature": 0, "max_tokens": 12}
        pipeline = await make_pipeline(ann, base, name="Handbook", generation_config=config)
        yield Stage(running, office, ann, pipeline)


def check_answer(answer: dict[str, Any]) -> None:
    assert answer["model_used"] in ("tiny", "extractive") and answer["answer"].strip()
    assert answer["model_calls"] >= 1 and answer["tokens_used"] > answer["output_tokens"] > 0
    cited = {int(number) for number in re.findall(r"\[(\d+)\]", answer["answer"])}
    assert cited <= set(range(1, len(answer["sources"]) + 1))


@pytest.mark.parametrize("method", METHODS)
async def test_methods(stage: Stage, method: str) -> None:
    """Each query method ends with an answer; without a verdict of the model, it is degraded."""
    answer = await ask(stage.ann, stage.pipeline, HOTEL, method=method)
    check_answer(answer)
    assert answer["sources"][0]["source"] == "handbook.md"


async def test_stream_of_an_answer(stage: Stage) -> None:
    """The pieces are the answer, and the end says what the whole one says."""
    path = f"/v1/rag/pipeline/{stage.pipeline}/query"
    body = {"question": HOTEL}
    reply = await stage.ann.post(path, json=body, headers={"Accept": "text/event-stream"})
    events = events_of(reply.body.decode())
    names = [name for name, _ in events]
    assert names[0] == "sources" and names[-1] == "done" and names.count("token") > 1
    done = events[-1][1]
    check_answer(done)
    said = "".join(data["text"] for name, data in events if name == "token")
    assert done["answer"].strip() in said or said.strip() in done["answer"], (said, done["answer"])


@pytest.mark.long
async def test_conversation(stage: Stage) -> None:
    """A follow-up is made whole by the model, or taken as it is; both turns are kept."""
    conversation = fresh()
    for question in (HOTEL, "And the meals?"):
        check_answer(await ask(stage.ann, stage.pipeline, question, conversation_id=conversation))
    assert len(await turns(stage.ann, conversation)) == 2


@pytest.mark.long
async def test_pipeline_as_model(stage: Stage) -> None:
    """With a history, whole and streamed: usage is counted, the stream adds up."""
    messages: Any = [
        {"role": "user", "content": "What is the allowance for meals?"},
        {"role": "assistant", "content": "42 EUR [1]."},
        {"role": "user", "content": HOTEL},
    ]
    async with stage.sdk as client:
        whole = await client.chat.completions.create(model="pipeline/Handbook", messages=messages)
        assert whole.usage and whole.usage.completion_tokens > 0
        assert whole.usage.prompt_tokens > whole.usage.completion_tokens
        text, usage = "", None
        async for chunk in await client.chat.completions.create(
            model="pipeline/Handbook", messages=messages, stream=True, stream_options={"include_usage": True}
        ):
            usage = chunk.usage or usage
            text += "".join(choice.delta.content or "" for choice in chunk.choices)
    assert text.strip() and usage and usage.total_tokens > 0


async def test_chat_and_responses(stage: Stage) -> None:
    """Without chance the stream says what the whole answer says, in both of OpenAI's APIs."""
    asked: Any = [{"role": "user", "content": "What is the capital of France?"}]
    async with stage.sdk as client:
        whole = await client.chat.completions.create(
            model="tiny", messages=asked, max_tokens=16, temperature=0
        )
        pieces, usage = [], None
        async for chunk in await client.chat.completions.create(
            model="tiny",
            messages=asked,
            max_tokens=16,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        ):
            usage = chunk.usage or usage
            pieces += [choice.delta.content for choice in chunk.choices if choice.delta.content]
        made = await client.responses.create(model="tiny", input=asked, max_output_tokens=16, temperature=0)
    assert len(pieces) > 3 and "".join(pieces) == whole.choices[0].message.content == made.output_text
    assert usage == whole.usage and whole.usage and whole.usage.completion_tokens <= 16


async def test_a_demanded_function(stage: Stage) -> None:
    """A function of the client's, demanded, is called with arguments that its schema allows; streamed too."""
    asked: Any = [{"role": "user", "content": "Beep three times."}]
    async with (
        stage.sdk as client,
        client.chat.completions.stream(
            model="tiny", messages=asked, tools=[BEEP], tool_choice="required", max_tokens=60
        ) as stream,
    ):
        final = await stream.get_final_completion()
    [call] = final.choices[0].message.tool_calls or []
    assert call.function.name == "beep" and re.fullmatch(
        r'\{\s*"times":\s*[1-9]\s*\}', call.function.arguments
    )


@pytest.mark.long
@pytest.mark.parametrize("stream", [False, True])
async def test_a_demanded_tool_of_the_platform(stage: Stage, stream: bool) -> None:
    """The call is made once as the caller; what comes back goes to the model, which then is free."""
    stage.office.callers.clear()
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "How is the weather in Oslo?"}],
        "platform_tools": "read_only",
        "tool_choice": NAMED,
        "max_tokens": 48,
        "temperature": 0,
        "stream": stream,
    }
    reply = await stage.ann.post(CHAT, json=body)
    assert reply.status == 200, reply.body
    if stream:
        last = Streamed(reply.body.decode())
        assert last.done and [step["status"] for step in last.steps[:2]] == ["running", "done"]
        assert last.finish_reason in ("stop", "length")
    else:
        assert reply.json()["platform_steps"][0]["tool"] == "office_weather"
        assert reply.json()["usage"]["total_tokens"] > 0
    assert stage.office.callers[0] == stage.ann.user["username"]


async def test_leaving_frees_the_model(stage: Stage) -> None:
    """Eight clients leave after the first words of a long answer; the next one is answered quickly."""
    body = {
        "model": "tiny",
        "stream": True,
        "max_tokens": 4_000,
        "ignore_eos": True,
        "messages": [{"role": "user", "content": "Tell a long story."}],
    }

    async def begin_and_leave() -> None:
        async with stage.running.session.post(
            stage.running.url + CHAT, json=body, headers={"Authorization": f"Bearer {stage.ann.token}"}
        ) as answer:
            assert answer.status == 200
            await answer.content.readline()

    async with asyncio.timeout(60):
        await asyncio.gather(*(begin_and_leave() for _ in range(8)))
    messages = [{"role": "user", "content": "Hello"}]

    async def quick() -> bool:
        started = asyncio.get_running_loop().time()
        short = {"model": "tiny", "max_tokens": 3, "messages": messages}
        assert (await stage.ann.post(CHAT, json=short)).status == 200
        return asyncio.get_running_loop().time() - started < 5

    await eventually(quick, 30)
