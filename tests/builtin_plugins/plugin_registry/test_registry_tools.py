"""`/v1/tools` and the catalog's tools: discovery, execution with licenses, synchronization, self-listing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio
from pydantic import BaseModel, Field

from builtin_plugins.marketplace.services.self_listing import SELF_LISTING, SelfListing
from kernel.plugins.loading import Candidate
from kernel.sdk import AUTHENTICATED, PUBLIC, Action, BadRequest, Context, Plugin, hookimpl
from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Reply, Running, platforms, postgres_database
from tests.builtin_plugins.marketplace.marketplace_support import NOWHERE, PLUGINS, bring
from tests.builtin_plugins.tenancy.tenancy_support import audited, somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

AI = "/v1/marketplace/ai"


class Parameters(BaseModel):
    """Arguments of each kind."""

    port: str = Field(min_length=2, description="A port.")
    days: int = Field(1, ge=1, le=9)
    ratio: float | None = None
    loud: bool = False
    unit: Literal["m", "ft"] = "m"
    tags: list[str] = Field(default_factory=list)


class Nothing(BaseModel):
    """No arguments."""


async def tell(ctx: Context, parameters: Parameters) -> dict[str, Any]:
    return {**parameters.model_dump(), "caller": ctx.principal.username}


async def write(_ctx: Context, _wanted: Nothing) -> str:
    return "written"


async def refuse(_ctx: Context, _wanted: Nothing) -> None:
    raise BadRequest("the port is closed")


async def hang(_ctx: Context, _wanted: Nothing) -> None:
    await asyncio.Event().wait()


class Tide(Plugin):
    """Tells tides."""

    name = "tide"
    version = "1.2.3"
    description = "Tells tides"
    author = "Ann"

    @hookimpl
    def register_actions(self) -> Sequence[Action]:
        return [
            Action("tell", "The tides of a port.", Parameters, tell, access=PUBLIC, read_only=True),
            Action("write", "Writes.", Nothing, write, access=AUTHENTICATED, idempotent=True),
            Action("refuse", "Refuses.", Nothing, refuse, access=AUTHENTICATED),
            Action("hang", "Hangs.", Nothing, hang, access=AUTHENTICATED),
            Action("chart", "Draws.", Nothing, write, access=AUTHENTICATED, tier="pro"),
        ]


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=["sqlite", "postgresql"])
async def admin(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Actor]:
    """An administrator of a platform with everything that tools need."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database()) if request.param == "postgresql" else None
        async with platforms(tmp_path_factory.mktemp("tools")) as start:
            env = {"DATABASE_URL": url, "TOOL_EXECUTION_TIMEOUT": "0.5"}
            plugins = ("tenancy", "marketplace", "licensing", "plugin_registry")
            running = await start(*plugins, Tide(), env=env)
            await running.platform.resource(SELF_LISTING).sync()
            yield await somebody(running, role="admin")


async def execute(actor: Actor, tool: str, **parameters: Any) -> Reply:
    return await actor.post(f"/v1/tools/{tool}/execute", json={"parameters": parameters})


async def test_discovery(admin: Actor) -> None:
    """Every tool with the fields of AIToolItem, by pages; a filter by tier."""
    anyone = admin.running.anonymous
    whole = (await anyone.get("/v1/tools")).json()
    assert [one["tool_name"] for one in whole["tools"]] == [
        "tide_chart",
        "tide_hang",
        "tide_refuse",
        "tide_tell",
        "tide_write",
    ]
    told = whole["tools"][3]
    assert (told["type"], told["method"], told["required_tier"], told["active"]) == (
        "query",
        "GET",
        "community",
        True,
    )
    assert (told["endpoint"], told["plugin_name"]) == ("/v1/plugins/tide/actions/tell", "tide")
    assert told["parameters"]["port"] == {"type": "string", "description": "A port.", "required": True}
    assert told["parameters"]["unit"]["enum"] == ["m", "ft"]
    assert whole["tools"][4]["annotations"]["idempotentHint"] is True
    part = (await anyone.get("/v1/tools?limit=2&offset=1")).json()
    assert (part["tools"], part["count"], part["total"]) == (whole["tools"][1:3], 2, 5)
    assert [one["tool_name"] for one in (await anyone.get("/v1/tools?tier=pro")).json()["tools"]] == [
        "tide_chart"
    ]
    assert (await anyone.get("/v1/tools?tier=gold")).status == 422
    detail = (await anyone.get("/v1/tools/tide_tell")).json()
    assert detail == {**told, "plugin_description": "Tells tides"}
    assert (await anyone.get("/v1/tools/nothing")).status == 404


