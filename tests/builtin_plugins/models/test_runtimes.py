"""What both protocols must do alike, against a server that misbehaves on request."""

from __future__ import annotations

import asyncio
import socket
from contextlib import aclosing

import numpy as np
import pytest

from builtin_plugins.inference import api as inference
from builtin_plugins.models.runtimes import (
    AnswerMalformed,
    GenerationRequest,
    ModelRuntime,
    ModelRuntimeError,
    RuntimeBusy,
    RuntimeLacksModel,
    RuntimeRefused,
    RuntimeTimeout,
    RuntimeUnreachable,
    StreamBroken,
    TextDelta,
)
from tests.builtin_plugins.models.conftest import RuntimeFor
from tests.fakes.model_server import SECRET_TEXT, Refusal, Script, model_server, word_vector

PROBED = {"/api/version", "/api/tags", "/v1/models"}
TURKISH = "Ölçüm 3,5 °C: “ışık” → 🙂 bitti."


def ask(text: str = "Hi?", model: str = "tiny") -> GenerationRequest:
    return GenerationRequest(
        model=model,
        messages=[inference.ChatMessage("system", "Be brief."), inference.ChatMessage("user", text)],
    )


async def collect(
    runtime: ModelRuntime, request: GenerationRequest
) -> tuple[list[str], inference.Completion]:
    items = [item async for item in runtime.stream(request)]
    assert isinstance(items[-1], inference.Completion)
    return [item.text for item in items[:-1] if isinstance(item, TextDelta)], items[-1]


async def test_generate_answers_with_text_and_counts(runtime_for: RuntimeFor) -> None:
    """The whole answer arrives with model, finish reason, and prompt and answer tokens together."""
    async with model_server(Script(answer=lambda prompt: f"You said {prompt}")) as server:
        assert await runtime_for(server.url).generate(ask("hey")) == inference.Completion(
            "You said hey", 18, "tiny", "stop", 7
        )


async def test_stream_yields_pieces_and_then_the_whole(runtime_for: RuntimeFor) -> None:
    async with model_server(Script(answer="one two three four")) as server:
        pieces, last = await collect(runtime_for(server.url), ask())
    assert len(pieces) == 5
    assert "".join(pieces) == last.text == "one two three four"
    assert (last.tokens_used, last.finish_reason) == (18, "stop")


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_stream_survives_utf8_cut_anywhere(runtime_for: RuntimeFor, size: int) -> None:
    async with model_server(Script(answer=TURKISH, bytes_per_write=size)) as server:
        _, last = await collect(runtime_for(server.url), ask())
    assert last.text == TURKISH


async def test_request_carries_what_was_asked(runtime_for: RuntimeFor) -> None:
    request = GenerationRequest(
        "tiny", [inference.ChatMessage("user", "x")], 0.1, 5, ("END",), {"seed": 3, "model": "other"}
    )
    async with model_server() as server:
        await runtime_for(server.url).generate(request)
    body = server.requests[0].body
    options = body.get("options", body)
    assert body["model"] == "tiny"
    assert body["messages"] == [{"role": "user", "content": "x"}]
    assert (options["temperature"], options["stop"], options["seed"]) == (0.1, ["END"], 3)
    assert options.get("num_predict", options.get("max_tokens")) == 5


async def test_absent_counts_are_unknown(runtime_for: RuntimeFor) -> None:
    async with model_server(Script(counts=None)) as server:
        runtime = runtime_for(server.url)
        assert (await runtime.generate(ask())).tokens_used is None
        assert (await collect(runtime, ask()))[1].tokens_used is None


