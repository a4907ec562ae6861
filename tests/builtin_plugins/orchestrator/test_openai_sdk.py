"""OpenAI's own SDK, unmodified, against the platform: what a user of it does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

import pytest
import pytest_asyncio
from pydantic import BaseModel, TypeAdapter

from tests.builtin_plugins.orchestrator.chat_support import HOTEL, Stage, tool_call
from tests.fakes.model_server import Turn

if TYPE_CHECKING:
    from openai import AsyncOpenAI

pytestmark = pytest.mark.asyncio(loop_scope="session")

MESSAGES: Any = [{"role": "user", "content": HOTEL}]
BEEP: Any = [
    {
        "type": "function",
        "function": {
            "name": "beep",
            "description": "Beeps.",
            "parameters": {"type": "object", "properties": {"times": {"type": "integer"}}},
        },
    }
]
FLAT: Any = [{"type": "function", "name": "beep", "parameters": {"type": "object"}, "strict": False}]


class Price(BaseModel):
    """A price."""

    amount: int
    currency: str


def sdk(stage: Stage, **options: Any) -> AsyncOpenAI:
    from openai import AsyncOpenAI  # here and below: it takes a second in each process of a run

    return AsyncOpenAI(
        base_url=f"{stage.running.url}/v1/ai", api_key=stage.ann.token, max_retries=0, **options
    )


@pytest_asyncio.fixture(loop_scope="session")
async def client(stage: Stage) -> AsyncIterator[AsyncOpenAI]:
    """The SDK with the account's token."""
    async with sdk(stage) as sdk_client:
        yield sdk_client


async def test_chat(stage: Stage, client: AsyncOpenAI) -> None:
    """A plain chat, with and without the platform's tools."""
    stage.play(Turn("130 EUR."))
    answer = await client.chat.completions.create(model="llama3.2", messages=MESSAGES, temperature=0)
    assert answer.choices[0].message.content == "130 EUR." and answer.usage
    assert answer.usage.total_tokens == 18
    stage.play(tool_call("office_weather", city="Oslo"), answer="It rains.")
    answer = await client.chat.completions.create(
        model="llama3.2", messages=MESSAGES, extra_body={"platform_tools": True}
    )
    assert answer.choices[0].message.content == "It rains."
    assert answer.model_extra and answer.model_extra["platform_tool_calls_made"] == 1


async def test_stream(stage: Stage, client: AsyncOpenAI) -> None:
    """Chunks, the platform's steps among them, which the SDK takes for empty ones."""
    stage.play(tool_call("office_weather", city="Oslo"), answer="It rains in Oslo.")
    text, steps, usage = "", [], None
    async for chunk in await client.chat.completions.create(
        model="llama3.2",
        messages=MESSAGES,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"platform_tools": "read_only"},
    ):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            steps += [(choice.delta.model_extra or {}).get("platform_step")]
    assert text == "It rains in Oslo." and usage is not None and usage.total_tokens == 36
    assert [step["status"] for step in steps if step] == ["running", "done"]


async def test_stream_helper(stage: Stage, client: AsyncOpenAI) -> None:
    """The SDK's own accumulation of a stream."""
    stage.play(Turn("Let me see.", calls=[("beep", {"times": 2})]))
    async with client.chat.completions.stream(model="llama3.2", messages=MESSAGES, tools=BEEP) as stream:
        kinds = {event.type async for event in stream}
        final = await stream.get_final_completion()
    assert {"content.delta", "tool_calls.function.arguments.done"} <= kinds
    calls = final.choices[0].message.tool_calls
    assert calls and calls[0].function.arguments == '{"times": 2}'


async def test_functions(stage: Stage, client: AsyncOpenAI) -> None:
    """A function of the client's own: called, answered, and the conversation goes on."""
    stage.play(Turn(calls=[("beep", {"times": 2})]), answer="I beeped.")
    messages = list(MESSAGES)
    first = await client.chat.completions.create(model="llama3.2", messages=messages, tools=BEEP)
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls" and message.tool_calls
    call: Any = message.tool_calls[0]
    messages += [
        message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "beep beep"},
    ]
    second = await client.chat.completions.create(model="llama3.2", messages=messages, tools=BEEP)
    assert second.choices[0].message.content == "I beeped."
    sent = stage.prompts[-1]["messages"]
    assert sent[-1]["content"] == "beep beep" and sent[-2]["tool_calls"][0]["function"]["name"] == "beep"


async def test_parsed(stage: Stage, client: AsyncOpenAI) -> None:
    """An answer in the shape of a class."""
    stage.play(Turn('{"amount": 130, "currency": "EUR"}'))
    answer = await client.chat.completions.parse(model="llama3.2", messages=MESSAGES, response_format=Price)
    assert answer.choices[0].message.parsed == Price(amount=130, currency="EUR")
    sent = stage.prompts[0]
    schema = sent["format"] if stage.kind == "ollama" else sent["response_format"]["json_schema"]["schema"]
    assert schema["properties"].keys() == {"amount", "currency"}