async def test_execution(admin: Actor) -> None:
    """The result in its envelope, with the time it took; text becomes what the tool asks for."""
    ann = await somebody(admin.running)
    answer = await execute(
        ann, "tide_tell", port="Ost", days="3", ratio="0.5", loud="yes", tags='["a"]', more="ignored"
    )
    assert answer.status == 200, answer.body
    body = answer.json()
    assert (body["tool_name"], body["plugin_name"], body["tier_required"]) == (
        "tide_tell",
        "tide",
        "community",
    )
    assert body["execution_time"] >= 0
    assert (body["result"]["plugin"], body["result"]["action"]) == ("tide", "tell")
    found = body["result"]["result"]
    assert (found["days"], found["ratio"], found["loud"], found["tags"]) == (3, 0.5, True, ["a"])
    assert found["caller"] == ann.user["username"]
    assert (await ann.post("/v1/tools/tide_write/execute")).json()["result"]["result"] == "written"


@pytest.mark.parametrize(
    ("parameters", "fields"),
    [
        ({}, {"port"}),
        ({"port": 5}, {"port"}),
        ({"port": "x"}, {"port"}),
        ({"port": "Ost", "days": "three", "unit": "km"}, {"days", "unit"}),
        ({"port": "Ost", "days": 10}, {"days"}),
        ({"port": "Ost", "loud": "perhaps"}, {"loud"}),
        ({"port": "Ost", "tags": [1]}, {"tags.0"}),
    ],
)
async def test_wrong_arguments(admin: Actor, parameters: dict[str, Any], fields: set[str]) -> None:
    """422 with an array that names each argument and what is wrong."""
    answer = await execute(admin, "tide_tell", **parameters)
    assert answer.status == 422
    assert {one["field"] for one in answer.json()["detail"]} == fields
    assert all(one["error"] for one in answer.json()["detail"])


async def test_what_ends_an_execution(admin: Actor) -> None:
    """An unknown tool, a refusal, a hanging one."""
    assert (await execute(admin, "nothing")).status == 404
    refused = await execute(admin, "tide_refuse")
    assert (refused.status, refused.json()["detail"]) == (400, "the port is closed")
    assert (await execute(admin, "tide_hang")).status == 504
    assert (await admin.post("/v1/tools/tide_tell/execute", json={"parameters": []})).status == 422


async def test_licenses(admin: Actor) -> None:
    """A paid tool is refused with both tiers until the caller's own license is as high; so says validate."""
    ann = await somebody(admin.running)
    user = str(ann.user["id"])
    refused = await execute(ann, "tide_chart")
    assert refused.status == 403
    detail = refused.json()["detail"]
    assert (detail["tier_required"], detail["user_tier"]) == ("pro", "community")
    assert set(detail) == {"error", "tier_required", "user_tier", "reason"}
    assert (await ann.post("/v1/plugins/tide/actions/chart")).status == 403
    question = {"user_id": user, "tool_name": "tide_chart"}
    assert (await ann.post("/v1/tools/validate", json=question)).json()["allowed"] is False
    listing = (await admin.get(f"{PLUGINS}/search?q=tide")).json()["plugins"][0]
    body = {"plugin_id": listing["id"], "tier": "pro", "user_id": user}
    assert (await admin.post("/v1/marketplace/licenses/activate", json=body)).status == 200
    allowed = (await ann.post("/v1/tools/validate", json=question)).json()
    assert (allowed["allowed"], allowed["user_tier"], allowed["tier_required"]) == (True, "pro", "pro")
    assert (await execute(ann, "tide_chart")).status == 200
    assert (await ann.get("/v1/marketplace/licenses")).json()["licenses"][0]["usage_count"] == 1
    eve = await somebody(admin.running)
    assert (await eve.post("/v1/tools/validate", json=question)).status == 403
    unknown = (await admin.post("/v1/tools/validate", json={**question, "tool_name": "x"})).json()
    assert (unknown["allowed"], unknown["user_tier"]) == (False, "unknown")


async def test_calls_are_counted_and_audited(admin: Actor) -> None:
    """Whatever the door: metrics for each, an entry for those that write."""
    before = len(await audited(admin.running, "tool.called", "tide_write"))
    await execute(admin, "tide_write")
    await admin.post("/v1/plugins/tide/actions/write")
    assert len(await audited(admin.running, "tool.called", "tide_write")) == before + 2
    assert await audited(admin.running, "tool.called", "tide_tell") == []
    metrics = (await admin.running.anonymous.get("/metrics")).body.decode()
    assert 'tool_calls_total{kind="action",outcome="success",plugin="tide"}' in metrics


