"""What is installed, by HTTP: list, record, health, tools, and switching plugins on and off."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from kernel.hooks import hookspecs
from kernel.plugins.loading import Candidate
from kernel.sdk import PLUGIN_STATES, Plugin, Principal, hookimpl
from kernel.testing import Running, Start
from tests.builtin_plugins.manifest_webhooks.webhook_support import until
from tests.builtin_plugins.plugin_registry.registry_support import Customer, Shop

OWN = "plugin_registry"


def broken() -> Any:
    raise ImportError("no module named 'nowhere'")


class Talkative(Plugin):
    """Puts what it was asked into its errors."""

    name = "talkative"

    @hookimpl
    async def identify_actor(self, authorization: str | None) -> Principal | None:
        if authorization is not None:
            raise ValueError(f"who is {authorization}?")
        return None


async def record(running: Running, name: str) -> dict[str, Any]:
    answer = await running.anonymous.get(f"/v1/plugins/{name}")
    assert answer.status == 200, answer.body
    return dict(answer.json())


async def test_thirty_administrators_at_once(start_platform: Start, database_url: str | None) -> None:
    """Switches and settings that nobody had set before: each request is served, and the last one counts."""
    running = await start_platform(OWN, Shop, env={"DATABASE_URL": database_url})
    admin = await running.user(role="admin")
    sent = [admin.post(f"/v1/plugins/shop/{('disable', 'enable')[number % 2]}") for number in range(30)]
    assert {answer.status for answer in await asyncio.gather(*sent)} == {200}
    assert (await admin.post("/v1/plugins/shop/enable")).status == 200
    sent = [
        admin.put("/v1/plugins/shop/config", json={"SHOP_LIMIT": 1 + number % 9, "SHOP_KEY": f"key {number}"})
        for number in range(30)
    ]
    assert {answer.status for answer in await asyncio.gather(*sent)} == {200}
    assert (await record(running, "shop"))["status"] == "enabled"


class TestShown:
    async def test_list(self, start_platform: Start) -> None:
        """Plugins by name in pages, refused ones included; bounds are held to."""
        running = await start_platform(OWN, Shop, Customer, Candidate("broken", broken))
        body = (await running.anonymous.get("/v1/plugins")).json()
        names = [plugin["name"] for plugin in body["plugins"]]
        assert names == [
            "accounts",
            "broken",
            "customer",
            "long_jobs",
            "owner_secrets",
            OWN,
            "shared_counters",
            "shop",
            "tools",
        ]
        assert (body["count"], body["total"], body["limit"], body["offset"]) == (9, 9, 50, 0)
        page = (await running.anonymous.get("/v1/plugins?limit=2&offset=7")).json()
        assert [plugin["name"] for plugin in page["plugins"]] == ["shop", "tools"]
        assert (page["count"], page["total"]) == (2, 9)
        for query in ("limit=0", "limit=501", "offset=-1", "limit=x"):
            assert (await running.anonymous.get(f"/v1/plugins?{query}")).status == 422

    async def test_record(self, start_platform: Start) -> None:
        """Every field of the wire, from the plugin's own declaration."""
        running = await start_platform(OWN, Shop, Customer)
        found = await record(running, "shop")
        assert found.pop("registered_at").startswith("20")
        assert found == {
            "name": "shop",
            "version": "1.2.3",
            "description": "Sells things",
            "author": "Ayşe",
            "status": "enabled",
            "enabled": True,
            "dependencies": [],
            "capabilities": ["selling"],
            "data_sources": ["shelf"],
            "databases": ["ledger"],
            "health_status": "unknown",
            "last_health_check": None,
            "health_changed_at": None,
            "install_source": "package",
            "required_tier": "community",
            "reason": None,
        }
        assert (await record(running, "customer"))["dependencies"] == ["shop"]
        assert (await record(running, OWN))["install_source"] == "vendored"
        assert (await running.anonymous.get("/v1/plugins/nowhere")).status == 404

    async def test_refused_plugin(self, start_platform: Start) -> None:
        """A plugin that failed is an error with its reason, and is not running."""
        running = await start_platform(OWN, Candidate("broken", broken))
        found = await record(running, "broken")
        assert (found["status"], found["enabled"], found["health_status"]) == ("error", False, "error")
        assert "nowhere" in found["reason"]
        user = await running.user()
        assert (await user.get("/v1/plugins/broken/config")).status == 404
        health = (await running.anonymous.get("/v1/plugins/broken/health")).json()
        assert health["healthy"] is False and "nowhere" in health["message"]

    async def test_a_hook_that_fails(self, start_platform: Start) -> None:
        """Anybody may read that it failed, but not its error's text, which may hold what others sent."""
        running = await start_platform(OWN, Talkative)
        await running.anonymous.get("/v1/plugins", headers={"Authorization": "Basic YW5uOmh1bnRlcjI="})
        told = "identify_actor raised ValueError; the server's log says why"
        assert (await record(running, "talkative"))["reason"] == told
        health = (await running.anonymous.get("/v1/plugins/talkative/health")).json()
        assert (health["healthy"], health["message"]) == (False, told)

    async def test_health(self, start_platform: Start) -> None:
        shop = Shop()
        running = await start_platform(OWN, shop)
        body = (await running.anonymous.get("/v1/plugins/shop/health")).json()
        assert body["healthy"] is True and body["checks"] == {"shelf": "healthy"}
        shop.complaint = "the shelf is empty"
        body = (await running.anonymous.get("/v1/plugins/shop/health")).json()
        assert body["healthy"] is False and body["health_status"] == "unhealthy"
        assert body["checks"] == {"shelf": "unhealthy: the shelf is empty"}
        assert (await running.anonymous.get("/v1/plugins/nowhere/health")).status == 404

    async def test_tools(self, start_platform: Start) -> None:
        """Each action is a function definition in the plain schema that tool servers read."""
        running = await start_platform(OWN, Shop)
        tools = (await running.anonymous.get("/v1/plugins/ai/tools")).json()["tools"]
        found = {tool["function"]["name"]: tool for tool in tools}
        assert set(found) == {"shop_find", "shop_restock", "shop_complain", "shop_crash"}
        assert found["shop_restock"]["metadata"] == {
            "plugin": "shop",
            "endpoint": "/v1/plugins/shop/actions/restock",
            "method": "POST",
            "kind": "action",
            "access": "authenticated",
            "tier": "community",
            "annotations": {
                "readOnlyHint": False,
                "destructiveHint": True,
                "idempotentHint": False,
                "openWorldHint": True,
            },
        }
        assert found["shop_restock"]["function"]["parameters"] == {
            "type": "object",
            "properties": {},
            "description": "Nothing.",
        }
        place = found["shop_find"]["metadata"]
        assert (place["method"], place["access"]) == ("GET", "public")
        parameters = found["shop_find"]["function"]["parameters"]
        assert parameters["required"] == ["word"]
        assert parameters["properties"]["word"] == {
            "type": "string",
            "minLength": 2,
            "description": "A word.",
        }
        box = parameters["properties"]["box"]
        assert box["properties"]["size"]["enum"] == ["small", "large"]
        assert box["properties"]["inside"] == {"type": "object"}

    async def test_only_on_the_service_port(self, start_platform: Start) -> None:
        """The old alias of the list exists on the service itself, not on the gateway."""
        gateway = await start_platform(OWN, Shop)
        service = await start_platform(OWN, Shop, only="plugin-registry")
        assert (await gateway.anonymous.get("/plugins")).status == 404
        alias = await service.anonymous.get("/plugins?limit=1")
        assert alias.status == 200 and alias.json()["total"] == 7
        health = (await service.anonymous.get("/health")).json()
        assert (health["service"], health["plugins_loaded"]) == ("plugin-registry", 7)

    async def test_nobody_takes_manifests(self, start_platform: Start) -> None:
        """Without a plugin source, installing and the schema are honestly not offered."""
        running = await start_platform(OWN)
        admin = await running.user(role="admin")
        answer = await admin.post("/v1/plugins/install", json={})
        assert answer.status == 409 and "accepts manifests" in answer.detail
        assert (await running.anonymous.get("/v1/plugins/schema")).status == 404