async def test_pipeline(stage: Stage, client: AsyncOpenAI) -> None:
    """A knowledge base chosen as the model, with citations where the SDK looks for them."""
    stage.play(answer="A hotel may cost up to 130 EUR a night [1].")
    answer = await client.chat.completions.create(model="pipeline/Travel handbook", messages=MESSAGES)
    message = answer.choices[0].message
    assert message.annotations and message.annotations[0].url_citation.title == "handbook.md"


async def test_models(stage: Stage, client: AsyncOpenAI) -> None:
    """Listed and retrieved, names with a slash and a space as well."""
    from openai import NotFoundError

    stage.play()
    names = [model.id async for model in client.models.list()]
    assert {"llama3.2", "pipeline/Travel handbook"} <= set(names)
    assert (await client.models.retrieve("pipeline/Travel handbook")).owned_by == "pipeline"
    with pytest.raises(NotFoundError):
        await client.models.retrieve("gpt-7")


async def test_embeddings(stage: Stage, client: AsyncOpenAI) -> None:
    """The SDK asks for base64 and unpacks it."""
    made = await client.embeddings.create(model="all-minilm", input=["A hotel", "A train"])
    assert [len(item.embedding) for item in made.data] == [384, 384]
    plain = await client.embeddings.create(model="all-minilm", input="A hotel", encoding_format="float")
    assert plain.data[0].embedding == pytest.approx(made.data[0].embedding, abs=1e-4)


async def test_errors(stage: Stage, client: AsyncOpenAI) -> None:
    """Each is raised as the SDK's own class, with our code; one in mid-stream as well."""
    from openai import APIError, APIStatusError, AsyncOpenAI, AuthenticationError, NotFoundError

    stage.play()
    with pytest.raises(NotFoundError, match="'gpt-7'") as unknown:
        await client.chat.completions.create(model="gpt-7", messages=MESSAGES)
    assert (unknown.value.code, unknown.value.type) == ("model_not_found", "invalid_request_error")
    with pytest.raises(APIStatusError, match="messages: ") as wrong:
        await client.chat.completions.create(model="llama3.2", messages=[])
    assert (wrong.value.status_code, wrong.value.param) == (422, "messages")
    with pytest.raises(APIStatusError, match=r"input\.1: .*check_embedding_ctx_length=False"):
        await client.embeddings.create(model="all-minilm", input=cast(Any, ["A hotel", [1, 2]]))
    async with AsyncOpenAI(base_url=f"{stage.running.url}/v1/ai", api_key="no", max_retries=0) as stranger:
        with pytest.raises(AuthenticationError, match="Invalid token"):
            await stranger.chat.completions.create(model="llama3.2", messages=MESSAGES)
    stage.play(Turn("A long answer."), middle="drop", middle_after=2)
    with pytest.raises(APIError):
        async for _ in await client.chat.completions.create(model="llama3.2", messages=MESSAGES, stream=True):
            pass