async def test_nobody_listening_is_unreachable(runtime_for: RuntimeFor) -> None:
    """A refused connection is ``RuntimeUnreachable``, for streams too, and unhealthy."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    runtime = runtime_for(f"http://127.0.0.1:{port}")
    with pytest.raises(RuntimeUnreachable):
        await runtime.generate(ask())
    with pytest.raises(RuntimeUnreachable):
        await collect(runtime, ask())
    assert not await runtime.healthy()


async def test_an_address_that_is_none_is_unreachable(runtime_for: RuntimeFor) -> None:
    with pytest.raises(RuntimeUnreachable):
        await runtime_for("ollama:11434").generate(ask())


async def test_one_drop_before_the_first_byte_is_retried(runtime_for: RuntimeFor) -> None:
    async with model_server(Script(start="drop", start_times=1)) as server:
        _, last = await collect(runtime_for(server.url), ask())
        assert last.text == "Hello from the fake."
        assert len(server.requests) == 2


async def test_two_drops_before_the_first_byte_are_unreachable(runtime_for: RuntimeFor) -> None:
    async with model_server(Script(start="drop")) as server:
        with pytest.raises(RuntimeUnreachable):
            await runtime_for(server.url).generate(ask())
        assert len(server.requests) == 2


@pytest.mark.parametrize("middle", ["drop", "error", "garbage", "end"])
async def test_a_stream_that_breaks_says_so(runtime_for: RuntimeFor, middle: str) -> None:
    """Drop, error object, bad JSON, silent early end: the pieces, then ``StreamBroken``, no retry."""
    script = Script(middle=middle, finish_reason=None)  # type: ignore[arg-type]
    pieces: list[str] = []
    async with model_server(script) as server:
        with pytest.raises(StreamBroken) as caught:
            async for item in runtime_for(server.url).stream(ask()):
                assert isinstance(item, TextDelta)
                pieces.append(item.text)
        assert len(server.requests) == 1
    assert pieces == ["Hell"]
    assert SECRET_TEXT not in str(caught.value)


async def test_a_line_without_end_is_refused(runtime_for: RuntimeFor) -> None:
    async with model_server(Script(middle="endless_line")) as server:
        with pytest.raises(AnswerMalformed, match="longer than 4096 bytes"):
            await collect(runtime_for(server.url, max_line_bytes=4096), ask())
        await asyncio.wait_for(server.disconnected.wait(), 5)


async def test_an_answer_past_the_size_limit_is_refused(runtime_for: RuntimeFor) -> None:
    async with model_server(Script(answer="x" * 9000, pieces=100)) as server:
        runtime = runtime_for(server.url, max_body_bytes=5000)
        with pytest.raises(AnswerMalformed, match="larger than 5000 bytes"):
            await runtime.generate(ask())
        with pytest.raises(AnswerMalformed, match="larger than 5000 bytes"):
            await collect(runtime, ask())


@pytest.mark.parametrize(
    ("script", "limits"),
    [
        (Script(start="hang"), {"idle_s": 0.1}),
        (Script(middle="hang"), {"idle_s": 0.1}),
        (Script(middle="hang"), {"total_s": 0.2}),
    ],
    ids=["no first token", "idle", "total"],
)
async def test_a_stream_that_hangs_times_out(
    runtime_for: RuntimeFor, script: Script, limits: dict[str, float]
) -> None:
    """It is not retried, and the connection is closed."""
    async with model_server(script) as server:
        with pytest.raises(RuntimeTimeout):
            async with asyncio.timeout(30):
                await collect(runtime_for(server.url, **limits), ask())
        await asyncio.wait_for(server.disconnected.wait(), 5)
        assert len(server.requests) == 1


async def test_a_slow_stream_is_not_an_idle_one(runtime_for: RuntimeFor) -> None:
    """A stream that takes longer than the idle time in all, but is never silent that long, succeeds."""
    async with model_server(Script(answer="x" * 40, pause_s=0.06)) as server:
        _, last = await collect(runtime_for(server.url, idle_s=0.4), ask())
    assert last.text == "x" * 40


async def test_a_slow_stream_meets_the_total_limit(runtime_for: RuntimeFor) -> None:
    async with model_server(Script(answer="x" * 4000, pause_s=0.02)) as server:
        with pytest.raises(RuntimeTimeout):
            await collect(runtime_for(server.url, total_s=0.3), ask())


@pytest.mark.parametrize("start", ["hang", "hang_after_headers"])
async def test_a_call_without_answer_meets_the_total_limit(runtime_for: RuntimeFor, start: str) -> None:
    async with model_server(Script(start=start)) as server:  # type: ignore[arg-type]
        with pytest.raises(RuntimeTimeout):
            await runtime_for(server.url, total_s=0.2).generate(ask())


async def test_a_list_of_models_is_not_waited_for_as_long_as_an_answer(runtime_for: RuntimeFor) -> None:
    async with model_server(Script(start="hang")) as server:
        with pytest.raises(RuntimeTimeout):
            await runtime_for(server.url, look_s=0.1, total_s=600.0).models()
        await server.disconnected.wait()


@pytest.mark.parametrize("streaming", [True, False])
async def test_cancelling_hangs_up(runtime_for: RuntimeFor, streaming: bool) -> None:
    """A cancelled task closes the connection, so that the model stops generating."""
    script = Script(middle="hang") if streaming else Script(start="hang_after_headers")
    async with model_server(script) as server:
        runtime = runtime_for(server.url)
        call = collect(runtime, ask()) if streaming else runtime.generate(ask())
        task = asyncio.ensure_future(call)
        await asyncio.wait_for(server.streaming.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.disconnected.wait(), 5)


async def test_leaving_a_stream_hangs_up(runtime_for: RuntimeFor) -> None:
    async with model_server(Script(middle="hang")) as server:
        async with aclosing(runtime_for(server.url).stream(ask())) as items:
            assert await anext(items) == TextDelta("Hell")
        await asyncio.wait_for(server.disconnected.wait(), 5)


async def test_a_connection_is_used_again_after_a_stream(runtime_for: RuntimeFor) -> None:
    async with model_server() as server:
        runtime = runtime_for(server.url)
        await collect(runtime, ask())
        await runtime.generate(ask())
        assert not server.disconnected.is_set()


async def test_an_unknown_model_is_named(runtime_for: RuntimeFor) -> None:
    """404 for a model is ``RuntimeLacksModel`` with its name: chat, stream, embeddings and description."""
    async with model_server() as server:
        runtime = runtime_for(server.url)
        for call in (
            runtime.generate(ask(model="huge")),
            collect(runtime, ask(model="huge")),
            runtime.embed("huge", ["x"]),
            runtime.describe("huge"),
        ):
            with pytest.raises(RuntimeLacksModel, match="'huge'"):
                await call


async def test_a_wrong_path_is_no_unknown_model(runtime_for: RuntimeFor) -> None:
    async with model_server() as server:
        with pytest.raises(RuntimeRefused) as caught:
            await runtime_for(server.url + "/wrong").generate(ask())
    assert caught.value.upstream_status == 404


@pytest.mark.parametrize("status", [400, 401, 403, 500, 502, 302])
async def test_an_error_status_is_refused_without_its_text(runtime_for: RuntimeFor, status: int) -> None:
    script = Script(start=Refusal(status, headers={"Location": "/api/version"}))
    async with model_server(script) as server:
        runtime = runtime_for(server.url)
        with pytest.raises(RuntimeRefused) as caught:
            await runtime.generate(ask())
        with pytest.raises(RuntimeRefused):
            await collect(runtime, ask())
        assert len(server.requests) == 2
    assert (caught.value.upstream_status, caught.value.status) == (status, 503)
    assert SECRET_TEXT not in caught.value.detail


async def test_too_many_requests_keeps_its_status(runtime_for: RuntimeFor) -> None:
    async with model_server(Script(start=Refusal(429, headers={"Retry-After": "9"}))) as server:
        with pytest.raises(RuntimeBusy) as caught:
            await runtime_for(server.url).generate(ask())
    assert (caught.value.status, caught.value.retry_after) == (429, 9)
    assert caught.value.headers == {"Retry-After": "9"}


async def test_malformed_json_is_an_error(runtime_for: RuntimeFor) -> None:
    async with model_server(Script(start="garbage")) as server:
        runtime = runtime_for(server.url)
        for call in (runtime.generate(ask()), runtime.models(), runtime.embed("tiny", ["x"])):
            with pytest.raises(AnswerMalformed):
                await call
        with pytest.raises(ModelRuntimeError):
            await collect(runtime, ask())
        assert not await runtime.healthy()


async def test_embeddings_are_normalised_in_order_and_batched(runtime_for: RuntimeFor) -> None:
    """Rows follow the texts across batches, in float32 with norm 1, whatever order the answer has."""
    texts = [f"text number {n}" for n in range(7)]
    async with model_server(Script(reverse_embeddings=True)) as server:
        matrix = await runtime_for(server.url, embed_batch=3).embed("tiny", texts)
        assert [len(request.body["input"]) for request in server.requests] == [3, 3, 1]
    expected = np.array([word_vector(text) for text in texts])
    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-6)


async def test_no_texts_need_no_call(runtime_for: RuntimeFor) -> None:
    async with model_server() as server:
        assert (await runtime_for(server.url).embed("tiny", [])).shape == (0, 0)
        assert server.requests == []


@pytest.mark.parametrize(
    "vector", [[float("nan"), 1.0], [], ["a", "b"], None], ids=["nan", "empty", "words", "null"]
)
async def test_embeddings_that_are_none_are_refused(runtime_for: RuntimeFor, vector: list[float]) -> None:
    async with model_server(Script(embedding=lambda text: vector)) as server:
        with pytest.raises(AnswerMalformed):
            await runtime_for(server.url).embed("tiny", ["x", "y"])


async def test_embeddings_of_several_lengths_are_refused(runtime_for: RuntimeFor) -> None:
    async with model_server(Script(embedding=lambda text: [1.0] * len(text))) as server:
        for batch in (1, 2):
            with pytest.raises(AnswerMalformed):
                await runtime_for(server.url, embed_batch=batch).embed("tiny", ["x", "yy"])


async def test_a_zero_vector_stays_zero(runtime_for: RuntimeFor) -> None:
    async with model_server(Script(embedding=lambda text: [0.0, 0.0])) as server:
        assert (await runtime_for(server.url).embed("tiny", ["x"])).tolist() == [[0.0, 0.0]]


async def test_models_are_listed_and_described(runtime_for: RuntimeFor) -> None:
    async with model_server() as server:
        runtime = runtime_for(server.url)
        assert [model.id for model in await runtime.models()] == ["tiny:latest", "tiny"]
        assert (await runtime.describe("tiny")).id == "tiny"
        assert await runtime.healthy()


@pytest.mark.parametrize(("lost", "healthy"), [({"/api/version"}, True), (PROBED, False)])
async def test_any_sign_of_life_counts(runtime_for: RuntimeFor, lost: set[str], healthy: bool) -> None:
    """A runtime without Ollama's newer path is healthy; one that has none of a runtime's paths is not."""
    async with model_server(Script(without=lost)) as server:
        assert await runtime_for(server.url).healthy() is healthy


async def test_health_is_bounded(runtime_for: RuntimeFor) -> None:
    """A runtime that hangs is unhealthy after the health limit, not after the total one."""
    async with model_server(Script(start="hang")) as server:
        async with asyncio.timeout(5):
            assert not await runtime_for(server.url, health_s=0.1, total_s=60).healthy()