async def test_a_disabled_plugin(admin: Actor) -> None:
    """Its tools are 400 to execute, and listed only where inactive ones are asked for."""
    assert (await admin.post("/v1/plugins/tide/disable")).status == 200
    try:
        answer = await execute(admin, "tide_tell", port="Ost")
        assert answer.status == 400
        assert (await admin.get("/v1/tools")).json()["total"] == 0
        every = (await admin.get("/v1/tools?active_only=false")).json()
        assert {one["active"] for one in every["tools"]} == {False}
        await admin.running.platform.resource(SELF_LISTING).sync()
        assert (await admin.get(f"{AI}/tools?tool_name=tide_tell")).json()["total"] == 0
    finally:
        assert (await admin.post("/v1/plugins/tide/enable")).status == 200
    await admin.running.platform.resource(SELF_LISTING).sync()
    assert (await admin.get(f"{AI}/tools?tool_name=tide_tell")).json()["total"] == 1


async def test_installed_plugins_list_themselves(admin: Actor) -> None:
    found = (await admin.running.anonymous.get(f"{PLUGINS}/search?q=tide")).json()["plugins"][0]
    assert (found["name"], found["origin"], found["status"], found["current_version"]) == (
        "tide",
        "first_party",
        "approved",
        "1.2.3",
    )
    await SelfListing(admin.running.platform).sync()
    assert (await admin.get(f"{PLUGINS}/{found['id']}")).json() == found
    tools = (await admin.get(f"{AI}/plugins/{found['id']}/tools")).json()
    assert (tools["plugin_name"], tools["count"]) == ("tide", 5)
    same = (await admin.get(f"/v1/tools/plugins/{found['id']}/tools")).json()
    assert {one["tool_name"] for one in same["tools"]} == {one["tool_name"] for one in tools["tools"]}
    assert (same["limit"], same["offset"]) == (0, 0)
    for path in (f"/v1/tools/plugins/{NOWHERE}/tools", "/v1/tools/plugins/x/tools"):
        assert (await admin.get(path)).status == 404


MANIFEST = {
    "ai_tools": [
        {
            "name": "next_tide",
            "description": "The next tide",
            "action": "next",
            "method": "GET",
            "parameters": {
                "type": "object",
                "properties": {"port": {"type": "string", "description": "A port"}},
                "required": ["port"],
            },
            "required_tier": "professional",
        },
        {"name": "last_tide", "parameters": '{"days": {"type": "integer"}}', "required_tier": "gold"},
        {"description": "has no name"},
    ]
}


async def sync(actor: Actor, plugin: dict[str, Any], manifest: Any) -> Reply:
    body = {"plugin_name": plugin["name"], "plugin_id": plugin["id"], "manifest": manifest}
    return await actor.post(f"{AI}/sync", json=body)


async def test_synchronization(admin: Actor) -> None:
    """Tools arrive flat, with defaults; what leaves the manifest is deactivated."""
    service = Actor(admin.running, admin.running.platform.resource(TOKENS).mint_service("registry", 1))
    plugin = await bring(service, admin, "draft")
    done = (await sync(service, plugin, MANIFEST)).json()
    assert done == {
        "success": True,
        "tools_imported": 2,
        "message": "2 tools imported",
        "tools_deactivated": 0,
        "errors": [],
    }
    path = f"{AI}/plugins/{plugin['id']}/tools"
    last, following = (await admin.get(path)).json()["tools"]
    assert (following["endpoint"], following["type"], following["required_tier"], following["method"]) == (
        "/actions/next",
        "action",
        "pro",
        "GET",
    )
    assert following["parameters"] == {"port": {"type": "string", "description": "A port", "required": True}}
    assert (last["endpoint"], last["type"], last["required_tier"]) == (
        "/last_tide",
        "analysis",
        "community",
    )
    fewer = (await sync(service, plugin, {"ai_tools": {"tools": MANIFEST["ai_tools"][:1]}})).json()
    assert fewer["tools_deactivated"] == 1
    assert (await admin.get(f"{AI}/tools/last_tide")).status == 404
    assert (await admin.get(f"{AI}/tools/next_tide")).json()["plugin_id"] == plugin["id"]
    none = await sync(service, plugin, {"kind": "Plugin"})
    assert set(none.json()) == {"success", "tools_imported", "message"}
    wrong = await sync(service, plugin, {"ai_tools": [{"name": "x", "method": "PATCH"}]})
    assert wrong.status == 500
    assert wrong.json()["detail"]["success"] is False
    assert wrong.json()["detail"]["tools_deactivated"] == 0
    assert (await admin.get(f"{AI}/tools/next_tide")).status == 200
    ann = await somebody(admin.running)
    assert (await sync(ann, plugin, MANIFEST)).status == 404
    assert (await ann.delete(path)).status == 403
    assert (await admin.delete(path)).json() == {"success": True, "tools_deactivated": 1}
    assert (await admin.get(path)).json()["count"] == 0
    assert (await admin.delete(f"{AI}/plugins/{NOWHERE}/tools")).status == 404