class TestSwitching:
    async def test_disable(self, start_platform: Start, database_url: str | None) -> None:
        """A disabled plugin's routes, actions, hooks and checks are out of service, and it stays listed."""
        shop = Shop()
        running = await start_platform(OWN, shop, env={"DATABASE_URL": database_url})
        shop.complaint = "the shelf is empty"
        admin = await running.user(role="admin")
        answer = await admin.post("/v1/plugins/shop/disable")
        assert answer.status == 200 and answer.json() == {"message": "Plugin shop disabled"}
        found = await record(running, "shop")
        assert (found["status"], found["enabled"]) == ("disabled", False)
        assert "POST /v1/plugins/shop/enable" in found["reason"]
        anonymous = running.anonymous
        greeting = await anonymous.get("/v1/shop/greeting")
        assert greeting.status == 403 and "'shop' is disabled" in greeting.detail
        assert (await anonymous.get("/v1/plugins/shop/actions/find?word=tea")).status == 404
        assert (await admin.get("/v1/plugins/shop/config")).status == 404
        assert (await anonymous.get("/v1/plugins/ai/tools")).json()["tools"] == []
        health = (await anonymous.get("/health")).json()
        assert health["status"] == "healthy" and health["plugins"]["shop"]["status"] == "disabled"
        assert (await admin.post("/v1/plugins/shop/disable")).status == 200
        assert (await admin.post("/v1/plugins/shop/enable")).status == 200
        assert (await anonymous.get("/v1/shop/greeting")).status == 200

    async def test_everywhere_and_for_good(self, start_platform: Start, database_url: str | None) -> None:
        """Other processes follow within a moment, and a restart remembers."""
        env = {"DATABASE_URL": database_url}
        first = await start_platform(OWN, Shop, env=env)
        second = await start_platform(OWN, Shop, env=env)
        admin = await first.user(role="admin")
        await admin.post("/v1/plugins/shop/disable")

        async def followed() -> bool:
            return (await second.anonymous.get("/v1/shop/greeting")).status == 403

        await until(followed)
        third = await start_platform(OWN, Shop, env=env)
        assert (await third.anonymous.get("/v1/shop/greeting")).status == 403

    async def test_hooks_are_silent(self, start_platform: Start) -> None:
        """A disabled plugin hears no hook until it is enabled again."""
        running = await start_platform(OWN, "manifest_webhooks", Shop)
        platform = running.platform
        switches = platform.resource(PLUGIN_STATES)
        assert platform.hooks.implementations(hookspecs.register_actions)
        switches.switch_off({"shop"})
        assert not platform.hooks.implementations(hookspecs.register_actions)
        switches.switch_off(())
        assert platform.hooks.implementations(hookspecs.register_actions)

    async def test_what_others_need(self, start_platform: Start) -> None:
        """What an enabled plugin requires can't be disabled, nor enabled before what it requires."""
        running = await start_platform(OWN, Shop, Customer)
        admin = await running.user(role="admin")
        answer = await admin.post("/v1/plugins/shop/disable")
        assert answer.status == 409 and "'customer'" in answer.detail
        for name in ("customer", "shop"):
            assert (await admin.post(f"/v1/plugins/{name}/disable")).status == 200
        answer = await admin.post("/v1/plugins/customer/enable")
        assert answer.status == 409 and "'shop'" in answer.detail
        for name in ("shop", "customer"):
            assert (await admin.post(f"/v1/plugins/{name}/enable")).status == 200

    async def test_what_cannot_be_switched(self, start_platform: Start) -> None:
        """The registry itself, failed plugins, and what the operator keeps out: 409 with the reason."""
        env = {"PLATFORM_PLUGINS_DISABLED": "shop"}
        running = await start_platform(OWN, Shop, Candidate("broken", broken), env=env)
        admin = await running.user(role="admin")
        for name, change, reason in (
            (OWN, "disable", "nothing could be enabled again"),
            ("broken", "enable", "nowhere"),
            ("shop", "enable", "PLATFORM_PLUGINS_DISABLED"),
        ):
            answer = await admin.post(f"/v1/plugins/{name}/{change}")
            assert answer.status == 409 and reason in answer.detail
        assert (await admin.post("/v1/plugins/nowhere/enable")).status == 404
        assert (await admin.post("/v1/plugins/nowhere/disable")).status == 404

    async def test_code_is_not_uninstalled_by_http(self, start_platform: Start) -> None:
        """DELETE of a code plugin is 409 and names what does work."""
        running = await start_platform(OWN, Shop)
        admin = await running.user(role="admin")
        answer = await admin.delete("/v1/plugins/shop")
        assert answer.status == 409 and "/v1/plugins/shop/disable" in answer.detail
        assert (await running.anonymous.get("/v1/shop/greeting")).status == 200

    async def test_source_of_manifests_disabled(self, start_platform: Start, platform_home: Path) -> None:
        """Disabling the manifest plugin takes its manifests out, and says so at each."""
        from tests.builtin_plugins.manifest_webhooks.webhook_support import drop, manifest

        drop(platform_home / "manifests", "a.yaml", manifest())
        running = await start_platform(OWN, "manifest_webhooks")
        admin = await running.user(role="admin")
        assert (await admin.post("/v1/plugins/manifest_webhooks/disable")).status == 200
        assert (await running.anonymous.post("/webhook/notes", json={})).status == 403
        found = await record(running, "notes")
        assert found["status"] == "disabled" and "manifest_webhooks" in found["reason"]
