"""Model servers that an administrator connects: tested, stored encrypted, used by every process at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.inference import api as inference
from builtin_plugins.models.services.model_calls import MODELS
from kernel.sdk.accounts import OwnerSecret
from kernel.testing import Actor, Running, Start, audited, eventually, somebody
from tests.fakes.model_server import Refusal, Script, model_server

pytestmark = pytest.mark.asyncio

KEY = "sk-0123456789-very-secret"
CONNECTIONS = "/v1/models/connections"
CHAT = {"messages": [{"role": "user", "content": "Who are you?"}]}


def _sealed(session: Session) -> list[bytes]:
    return list(session.scalars(select(OwnerSecret.sealed)))


async def administrator(start: Start, **env: str | None) -> tuple[Running, Actor]:
    """A platform that looks for servers nowhere, unless `env` says otherwise."""
    running = await start("models", "orchestrator", env={"PLATFORM_MODELS_NEARBY": "", **env})
    return running, await somebody(running, role="admin")


async def answer_of(person: Actor, **more: Any) -> Any:
    """What a model answers, and the refusal's code if none does."""
    answer = await person.post("/v1/ai/chat/completions", json={**CHAT, **more})
    return (
        answer.json()["choices"][0]["message"]["content"] if answer.status == 200 else answer.json()["code"]
    )


async def test_two_clicks(start_anywhere: Start) -> None:
    """Found, connected with a model, and answering without a restart; disconnected, and gone."""
    async with model_server(Script(answer="from gpu", models=("nomic-embed-text", "small"))) as gpu:
        running, admin = await administrator(
            start_anywhere, PLATFORM_MODELS_NEARBY=f"{gpu.url},http://127.0.0.1:9"
        )
        (near,) = (await admin.get(f"{CONNECTIONS}/nearby")).json()["items"]
        assert (near["kind"], near["chat_models"], near["connection"]) == ("ollama", ["small"], None)
        person = await somebody(running)
        assert (await person.get("/v1/models/choices")).json() == {"items": [], "default": None}
        saved = await admin.put(f"{CONNECTIONS}/gpu", json={"url": near["url"]})
        assert (saved.status, saved.json()["origin"], saved.json()["is_used"]) == (200, "saved", True), (
            saved.body
        )
        assert await answer_of(person) == "from gpu"
        assert (await person.get("/v1/models/choices")).json() == {
            "items": [{"model": "gpu/small", "name": "small", "runtime": "gpu"}],
            "default": "gpu/small",
        }
        assert (await admin.get(f"{CONNECTIONS}/nearby")).json()["items"][0]["connection"] == "gpu"
        assert (await admin.delete(f"{CONNECTIONS}/gpu")).status == 200
        assert (await admin.get("/v1/models/defaults")).json()["answers"] is None
        assert (await admin.delete(f"{CONNECTIONS}/gpu")).json()["code"] == "model_connection_not_found"
        assert running.platform.resource(MODELS).servers == []
    actions = [entry.action for entry in await audited(running) if entry.target_type.startswith("model")]
    assert actions == [
        "model_server.connected",
        "model.default_set",
        "model.default_set",
        "model_server.disconnected",
    ]


async def test_default_that_a_changed_server_lacks(start_platform: Start) -> None:
    """The default moves on with the connection that runs it, and stays while it is still there."""
    async with model_server(Script(models=("small",))) as old, model_server(Script(models=("big",))) as new:
        _, admin = await administrator(start_platform)
        for url, default in ((old.url, "gpu/small"), (old.url, "gpu/small"), (new.url, "gpu/big")):
            await admin.put(f"{CONNECTIONS}/gpu", json={"url": url})
            assert (await admin.get("/v1/models/defaults")).json()["answers"] == default


async def test_another_process(start_anywhere: Start) -> None:
    """A process that runs already uses a new connection, and no longer one that was removed."""
    async with model_server(Script(answer="from cloud", models=("big",), api_key=KEY)) as cloud:
        _, admin = await administrator(start_anywhere)
        other, _ = await administrator(start_anywhere)
        servers = other.platform.resource(MODELS)
        body = {"url": cloud.url, "key": KEY, "default_model": "big"}
        assert (await admin.put(f"{CONNECTIONS}/cloud", json=body)).status == 200
        await eventually(lambda: len(servers.servers) == 1, 10)
        assert await answer_of(await somebody(other)) == "from cloud"
        await admin.delete(f"{CONNECTIONS}/cloud")
        await eventually(lambda: servers.servers == [], 10)


