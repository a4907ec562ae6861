"""Limits on models hold wherever the platform calls one, and every call is counted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import text

from kernel.testing import Actor, Running, Start, audited, somebody
from tests.fakes.deleting import delete_account
from tests.fakes.model_server import ModelServer, Script, model_server
from tests.fakes.rows import execute
from tests.fakes.waiting import room_in_the_minute

pytestmark = pytest.mark.asyncio
CHAT, EMBEDDINGS = "/v1/ai/chat/completions", "/v1/ai/embeddings"


@asynccontextmanager
async def stage(start: Start) -> AsyncIterator[tuple[Running, Actor, ModelServer]]:
    """A platform with chats over a scripted runtime, and its administrator."""
    script = Script(answer="Hello there.", models=("small:latest", "small", "nomic-embed-text"))
    async with model_server(script) as server:
        env = {"OLLAMA_BASE_URL": server.url, "RATE_LIMIT_ENABLED": "true"}
        running = await start("models", "orchestrator", env=env)
        yield running, await somebody(running, role="admin"), server


async def limit(admin: Actor, model: str = "small", **rules: Any) -> None:
    answer = await admin.post(f"/v1/models/{model}/constraints", json=rules)
    assert answer.status == 200, answer.body


async def chat(actor: Actor, **more: Any) -> Any:
    body = {"model": "small", "messages": [{"role": "user", "content": "Hello"}], **more}
    return await actor.post(CHAT, json=body)


async def test_only_some_may(start_anywhere: Start) -> None:
    async with stage(start_anywhere) as (running, admin, _):
        ann, bob = await somebody(running), await somebody(running)
        await limit(admin, allowed_users=[ann.user["username"]])
        await limit(admin, "nomic-embed-text", allowed_roles=["admin"])
        assert (await chat(ann)).status == 200
        refused = await chat(bob)
        assert (refused.status, refused.json()["code"]) == (403, "model_not_allowed")
        assert (await bob.post("/v1/models/small/test", json={})).status == 403
        body = {"model": "nomic-embed-text", "input": "text"}
        assert (await ann.post(EMBEDDINGS, json=body)).status == 403
        assert (await admin.post(EMBEDDINGS, json=body)).status == 200
        await limit(admin, allowed_users=[bob.user["id"]])
        assert ((await chat(bob)).status, (await chat(ann)).status) == (200, 403)
        await limit(admin)
        assert (await chat(ann)).status == 200


@pytest.mark.parametrize(
    "name", ["Small", "SMALL:latest", "library/small", "https://registry.ollama.ai/library/small:latest"]
)
async def test_no_other_name_of_the_model_passes(start_platform: Start, name: str) -> None:
    """Ollama serves one model under several names; a limit on it holds for all, as soon as it is set."""
    async with model_server(Script(answer="Hello there.", models=("small:latest", "small", name))) as server:
        running = await start_platform("models", "orchestrator", env={"OLLAMA_BASE_URL": server.url})
        admin, bob = await somebody(running, role="admin"), await somebody(running)
        assert (await chat(bob, model=name)).status == 200
        await limit(admin, allowed_roles=["admin"])
        refused = await chat(bob, model=name)
        assert (refused.status, refused.json()["code"]) == (403, "model_not_allowed"), refused.body


@pytest.mark.parametrize("name", ["library/small", "Größe/Übersetzer"])
async def test_a_limit_holds_for_the_name_on_which_it_was_set(start_platform: Start, name: str) -> None:
    """Also where a runtime lists the model under a name that Ollama would shorten, or SQLite can't lower."""
    async with model_server(Script(answer="Hello there.", models=(name,))) as server:
        running = await start_platform("models", "orchestrator", env={"OPENAI_BASE_URL": server.url})
        admin, bob = await somebody(running, role="admin"), await somebody(running)
        await limit(admin, name, allowed_roles=["admin"])
        refused = await chat(bob, model=name)
        assert (refused.status, refused.json()["code"]) == (403, "model_not_allowed"), refused.body


