"""The catalogue of tools and its door: who is shown what, who may call, and how calls end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest
import pytest_asyncio
from pydantic import BaseModel, Field

from builtin_plugins.tools.api import TOOLS, Tool, json_object
from builtin_plugins.tools.definitions import definition_of
from kernel.sdk import (
    ADMIN,
    AUTHENTICATED,
    PUBLIC,
    Action,
    BadRequest,
    Context,
    Forbidden,
    Plugin,
    RouteTable,
    hookimpl,
    read_body,
)
from kernel.testing import Actor, Running, platforms

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = "x" * 70


class Wanted(BaseModel):
    """What to say."""

    text: str = Field("hello", description="A text.")
    times: int = Field(1, ge=1, le=100_000)


async def say(ctx: Context, wanted: Wanted) -> dict[str, Any]:
    return {"said": wanted.text * wanted.times, "to": ctx.principal.username}


async def refuse(_ctx: Context, _wanted: Wanted) -> None:
    raise BadRequest("the shop is closed")


async def crash(_ctx: Context, _wanted: Wanted) -> None:
    raise RuntimeError("password=hunter2")


async def hang(_ctx: Context, _wanted: Wanted) -> None:
    await asyncio.Event().wait()


routes = RouteTable("Probe")


@routes.get("/v1/probe/tools", access=PUBLIC, returns=dict[str, Any])
async def usable(ctx: Context) -> dict[str, Any]:
    """What the caller may use, and everything that is offered to it."""
    tools = ctx.resource(TOOLS)
    return {
        "usable": [tool.name for tool in await tools.usable(ctx)],
        "offered": [definition_of(tool).model_dump() for tool in await tools.offered(ctx)],
    }


@routes.post("/v1/probe/tools/{name}", access=PUBLIC, returns=dict[str, Any])
async def call(ctx: Context, name: str) -> dict[str, Any]:
    """Call one, as a model does."""
    raw = await read_body(ctx.request, 10_000, 5)
    tools = ctx.resource(TOOLS)
    seconds = float(ctx.request.query.get("seconds", 5))
    reply = await tools.reply(ctx, await tools.find(ctx, name), json_object(raw, "It"), seconds=seconds)
    return {"text": reply.text, "value": reply.value, "failed": reply.failed}


class Probe(Plugin):
    """Declares actions and calls them."""

    name = "probe"

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [routes]

    @hookimpl
    def register_actions(self) -> Sequence[Action]:
        return [
            Action("say", "Says it.", Wanted, say, access=PUBLIC, read_only=True, open_world=False),
            Action("refuse", "Refuses.", Wanted, refuse, access=AUTHENTICATED, destructive=False),
            Action("crash", "Fails.", Wanted, crash, access=AUTHENTICATED, tier="pro"),
            Action("hang", "Waits.", Wanted, hang, access=AUTHENTICATED, idempotent=True),
            Action("reign", "Reigns.", Wanted, say, access=ADMIN),
            Action(LONG, "Long.", Wanted, say, access=AUTHENTICATED),
        ]


class Brings(Plugin):
    """Offers tools beside actions, refuses some calls, and hears how calls end."""

    name = "brings"

    def __init__(self) -> None:
        self.heard: list[tuple[str, str | None]] = []
        self.fails = False

    @hookimpl
    def offer_tools(self, ctx: Context) -> Sequence[Tool]:
        if self.fails:
            raise RuntimeError("the other server is away")
        if ctx.principal.kind == "anonymous":
            return []
        mine = Tool(f"ask_{ctx.principal.username}", "Asks.", {"type": "object"}, self._answer, "brings")
        clashing = Tool("probe_say", "Says it too.", {"type": "object"}, self._answer, "brings")
        return [mine, clashing]

    @hookimpl
    def check_tool_call(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        if arguments.get("text") == "forbidden":
            raise Forbidden({"error": "license_required", "tier_required": tool.tier})

    @hookimpl
    def on_tool_called(self, tool: Tool, error: BaseException | None) -> None:
        self.heard.append((tool.name, None if error is None else type(error).__name__))

    async def _answer(self, _ctx: Context, arguments: Mapping[str, Any]) -> Any:
        return {"got": dict(arguments)}


@pytest.fixture(scope="module")
def brings() -> Brings:
    return Brings()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory, brings: Brings) -> AsyncIterator[Running]:
    async with platforms(tmp_path_factory.mktemp("tools")) as start:
        yield await start("tools", Probe, brings)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ann(running: Running) -> Actor:
    return await running.user("ann")


async def listed(actor: Actor) -> dict[str, Any]:
    answer = await actor.get("/v1/probe/tools")
    assert answer.status == 200, answer.body
    return dict(answer.json())


async def called(actor: Actor, name: str, query: str = "", **arguments: Any) -> dict[str, Any]:
    answer = await actor.post(f"/v1/probe/tools/{name}{query}", json=arguments)
    assert answer.status == 200, answer.body
    return dict(answer.json())


async def test_everybody_is_shown_its_own(running: Running, ann: Actor) -> None:
    """What may be used follows access; names are unique and fit every client."""
    chief = await running.user("chief", role="admin")
    anonymous = await listed(running.anonymous)
    assert anonymous["usable"] == ["probe_say"]
    assert "ask_" not in str([tool["function"]["name"] for tool in anonymous["offered"]])
    names = (await listed(ann))["usable"]
    assert "ask_ann" in names and "ask_chief" not in names and "probe_reign" not in names
    assert "probe_reign" in (await listed(chief))["usable"]
    assert len(set(names)) == len(names) == 7
    assert all(len(name) <= 64 for name in names)
    assert len([name for name in names if name.startswith("probe_say")]) == 2


async def test_definition(ann: Actor) -> None:
    """A definition has the call's effects, its address and who may call it."""
    found = {tool["function"]["name"]: tool for tool in (await listed(ann))["offered"]}
    said = found["probe_say"]
    assert said["function"]["parameters"]["properties"]["times"]["maximum"] == 100_000
    assert said["metadata"] == {
        "plugin": "probe",
        "endpoint": "/v1/plugins/probe/actions/say",
        "method": "GET",
        "kind": "action",
        "access": "public",
        "tier": "community",
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }
    assert found["probe_crash"]["metadata"]["annotations"]["destructiveHint"]
    assert not found["probe_refuse"]["metadata"]["annotations"]["destructiveHint"]
    assert found["probe_hang"]["metadata"]["annotations"]["idempotentHint"]


