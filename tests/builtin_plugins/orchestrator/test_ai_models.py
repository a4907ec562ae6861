"""Models by OpenAI's protocol: listed with the caller's pipelines, asked by name, and embeddings."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest

from tests.builtin_plugins.orchestrator.chat_support import HOTEL, Stage
from tests.builtin_plugins.rag.rag_support import NOWHERE, ingest, make_base, make_pipeline
from tests.fakes.model_server import Turn

pytestmark = pytest.mark.asyncio(loop_scope="session")

MODEL = "pipeline/Travel handbook"
COUNTED = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


async def test_listed(stage: Stage) -> None:
    """The runtime's models, those that embed, and the caller's pipelines; nobody else's."""
    stage.play()
    answer = (await stage.ann.get("/v1/ai/models")).json()
    found = {item["id"]: item["owned_by"] for item in answer["data"]}
    assert answer["object"] == "list" and all(item["object"] == "model" for item in answer["data"])
    assert found["llama3.2"] == "model-runtime" and found["multilingual-e5-small"] == "embeddings"
    assert found[MODEL] == "pipeline" and found["nomic-embed-text"] == "embeddings"
    ben = await stage.running.user()
    assert MODEL not in str((await ben.get("/v1/ai/models")).body)


async def test_one(stage: Stage) -> None:
    """By name, a pipeline also by its id; another account's as unknown as none."""
    stage.play()
    ben = await stage.running.user()
    for name in ("llama3.2", "all-minilm", MODEL):
        assert (await stage.ann.get(f"/v1/ai/models/{name}")).json()["id"] == name
    by_id = f"pipeline/{stage.pipeline}"
    assert (await stage.ann.get(f"/v1/ai/models/{by_id}")).json()["id"] == MODEL
    hidden, unknown = [await ben.get(f"/v1/ai/models/{name}") for name in (by_id, f"pipeline/{NOWHERE}")]
    assert hidden.status == unknown.status == 404
    assert hidden.detail.replace(stage.pipeline, NOWHERE) == unknown.detail
    assert (await stage.ann.get("/v1/ai/models/gpt-7")).json()["code"] == "model_not_found"


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/ai/images/generations"), ("GET", "/v1/ai/threads/1")]
)
async def test_what_is_not_here(stage: Stage, method: str, path: str) -> None:
    """OpenAI's clients show nothing but `error`, also for those of its routes that there are not."""
    reply = await stage.ann.request(method, path)
    body = reply.json()
    assert (reply.status, body["error"]["type"]) == (404, "invalid_request_error"), body
    assert (body["error"]["message"], body["error"]["code"]) == (body["detail"], body["code"])
    assert "error" not in (await stage.ann.get("/v1/nowhere")).json()


async def test_tag_of_one(stage: Stage) -> None:
    """A model is found with and without its tag `latest`, like in a chat."""
    stage.play(models=["llama3.2", "qwen3:latest"])
    for name in ("llama3.2:latest", "qwen3", "qwen3:latest"):
        assert (await stage.ann.get(f"/v1/ai/models/{name}")).json().get("id") == name
    assert (await stage.ann.get("/v1/ai/models/qwen3:4b")).status == 404


async def test_chat_with_a_pipeline(stage: Stage, bare: Stage) -> None:
    stage.play(answer="A hotel may cost up to 130 EUR a night [1].")
    for here, usage in ((stage, COUNTED), (bare, dict.fromkeys(COUNTED, 0))):
        answer = await here.answer(model=MODEL)
        message = answer["message"]
        assert "130 EUR" in message["content"] and answer["model"] == MODEL
        cited = message["annotations"][0]
        place = cited["url_citation"]
        assert cited["type"] == "url_citation" and place["title"] == "handbook.md"
        assert message["content"][place["start_index"] : place["end_index"]] == "[1]"
        assert (await here.ann.get(place["url"].partition("#")[0])).status == 200
        assert answer["platform_sources"][0]["knowledge_base_id"] == here.base
        assert answer["usage"] == usage
        assert not [key for key in answer if key.startswith("platform_tool")]