async def test_calls_in_a_minute(start_anywhere: Start) -> None:
    """Each account has its own count, over every way in which it calls the model."""
    async with stage(start_anywhere) as (running, admin, _):
        ann, bob = await somebody(running), await somebody(running)
        await limit(admin, rate_limit=2)
        assert (await chat(ann)).status == 200
        assert (await ann.post("/v1/models/small/test", json={})).status == 200
        refused = await chat(ann)
        assert (refused.status, refused.json()["code"]) == (429, "model_rate_limited")
        assert int(refused.headers["Retry-After"]) > 0
        assert (await chat(bob)).status == 200


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"max_tokens": 500},
        {"max_completion_tokens": 500},
        {"max_tokens": 5},
        {"max_tokens": 500.0},
        {"options": {"num_predict": 1e9}},
        {"options": {"top_k": 5}},
    ],
)
async def test_tokens_are_capped(start_platform: Start, asked: dict[str, Any]) -> None:
    """More than the cap becomes the cap, less stays, nothing said is the cap."""
    async with stage(start_platform) as (running, admin, server):
        await limit(admin, max_tokens=50)
        assert (await chat(await somebody(running), **asked)).status == 200
        sent = next(one for one in reversed(server.requests) if one.path == "/api/chat")
        assert sent.body["options"]["num_predict"] == (5 if asked == {"max_tokens": 5} else 50)


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "num_predict", "n_predict"])
async def test_no_name_of_the_wish_passes_the_cap(start_platform: Start, name: str) -> None:
    async with model_server(Script(answer="Hello there.", models=("small",))) as server:
        env = {"OPENAI_BASE_URL": server.url, "RATE_LIMIT_ENABLED": "false"}
        running = await start_platform("models", "orchestrator", env=env)
        await limit(await somebody(running, role="admin"), max_tokens=50)
        ann = await somebody(running)
        wishes = (500, 500.0, "500", -1, True)
        for body in [{name: wish} for wish in wishes] + [{"options": {name: wish}} for wish in wishes]:
            assert (await chat(ann, **body)).status == 200
            sent = next(one for one in reversed(server.requests) if one.path.endswith("/chat/completions"))
            got = sent.body or {}
            asked = [got[key] for key in ("max_tokens", name) if key in got]
            assert asked and all(value == 50 for value in asked), (body, got)


@pytest.mark.parametrize("name", ["Max_Tokens", "max_to\u212aens", "Model", "Messages"])
async def test_no_other_spelling_passes(start_platform: Start, name: str) -> None:
    """Servers written in Go read names in any case, and of several the last; so only lower case is sent."""
    async with model_server(Script(answer="Hello there.", models=("small",))) as server:
        running = await start_platform("models", "orchestrator", env={"OPENAI_BASE_URL": server.url})
        ann = await somebody(running)
        for body in ({name: "other"}, {"options": {name: "other"}}):
            assert (await chat(ann, top_k=5, **body)).status == 200
            sent = next(one for one in reversed(server.requests) if one.path.endswith("/chat/completions"))
            assert set(sent.body or {}) == {"model", "messages", "top_k"}


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "num_predict"])
async def test_a_smaller_wish_among_ollamas_options_stays(start_platform: Start, name: str) -> None:
    async with model_server(Script(answer="Hello there.", models=("small",))) as server:
        running = await start_platform("models", "orchestrator", env={"OPENAI_BASE_URL": server.url})
        await limit(await somebody(running, role="admin"), max_tokens=50)
        assert (await chat(await somebody(running), options={name: 5})).status == 200
        sent = next(one for one in reversed(server.requests) if one.path.endswith("/chat/completions"))
        assert {value for key, value in (sent.body or {}).items() if key.startswith("max_")} == {5}


async def test_what_can_not_be_kept_is_refused(start_platform: Start) -> None:
    async with stage(start_platform) as (_, admin, _server):
        for wrong in (
            {"cost_limit": 5.0},
            {"content_filtering": True},
            {"rate_limit": 0},
            {"max_tokens": -1},
        ):
            assert (await admin.post("/v1/models/small/constraints", json=wrong)).status == 422
        assert (await admin.post("/v1/models/nothing/constraints", json={})).status == 404


async def test_limits_are_shown_and_noted(start_anywhere: Start) -> None:
    async with stage(start_anywhere) as (running, admin, _):
        await limit(admin, rate_limit=7)
        shown = (await admin.get("/v1/models/small/constraints")).json()
        assert (shown["model"], shown["rate_limit"], shown["max_tokens"]) == ("small", 7, None)
        ann = await somebody(running)
        assert (await ann.get("/v1/models/small/constraints")).status == 403
        assert (await ann.post("/v1/models/small/constraints", json={})).status == 403
        [entry] = await audited(running, "model.constrained")
        assert (entry.before_state["rate_limit"], entry.after_state["rate_limit"]) == (None, 7)