async def test_keys(start_anywhere: Start) -> None:
    """Proven by a word, encrypted, never shown; kept for the same server, and sent to no other."""
    async with (
        model_server(Script(models=("big",), api_key=KEY)) as cloud,
        model_server(Script(models=("big",))) as other,
    ):
        running, admin = await administrator(start_anywhere)
        wrong = await admin.put(f"{CONNECTIONS}/cloud", json={"url": cloud.url, "key": "wrong"})
        assert (wrong.status, wrong.json()["code"]) == (400, "model_server_key_refused")
        assert (await admin.get(CONNECTIONS)).json()["items"] == []
        body = {"url": f"{cloud.url}/v1", "kind": "openai", "key": KEY, "default_model": "big"}
        saved = await admin.put(f"{CONNECTIONS}/cloud", json=body)
        assert saved.json()["has_key"] is True, saved.body
        assert cloud.requests[-1].path == "/v1/chat/completions"
        again = await admin.put(f"{CONNECTIONS}/cloud", json={"url": cloud.url, "default_model": "big"})
        assert again.json()["has_key"] is True
        assert (await admin.post(f"{CONNECTIONS}/cloud/test")).json()["models"] == ["big"]
        pages = [await admin.get(CONNECTIONS), saved, again, await admin.get("/v1/settings")]
        entries = [(entry.before_state, entry.after_state) for entry in await audited(running)]
        assert KEY not in f"{[page.body for page in pages]}{entries}"
        sealed = await running.platform.database.read(_sealed)
        assert len(sealed) == 1
        assert KEY.encode() not in sealed[0]
        moved = await admin.put(f"{CONNECTIONS}/cloud", json={"url": other.url})
        assert moved.json()["has_key"] is False
        assert all("Authorization" not in request.headers for request in other.requests)
        assert await running.platform.database.read(_sealed) == []


@pytest.mark.parametrize(
    ("script", "body", "code"),
    [
        (Script(), {"url": "http://nothing.invalid"}, "model_server_name_unknown"),
        (Script(), {"url": "http://127.0.0.1:9"}, "model_server_not_accepting"),
        (Script(), {"url": "https://{host}"}, "model_server_tls_invalid"),
        (Script(api_key=KEY), {}, "model_server_key_refused"),
        (Script(), {"model": "other"}, "model_server_lacks_model"),
        (Script(start="hang"), {}, "model_server_silent"),
        (Script(start="garbage"), {}, "model_server_unlike"),
        (Script(start=Refusal(200, "[" * 100_000)), {}, "model_server_unlike"),
        (Script(start=Refusal(404)), {}, "model_server_unlike"),
        (Script(start=Refusal(503)), {}, "model_server_failed"),
        (Script(), {"url": "http://169.254.169.254/latest"}, "model_server_forbidden"),
        (Script(), {"url": "http://[fd00:ec2::254]"}, "model_server_forbidden"),
    ],
)
async def test_failing_steps(start_platform: Start, script: Script, body: dict[str, str], code: str) -> None:
    """Each step of the test has its own code; nothing of the server's own words is repeated."""
    async with model_server(script) as server:
        _, admin = await administrator(start_platform, PLATFORM_MODELS_TEST_SECONDS="0.3")
        url = body.get("url", server.url).format(host=server.url.removeprefix("http://"))
        answer = await admin.post(f"{CONNECTIONS}/test", json={**body, "url": url})
    assert (answer.status, answer.json()["code"]) == (400, code)
    assert "0xdead" not in answer.detail


@pytest.mark.parametrize(
    ("name", "url"),
    [
        *(
            ("gpu", url)
            for url in (
                "ftp://x",
                "http://user:secret@x",
                "http://x/?key=1",
                "http://*.corp",
                "http://..",
                "http://[fe80::1%25eth0]",
                "http://",
                "http://xn--a.corp",
            )
        ),
        *((name, "http://127.0.0.1:9") for name in ("local", "GPU", "a" * 33)),
    ],
)
async def test_refused_fields(start_platform: Start, name: str, url: str) -> None:
    """What is no plain address, or no name of a server, is a 422 before anything is called."""
    _, admin = await administrator(start_platform)
    assert (await admin.put(f"{CONNECTIONS}/{name}", json={"url": url})).status == 422