async def test_what_a_pipeline_leaves_out(stage: Stage) -> None:
    """Functions, formats and limits that only a model could heed: the answer says that they were not."""
    beep = {"type": "function", "function": {"name": "beep", "parameters": {"type": "object"}}}
    stage.play(answer="Up to 130 EUR [1].")
    answer = await stage.answer(model=MODEL, tools=[beep], response_format={"type": "json_object"})
    assert [said.partition(":")[0] for said in answer["platform_degraded"]] == ["tools", "response_format"]
    answer = await stage.answer(model=MODEL, tools=[], response_format={"type": "text"})
    assert "platform_degraded" not in answer
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    seen = [{"role": "user", "content": [{"type": "text", "text": HOTEL}, picture]}]
    answer = await stage.answer(model=MODEL, messages=seen)
    assert [said.partition(":")[0] for said in answer["platform_degraded"]] == ["messages"]
    for name in ("max_tokens", "max_completion_tokens"):
        used = answer["usage"]["completion_tokens"]
        assert "platform_degraded" not in await stage.answer(model=MODEL, **{name: used})
        longer = await stage.answer(model=MODEL, **{name: used - 1})
        assert [said.partition(":")[0] for said in longer["platform_degraded"]] == [name]


async def test_stream_of_a_pipeline(bare: Stage) -> None:
    streamed = await bare.stream(model=f"pipeline/{bare.pipeline}")
    assert "130 EUR" in streamed.text and streamed.done
    assert streamed.deltas[-1]["annotations"][0]["url_citation"]["title"] == "handbook.md"


async def test_sources_for_open_webui(stage: Stage) -> None:
    """It takes `[n]` for the n-th distinct source of a message: two of one document are two."""
    base = await make_base(stage.ann, name="Cities")
    hotels = "\n\n".join(f"A hotel in city {n} may cost up to {n} EUR a night." for n in range(90))
    await ingest(stage.running, stage.ann, base, "cities.md", hotels)
    await make_pipeline(stage.ann, base, name="Cities")
    stage.play(answer="Only the last one says so [2].")
    streamed = await stage.stream(model="pipeline/Cities")
    event = streamed.chunks[-1]["event"]
    passages = streamed.chunks[-1]["platform_sources"]
    places = [one["source"] for one in event["data"]["metadata"]]
    assert event["type"] == "source"
    assert len(passages) > len({one["document_id"] for one in passages})
    assert event["data"]["document"] == [one["text"] for one in passages]
    assert len(set(places)) == len(passages)
    assert places[1] == streamed.deltas[-1]["annotations"][0]["url_citation"]["url"]


async def test_history_reaches_the_pipeline(stage: Stage) -> None:
    """A question that needs the earlier messages is completed from them, and the answer cites."""
    stage.play(Turn('{"question": "What may a hotel cost per night?"}'), answer="Up to 130 EUR [1].")
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is the allowance for meals?"},
        {"role": "assistant", "content": "42 EUR [1]."},
        {"role": "user", "content": "And for a hotel?"},
    ]
    answer = await stage.answer(model=MODEL, messages=messages)
    assert answer["message"]["content"] == "Up to 130 EUR [1]."
    assert answer["message"]["annotations"][0]["url_citation"]["title"] == "handbook.md"
    rewriting, asking = [str(prompt["messages"]) for prompt in stage.prompts]
    assert "allowance for meals" in rewriting and "And for a hotel?" in rewriting
    assert "130 EUR" in asking
    assert answer["usage"] == {name: 2 * count for name, count in COUNTED.items()}