async def test_use_is_counted(start_anywhere: Start) -> None:
    async with stage(start_anywhere) as (running, admin, server):
        ann = await somebody(running)
        await asyncio.gather(*(chat(ann) for _ in range(3)))
        await ann.post("/v1/models/small/test", json={})
        server.script.middle, server.script.middle_after = "drop", 0
        await chat(ann, stream=True)
        shown = (await admin.get("/v1/models/small/metrics")).json()
        parts = {row["part"]: row for row in shown["days"]}
        assert (parts["orchestrator"]["calls"], parts["orchestrator"]["errors"]) == (4, 1)
        assert parts["orchestrator"]["tokens"] == 3 * 18
        assert parts["model-management"]["calls"] == 1
        assert (shown["calls"], shown["errors"], shown["tokens"]) == (5, 1, 4 * 18)
        assert (await ann.get("/v1/models/small/metrics")).status == 403
        assert (await admin.get("/v1/models/unheard/metrics")).json()["calls"] == 0


async def test_use_that_can_not_be_written(start_platform: Start, caplog: pytest.LogCaptureFixture) -> None:
    """It is kept until the database takes it. The outage and its end are logged once."""
    async with stage(start_platform) as (running, admin, _):
        caplog.set_level(logging.INFO)
        database, metrics = running.platform.database, "/v1/models/small/metrics"
        refuse = "BEFORE INSERT ON models_use BEGIN SELECT RAISE(ABORT, 'not now'); END"
        await execute(database, text(f"CREATE TRIGGER refuse {refuse}"))
        for _ in range(3):
            await chat(admin)
            assert (await admin.get(metrics)).json()["calls"] == 0
        await execute(database, text("DROP TRIGGER refuse"))
        for _ in range(2):
            assert (await admin.get(metrics)).json()["calls"] == 3
    told = [record.getMessage() for record in caplog.records if "uses of models" in record.getMessage()]
    assert [text.endswith(": IntegrityError") for text in told] == [True, False]


async def test_models_that_are_built_in(start_platform: Start) -> None:
    """Limits hold for them as well, by whichever name they are asked for, and their use is counted."""
    running = await start_platform("embeddings", "models", "orchestrator", env={"RATE_LIMIT_ENABLED": "true"})
    admin, ann, bob = [await somebody(running, role=role) for role in ("admin", "user", "user")]
    body = {"model": "all-minilm", "input": "text"}
    await limit(admin, "all-minilm", allowed_users=[ann.user["username"]], rate_limit=2)
    await room_in_the_minute(10)
    for _ in range(2):
        assert (await ann.post(EMBEDDINGS, json=body)).status == 200
    limited = await ann.post(EMBEDDINGS, json=body)
    assert (limited.status, limited.json()["code"]) == (429, "model_rate_limited")
    for name in ("all-minilm", "all-MiniLM-L6-v2"):
        refused = await bob.post(EMBEDDINGS, json={**body, "model": name})
        assert (refused.status, refused.json()["code"]) == (403, "model_not_allowed"), name
    shown = (await admin.get("/v1/models/all-minilm/metrics")).json()
    assert (shown["calls"], shown["errors"], shown["days"][0]["part"]) == (2, 0, "orchestrator")


async def test_how_many_models(start_platform: Start) -> None:
    """The gauge counts each model once, as the runtimes listed them last."""
    async with stage(start_platform) as (running, _, _server):
        await running.anonymous.get("/v1/models")
        metrics = (await running.anonymous.get("/metrics")).body.decode()
        assert "\nmodels_registered_total 2.0\n" in metrics


async def test_the_name_of_a_deleted_account(start_anywhere: Start) -> None:
    """Whoever takes its name does not take its right to a model, and an emptied list lets nobody in."""
    async with stage(start_anywhere) as (running, admin, _):
        ann = await running.user()
        await limit(admin, allowed_users=[ann.user["username"]])
        assert (await chat(ann)).status == 200
        await delete_account(running, ann)
        again = await running.user(ann.user["username"])
        assert (await chat(again)).status == 403
        assert (await chat(await somebody(running))).status == 403
        shown = (await admin.get("/v1/models/small/constraints")).json()
        assert shown["allowed_users"] == [str(ann.user["id"])]