@pytest.mark.parametrize("key", ["", " ", "sk-1\nX-Other: 1", "sk-é", "sk 1"])
async def test_keys_that_no_header_can_have(start_platform: Start, key: str) -> None:
    _, admin = await administrator(start_platform)
    answer = await admin.put(f"{CONNECTIONS}/gpu", json={"url": "http://127.0.0.1:9", "key": key})
    assert (answer.status, answer.json()["detail"][0]["loc"]) == (422, ["body", "key"])


async def test_names_that_no_model_can_have(start_anywhere: Start) -> None:
    """What can't be stored or shown is left out, and a list without an end is cut."""
    names = ["a\u0000", "x" * 300, "", "\u202ea", *(f"m{number}" for number in range(3_000))]
    listed = json.dumps({"models": [{"name": name, "modified_at": {}} for name in names]})
    async with model_server(Script(start=Refusal(200, listed))) as server:
        _, admin = await administrator(start_anywhere)
        saved = await admin.put(f"{CONNECTIONS}/gpu", json={"url": server.url})
        assert saved.status == 200, saved.body
        choices = (await admin.get("/v1/models/choices")).json()
        assert (len(choices["items"]), choices["default"]) == (2_000, "gpu/m0")


async def test_settings_win(start_platform: Start) -> None:
    """A server and a default of the operator's settings can't be replaced; a saved one gives way to them."""
    async with model_server(Script(models=("small", "big"))) as server:
        _, admin = await administrator(start_platform)
        await admin.put(f"{CONNECTIONS}/gpu", json={"url": server.url})
        env = {"PLATFORM_MODELS_RUNTIMES": f"gpu=ollama+{server.url}", "OLLAMA_LLM_MODEL": "big"}
        running, admin = await administrator(start_platform, **env)
        items = (await admin.get(CONNECTIONS)).json()["items"]
        assert [(item["origin"], item["is_used"]) for item in items] == [("settings", True), ("saved", False)]
        refused = [
            await admin.put(f"{CONNECTIONS}/gpu", json={"url": server.url}),
            await admin.put(f"{CONNECTIONS}/other", json={"url": server.url, "default_model": "small"}),
            await admin.put("/v1/models/defaults", json={"answers": "gpu/small", "helpers": None}),
        ]
        assert [answer.json()["code"] for answer in refused] == [
            "model_connection_fixed",
            "default_model_fixed",
            "default_model_fixed",
        ]
        assert (await admin.get("/v1/models/choices")).json()["default"] == "gpu/big"
        assert len(running.platform.resource(MODELS).servers) == 1
        assert (await admin.delete(f"{CONNECTIONS}/gpu")).status == 200


async def test_where_one_may_connect(start_platform: Start) -> None:
    """An operator keeps private addresses, or all, from being connected."""
    async with model_server(Script(models=("small",))) as server:
        for allowed, code in (("public", "model_server_forbidden"), ("none", "connecting_disabled")):
            _, admin = await administrator(start_platform, PLATFORM_MODELS_CONNECTABLE=allowed)
            answer = await admin.put(f"{CONNECTIONS}/gpu", json={"url": server.url})
            assert answer.json()["code"] == code
        assert server.requests == []


async def test_default_models(start_anywhere: Start) -> None:
    """Chosen among what is there, for answers and for helping work; a person sees only what it may use."""
    async with model_server(Script(answer="hello", models=("small", "big"))) as server:
        running, admin = await administrator(start_anywhere)
        await admin.put(f"{CONNECTIONS}/gpu", json={"url": server.url})
        unknown = await admin.put("/v1/models/defaults", json={"answers": "gpu/none", "helpers": None})
        assert (unknown.status, unknown.json()["code"]) == (404, "model_not_found")
        chosen = {"answers": "gpu/big", "helpers": "gpu/small"}
        assert (await admin.put("/v1/models/defaults", json=chosen)).json() == {
            **chosen,
            "answers_setting": None,
        }
        person = await somebody(running)
        await answer_of(person)
        assert server.requests[-1].body["model"] == "big"
        helper = await running.platform.hooks.ask(inference.choose_helper_model, platform=running.platform)
        assert helper == "gpu/small"
        await admin.post("/v1/models/big/constraints", json={"allowed_roles": ["admin"]})
        choices = (await person.get("/v1/models/choices")).json()
        assert ([item["name"] for item in choices["items"]], choices["default"]) == (["small"], None)
        assert await answer_of(person) == "model_not_allowed"