class TestResponses:
    """The Responses API."""

    async def test_whole(self, stage: Stage, client: AsyncOpenAI) -> None:
        stage.play(Turn("130 EUR."))
        made = await client.responses.create(
            model="llama3.2", input=HOTEL, instructions="Be brief.", max_output_tokens=50
        )
        assert made.output_text == "130 EUR." and made.status == "completed"
        assert made.usage and made.usage.total_tokens == 18
        assert [message["role"] for message in stage.prompts[0]["messages"]] == ["system", "user"]

    @pytest.mark.parametrize("model", ["llama3.2", "pipeline/Travel handbook"])
    async def test_every_required_field(self, stage: Stage, client: AsyncOpenAI, model: str) -> None:
        """Nothing that the types of the SDK require is missing: it does not check, but other clients do."""
        from openai.types.responses import Response, ResponseStreamEvent

        stage.play(answer="A hotel may cost up to 130 EUR a night [1].")
        whole = await client.responses.with_raw_response.create(model=model, input=HOTEL)
        Response.model_validate_json(whole.text)
        stage.play(answer="A hotel may cost up to 130 EUR a night [1].")
        streamed = await client.responses.with_raw_response.create(model=model, input=HOTEL, stream=True)
        events = [event async for event in streamed.parse()]
        for event in events:
            TypeAdapter[Any](ResponseStreamEvent).validate_python(event.to_dict())
        assert [event.sequence_number for event in events] == list(range(len(events)))

    async def test_parameters(self, stage: Stage, client: AsyncOpenAI) -> None:
        """How much to think and how many calls to make reach a runtime that speaks of them."""
        stage.play()
        made = await client.responses.create(
            model="llama3.2", input=HOTEL, tools=FLAT, parallel_tool_calls=False, reasoning={"effort": "low"}
        )
        assert made.parallel_tool_calls is False
        if stage.kind == "openai":
            sent = stage.prompts[0]
            assert (sent["reasoning_effort"], sent["parallel_tool_calls"]) == ("low", False)

    async def test_functions(self, stage: Stage, client: AsyncOpenAI) -> None:
        stage.play(Turn(calls=[("beep", {"times": 2})]), answer="I beeped.")
        said: Any = [{"role": "user", "content": "Beep!"}]
        first = await client.responses.create(model="llama3.2", input=said, tools=FLAT)
        call: Any = first.output[0]
        assert (call.type, call.name, call.arguments) == ("function_call", "beep", '{"times": 2}')
        said += [item.model_dump(exclude_none=True) for item in first.output]
        said.append({"type": "function_call_output", "call_id": call.call_id, "output": "beep beep"})
        second = await client.responses.create(model="llama3.2", input=said, tools=FLAT)
        assert second.output_text == "I beeped."
        sent = stage.prompts[-1]["messages"]
        assert [message["role"] for message in sent] == ["user", "assistant", "tool"]

    async def test_stream(self, stage: Stage, client: AsyncOpenAI) -> None:
        """The SDK's accumulation: deltas, calls, the platform's steps between, and the whole."""
        stage.play(tool_call("office_weather", city="Oslo"), answer="It rains in Oslo.")
        async with client.responses.stream(
            model="llama3.2", input=HOTEL, extra_body={"platform_tools": True}
        ) as stream:
            kinds = [event.type async for event in stream]
            final = await stream.get_final_response()
        assert final.output_text == "It rains in Oslo." and kinds.count("response.output_text.delta") > 1
        assert kinds.count("response.platform_step") == 2 and kinds[-1] == "response.completed"
        stage.play(Turn(calls=[("beep", {"times": 2})]))
        async with client.responses.stream(model="llama3.2", input=HOTEL, tools=FLAT) as stream:
            kinds = [event.type async for event in stream]
            final = await stream.get_final_response()
        assert "response.function_call_arguments.done" in kinds
        assert final.output[-1].type == "function_call"

    async def test_error_within_a_stream(self, stage: Stage, client: AsyncOpenAI) -> None:
        stage.play(Turn("A long answer."), middle="drop", middle_after=2)
        streamed = await client.responses.with_raw_response.create(model="llama3.2", input=HOTEL, stream=True)
        lines = [line async for line in streamed.http_response.aiter_lines()]
        events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        assert (events[-1]["type"], events[-1]["code"]) == ("error", "model_stream_broken")

    async def test_parsed(self, stage: Stage, client: AsyncOpenAI) -> None:
        """An answer in the shape of a class."""
        stage.play(Turn('{"amount": 130, "currency": "EUR"}'))
        made = await client.responses.parse(model="llama3.2", input=HOTEL, text_format=Price)
        assert made.output_parsed == Price(amount=130, currency="EUR")

    async def test_pipeline(self, stage: Stage, client: AsyncOpenAI) -> None:
        stage.play(answer="A hotel may cost up to 130 EUR a night [1].")
        made = await client.responses.create(model="pipeline/Travel handbook", input=HOTEL)
        part: Any = made.output[0].content[0]  # type: ignore[union-attr]
        assert part.annotations[0].type == "url_citation" and part.annotations[0].title == "handbook.md"

    @pytest.mark.parametrize(
        "reference",
        [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}, {"prompt": {"id": "pmpt_1"}}],
    )
    async def test_nothing_is_kept(
        self, stage: Stage, client: AsyncOpenAI, reference: dict[str, Any]
    ) -> None:
        """A reference to something stored is refused, as nothing is stored here."""
        from openai import UnprocessableEntityError

        stage.play()
        with pytest.raises(UnprocessableEntityError, match="'input'") as refused:
            await client.responses.create(model="llama3.2", input=HOTEL, **reference)
        assert refused.value.param == next(iter(reference))

    async def test_reference(self, stage: Stage, client: AsyncOpenAI) -> None:
        """An item that is referred to must be sent instead: the refusal names `store: false`."""
        from openai import UnprocessableEntityError

        stage.play()
        item: Any = {"type": "item_reference", "id": "msg_1"}
        with pytest.raises(UnprocessableEntityError, match="store: false"):
            await client.responses.create(model="llama3.2", input=[item])

    @pytest.mark.parametrize(
        "body",
        [
            {"input": []},
            {"input": [{"type": "web_search_call"}]},
            {"input": "x", "tools": [{"type": "web_search"}]},
            {"input": "x", "previous_response_id": "resp_1"},
            {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "1"}]}]},
        ],
    )
    async def test_refused(self, stage: Stage, body: dict[str, Any]) -> None:
        stage.play()
        answer = await stage.ann.post("/v1/ai/responses", json={"model": "llama3.2", **body})
        assert answer.status == 422, answer.body