async def test_result(ann: Actor) -> None:
    """The whole value for programs; at most 4,000 characters of it for a model."""
    short = await called(ann, "probe_say", text="tea")
    assert short["value"] == {"plugin": "probe", "action": "say", "result": {"said": "tea", "to": "ann"}}
    assert '"said": "tea"' in short["text"]
    long = await called(ann, "probe_say", text="ş", times=50_000)
    assert len(long["text"]) == 4000 and long["text"].endswith("cut off]")
    assert len(long["value"]["result"]["said"]) == 50_000
    assert (await called(ann, "ask_ann", a=1))["value"] == {"got": {"a": 1}}


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("probe_refuse", {}, "error: 400 the shop is closed"),
        ("probe_crash", {}, "error: 500 "),
        ("probe_reign", {}, "error: 403"),
        ("probe_say", {"times": "many"}, "'times'"),
        ("probe_say", {"colour": "red"}, "'colour'"),
        ("probe_say", {"text": "forbidden"}, '"tier_required": "community"'),
    ],
)
async def test_failures_are_told(ann: Actor, name: str, arguments: dict[str, Any], said: str) -> None:
    """A failing call is a text for the model, without what is nobody's business."""
    reply = await called(ann, name, **arguments)
    assert reply["failed"] and reply["text"].startswith("error: ")
    assert said in reply["text"] and "hunter2" not in reply["text"]


async def test_sign_in_hint(running: Running) -> None:
    """Without an account, the refusal of a tool says that it needs one."""
    assert "sign in" in (await called(running.anonymous, "probe_refuse"))["text"]


async def test_a_tool_that_hangs(ann: Actor, brings: Brings) -> None:
    """The call ends at its limit, and is reported like every other."""
    reply = await called(ann, "probe_hang", "?seconds=0.05")
    assert reply["text"].startswith("error: 504 ") and "'probe_hang'" in reply["text"]
    await called(ann, "probe_say")
    assert brings.heard[-2:] == [("probe_hang", "GatewayTimeout"), ("probe_say", None)]


async def test_unknown(ann: Actor) -> None:
    """A tool that nobody offers, and one that is offered to another account, answer alike."""
    names = ("probe_dance", "ask_chief")
    answers = [await ann.post(f"/v1/probe/tools/{name}", json={}) for name in names]
    assert {answer.status for answer in answers} == {404}
    assert len({answer.detail.replace(name, "") for name, answer in zip(names, answers, strict=True)}) == 1


async def test_a_source_that_fails(ann: Actor, brings: Brings) -> None:
    brings.fails = True
    try:
        assert "probe_say" in (await listed(ann))["usable"]
    finally:
        brings.fails = False


async def test_calls_are_counted(platform_home: Any) -> None:
    """Calls through the door count like those of the action's own route (wire-facts 1.4)."""
    async with platforms(platform_home) as start:
        running = await start("tools", Probe, env={"RATE_LIMIT_ENABLED": "true"})
        ann = await running.user("ann")
        replies = [await called(ann, "probe_refuse") for _ in range(21)]
        assert {reply["text"][:10] for reply in replies[:20]} == {"error: 400"}
        assert replies[20]["text"].startswith("error: 429 ") and " 20 " in replies[20]["text"]
