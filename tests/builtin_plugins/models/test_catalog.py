"""`/v1/models` over several runtimes: listed in order, each model once, described, deleted, tried."""

from __future__ import annotations

import asyncio

import pytest

from builtin_plugins.models.services.model_calls import MODELS
from kernel.testing import Running, Start, audited, somebody
from tests.fakes.model_server import ModelServer, Script, model_server

pytestmark = pytest.mark.asyncio


async def two(start: Start, first: ModelServer, second: ModelServer, **more: str) -> Running:
    """A platform with an Ollama named `gpu` before an OpenAI-compatible server named `cloud`."""
    named = f"gpu=ollama+{first.url},cloud=openai+{second.url}"
    env = {"PLATFORM_MODELS_RUNTIMES": named, "OLLAMA_LLM_MODEL": "small", **more}
    return await start("models", "orchestrator", env=env)


async def test_no_runtime_no_models(start_platform: Start) -> None:
    """What is merely not configured is an empty list, and a service that is well."""
    running = await start_platform("models")
    answer = await running.anonymous.get("/v1/models")
    assert (answer.status, answer.json()) == (
        200,
        {"items": [], "total": 0, "limit": 50, "offset": 0, "object": "list", "data": []},
    )
    pull = await (await somebody(running, role="admin")).post("/v1/models", json={"model_id": "llama3.2"})
    assert (pull.status, pull.json()["code"]) == (503, "no_model_runtime")


async def test_several_runtimes(start_platform: Start) -> None:
    """In their order, each model once; the first that has a model answers, a prefix names another."""
    async with (
        model_server(Script(answer="from gpu", models=("small:latest", "nomic-embed-text"))) as gpu,
        model_server(Script(answer="from cloud", models=("small", "big"))) as cloud,
    ):
        running = await two(start_platform, gpu, cloud)
        page = (await running.anonymous.get("/v1/models")).json()
        shown = [(item["id"], item["provider"], item["runtime"], item["size"]) for item in page["items"]]
        assert shown == [
            ("small:latest", "ollama", "gpu", "1.23 GB"),
            ("nomic-embed-text", "ollama", "gpu", "1.23 GB"),
            ("big", "openai", "cloud", "Unknown"),
        ]
        assert [item["id"] for item in page["data"]] == [item["id"] for item in page["items"]]
        assert (await running.anonymous.get("/v1/models?limit=1&offset=2")).json()["items"][0]["id"] == "big"
        ann = await somebody(running)
        for model, said in (("small:latest", "gpu"), ("cloud/small", "cloud"), ("big", "cloud")):
            gpu.script.models = ("small:latest", "small", "nomic-embed-text")
            body = {"model": model, "messages": [{"role": "user", "content": "Where are you?"}]}
            answer = await ann.post("/v1/ai/chat/completions", json=body)
            assert answer.json()["choices"][0]["message"]["content"] == f"from {said}", answer.body


async def test_first_chats_at_once(start_platform: Start) -> None:
    """Of chats that come together one asks which runtime has the model; the others wait for the answer."""
    async with (
        model_server(Script(answer="from gpu", models=("small",))) as gpu,
        model_server(Script(answer="from cloud", models=("big",))) as cloud,
    ):
        running = await two(start_platform, gpu, cloud)
        ann = await somebody(running)
        body = {"model": "big", "messages": [{"role": "user", "content": "Where are you?"}]}
        answers = await asyncio.gather(*(ann.post("/v1/ai/chat/completions", json=body) for _ in range(8)))
        assert [answer.status for answer in answers] == [200] * 8, answers[-1].body


async def test_who_leaves_has_asked_nothing(start_platform: Start) -> None:
    """A client that leaves while its chat looks for a model doesn't hide the model from the next one."""
    async with model_server(Script(models=("small",))) as gpu, model_server(Script(models=("big",))) as cloud:
        models = (await two(start_platform, gpu, cloud)).platform.resource(MODELS)
        leaving = [asyncio.create_task(server.look(30)) for server in models.servers]
        waiting = [asyncio.create_task(models.choose("big")) for _ in range(3)]
        await asyncio.sleep(0)
        for task in leaving:
            task.cancel()
        assert [(await task)[0].name for task in waiting] == ["cloud"] * 3