async def test_last_question_counts(bare: Stage) -> None:
    """The last message of the user is the question, parts included; without one the body is wrong."""
    messages = [
        {"role": "user", "content": "What is the allowance for meals?"},
        {"role": "assistant", "content": "42 EUR [1]."},
        {"role": "user", "content": [{"type": "text", "text": HOTEL}]},
    ]
    assert "130" in (await bare.answer(model=MODEL, messages=messages))["message"]["content"]
    nothing: list[Any] = [" ", [], [{"type": "text"}], [{"type": "text", "text": None}]]
    for wrong in ({"role": "assistant", "content": "x"}, *({"role": "user", "content": c} for c in nothing)):
        assert (await bare.chat(model=MODEL, messages=[wrong])).status == 422, wrong


async def test_pipelines_of_others(bare: Stage) -> None:
    ben = await bare.running.user()
    for stream in (False, True):
        hidden, unknown = [
            await bare.chat(actor=ben, model=f"pipeline/{one}", stream=stream)
            for one in (bare.pipeline, NOWHERE)
        ]
        assert hidden.status == unknown.status == 404
        assert hidden.detail.replace(bare.pipeline, NOWHERE) == unknown.detail


async def test_names_that_clash(bare: Stage) -> None:
    """Of two pipelines with one name the older has it; both can be chosen, as models and as tools."""
    cleo = await bare.running.user()
    base = (await cleo.post("/v1/rag/knowledge-bases", json={"name": "Empty"})).json()["id"]
    ids = [await make_pipeline(cleo, base, name=name) for name in ("Ask me!", "Ask me!", "ask ME", "!!!")]
    models = [item["id"] for item in (await cleo.get("/v1/ai/models")).json()["data"]]
    assert models[-4:] == ["pipeline/Ask me!", f"pipeline/{ids[1]}", "pipeline/ask ME", "pipeline/!!!"]
    tools = (await cleo.get("/v1/ai/functions/definitions")).json()["tools"]
    names = [tool["function"]["name"] for tool in tools if tool["metadata"]["kind"] == "rag_pipeline"]
    assert names == ["ask_ask_me", f"ask_ask_me_{ids[1][:8]}", f"ask_ask_me_{ids[2][:8]}", "ask_pipeline"]


async def test_embeddings(bare: Stage) -> None:
    """Numbers or base64, in the order of the texts, each of length 1."""
    body = {"model": "all-minilm", "input": ["A hotel", "A train", "A hotel"]}
    answer = await bare.ann.post("/v1/ai/embeddings", json=body)
    assert answer.status == 200, answer.body
    first, second, third = [item["embedding"] for item in answer.json()["data"]]
    assert first == third != second and abs(sum(x * x for x in first) - 1) < 1e-3
    assert [item["index"] for item in answer.json()["data"]] == [0, 1, 2]
    assert answer.json()["usage"]["total_tokens"] == 6
    packed = await bare.ann.post(
        "/v1/embeddings", json={"model": "all-minilm", "input": "A hotel", "encoding_format": "base64"}
    )
    plain = await bare.ann.post(
        "/v1/ai/embeddings", json={"model": "all-minilm", "input": "A hotel", "encoding_format": None}
    )
    assert plain.json()["data"][0]["embedding"] == pytest.approx(first, abs=1e-4)
    raw = base64.b64decode(packed.json()["data"][0]["embedding"])
    assert struct.unpack(f"<{len(first)}f", raw) == pytest.approx(first, abs=1e-4)


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"model": "gpt-7"}, 404, "gpt-7"),
        ({"input": []}, 422, "1 to 2048"),
        ({"input": [[1, 2]]}, 422, "check_embedding_ctx_length=False"),
        ({"input": [1, 2]}, 422, "token ids"),
        ({"input": [""]}, 422, "characters"),
        ({"input": ["x"] * 2049}, 422, "2048"),
        ({"dimensions": 5}, 422, "384"),
        ({"encoding_format": "hex"}, 422, "float"),
    ],
)
async def test_embeddings_refused(bare: Stage, change: dict[str, object], status: int, said: str) -> None:
    """What does not fit says what would."""
    body = {"model": "all-minilm", "input": "x", **change}
    answer = await bare.ann.post("/v1/ai/embeddings", json=body)
    assert answer.status == status and said in answer.body.decode(), answer.body