async def test_tools_of_drafts_are_hidden(admin: Actor) -> None:
    ann, eve = await somebody(admin.running), await somebody(admin.running)
    plugin = await bring(ann, admin, "draft")
    assert (await sync(ann, plugin, {"ai_tools": [{"name": "secret_tide"}]})).status == 200
    assert (await ann.get(f"{AI}/tools/secret_tide")).status == 200
    assert (await eve.get(f"{AI}/tools/secret_tide")).status == 404
    assert (await eve.get(f"{AI}/tools?tool_name=secret_tide")).json()["total"] == 0
    assert (await eve.get(f"{AI}/plugins/{plugin['id']}/tools")).status == 404


async def test_a_plugin_that_is_gone_is_archived(tmp_path: Any) -> None:
    """Archived, not deleted; back again, it is approved under the same id."""
    ids = []
    for plugins in (("tide",), (), ("tide",)):
        async with platforms(tmp_path) as start:
            extra = [Tide() for _ in plugins]
            running: Running = await start("tenancy", "marketplace", *extra)
            await running.platform.resource(SELF_LISTING).sync()
            admin = await somebody(running, role="admin")
            status = "approved" if plugins else "archived"
            listed = (await admin.get(f"{PLUGINS}?status={status}&limit=100")).json()["plugins"]
            ids.append([one["id"] for one in listed if one["name"] == "tide"])
    assert ids[0] == ids[1] == ids[2]
    assert len(ids[0]) == 1


async def test_a_plugin_from_a_listing(tmp_path: Path, database_url: str | None) -> None:
    """A plugin that came with a listing's package has its tools there, and the listing's licenses.

    Before the listing is approved, the plugin lists itself; after it is uninstalled, the tools are gone.
    """
    plugins = ("tenancy", "marketplace", "licensing", "plugin_registry")
    env = {"DATABASE_URL": database_url}
    async with platforms(tmp_path) as start:
        running = await start(*plugins, Candidate("tide", Tide, distribution="acme-Tide"), env=env)
        admin, ann = await somebody(running, role="admin"), await somebody(running)
        await running.platform.resource(SELF_LISTING).sync()
        assert (await found_tides(admin))[0]["name"] == "tide"
        listing = await bring(admin, admin, "approved", name="Tide tables", package="acme_tide")
        async with asyncio.timeout(20):
            while [one["id"] for one in await found_tides(admin)] != [listing["id"]]:  # noqa: ASYNC110
                await asyncio.sleep(0.1)  # polling is what clients do
        assert await tools_of(admin, listing["id"]) == 5
        of_listing = (await admin.get(f"/v1/tools/plugins/{listing['id']}/tools")).json()
        assert {tool["plugin_id"] for tool in of_listing["tools"]} == {listing["id"]}
        assert (await execute(ann, "tide_chart")).status == 403
        body = {"plugin_id": listing["id"], "tier": "pro", "user_id": str(ann.user["id"])}
        assert (await admin.post("/v1/marketplace/licenses/activate", json=body)).status == 200
        assert (await execute(ann, "tide_chart")).status == 200
    async with platforms(tmp_path) as start:
        running = await start(*plugins, env=env)
        await running.platform.resource(SELF_LISTING).sync()
        admin = await somebody(running, role="admin")
        assert [one["id"] for one in await found_tides(admin)] == [listing["id"]]
        assert await tools_of(admin, listing["id"]) == 0


async def found_tides(admin: Actor) -> list[dict[str, Any]]:
    listings: list[dict[str, Any]] = (await admin.get(f"{PLUGINS}/search?q=tide")).json()["plugins"]
    return listings


async def tools_of(admin: Actor, plugin_id: str) -> int:
    """How many tools the catalog and the registry have of a listing; they agree."""
    listed = (await admin.get(f"{AI}/plugins/{plugin_id}/tools")).json()["count"]
    assert (await admin.get(f"/v1/tools/plugins/{plugin_id}/tools")).json()["count"] == listed
    return int(listed)