async def test_a_silent_runtime_hides_no_other(start_platform: Start) -> None:
    """One that does not answer costs its own models; without any that does, the list is 503."""
    async with model_server(Script(models=("big",))) as cloud:
        env = {"OLLAMA_BASE_URL": "http://127.0.0.1:9", "OPENAI_BASE_URL": cloud.url}
        running = await start_platform("models", "orchestrator", env=env)
        assert [item["id"] for item in (await running.anonymous.get("/v1/models")).json()["items"]] == ["big"]
        ann = await somebody(running)
        body = {"model": "big", "messages": [{"role": "user", "content": "Hello"}]}
        assert (await ann.post("/v1/ai/chat/completions", json=body)).status == 200
        assert (await running.anonymous.get("/v1/models/other")).status == 503
    running = await start_platform("models", env={"OLLAMA_BASE_URL": "http://127.0.0.1:9"})
    answer = await running.anonymous.get("/v1/models")
    assert answer.status == 503
    assert "127.0.0.1" not in answer.detail


async def test_one_model(start_platform: Start) -> None:
    """By its name with or without ``:latest``; a wrong one is 404; a test is limited to five a minute."""
    async with model_server(Script(answer="pong", models=("small:latest", "hub/of/models"))) as gpu:
        env = {"OLLAMA_BASE_URL": gpu.url, "RATE_LIMIT_ENABLED": "true"}
        running = await start_platform("models", env=env)
        for name in ("small", "small:latest", "ollama/small", "hub/of/models"):
            found = await running.anonymous.get(f"/v1/models/{name}")
            assert (found.status, found.json()["status"]) == (200, "ready")
            assert found.json()["capabilities"] == ["completion", "tools"]
        unknown = await running.anonymous.get("/v1/models/nothing")
        assert (unknown.status, unknown.json()["code"]) == (404, "model_not_found")
        ann = await somebody(running)
        assert (await running.anonymous.post("/v1/models/small/test", json={})).status == 401
        answer = await ann.post("/v1/models/small/test")
        assert answer.json() == {
            "model": "small:latest", "prompt": "Hello, test.", "response": "pong", "status": "success",
        }  # fmt: skip
        assert (await ann.post("/v1/models/hub/of/models/test", json={"prompt": "ping"})).status == 200
        assert (await ann.post("/v1/models/nothing/test", json={})).status == 404
        statuses = [(await ann.post("/v1/models/small/test", json={})).status for _ in range(4)]
        assert statuses[-1] == 429


async def test_deleting(start_platform: Start) -> None:
    """Administrators only; gone from the list at once, noted in the log; a server that can't says so."""
    async with (
        model_server(Script(models=("small:latest",))) as gpu,
        model_server(Script(models=("big",))) as cloud,
    ):
        running = await two(start_platform, gpu, cloud)
        admin, ann = await somebody(running, role="admin"), await somebody(running)
        assert (await ann.delete("/v1/models/small")).status == 403
        deleted = await admin.delete("/v1/models/small")
        assert (deleted.status, deleted.json()["model"], deleted.json()["status"]) == (
            *(200, "small:latest"),
            "deleted",
        )
        assert [item["id"] for item in (await running.anonymous.get("/v1/models")).json()["items"]] == ["big"]
        assert (await admin.delete("/v1/models/small")).status == 404
        refused = await admin.delete("/v1/models/big")
        assert (refused.status, refused.json()["code"]) == (409, "model_not_deletable")
        [entry] = await audited(running, "model.deleted")
        assert entry.target_id == "small:latest"


async def test_fine_tuning(start_platform: Start) -> None:
    """Stays away: 501, for administrators only."""
    running = await start_platform("models")
    admin, ann = await somebody(running, role="admin"), await somebody(running)
    answer = await admin.post("/v1/models/fine-tune", json={"base_model": "small"})
    assert (answer.status, "not implemented" in answer.detail) == (501, True)
    assert (await ann.post("/v1/models/fine-tune", json={"base_model": "small"})).status == 403


async def test_its_health(start_platform: Start) -> None:
    """The service counts its models, and names who is silent."""
    async with model_server(Script(models=("small", "big"))) as gpu:
        running = await start_platform("models", env={"OLLAMA_BASE_URL": gpu.url})
        shown = (await running.anonymous.get("/health")).json()["checks"]
        assert shown["model_management"] == "healthy"
        assert shown["ollama"] == "healthy"
