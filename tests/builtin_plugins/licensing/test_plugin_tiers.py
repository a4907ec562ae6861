"""The tier that a whole plugin needs, and the hook that tools ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from builtin_plugins.plugin_registry import api as plugin_registry
from kernel.testing import Actor, Running, platforms
from tests.builtin_plugins.licensing.licensing_support import Counter, activate, make_listing
from tests.builtin_plugins.tenancy.tenancy_support import somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

BASE = "/v1/licensing/plugins/counter/license"


async def test_a_plugin_needs_the_community_tier_unless_told(licensing: Running) -> None:
    """The default, also for an unknown plugin; what an administrator sets takes its place."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    unknown = await licensing.anonymous.get("/v1/licensing/plugins/nobody/license/tier")
    assert unknown.json() == {"plugin_name": "nobody", "required_tier": "community"}
    assert (await ann.patch(BASE, json={"license_tier": "pro"})).status == 403
    changed = await admin.patch(BASE, json={"license_tier": "pro", "license_key": "AAAA-BBBB-CCCC-DDDD"})
    assert changed.status == 200, changed.body
    assert changed.json()["license_key"] == "****-****-****-DDDD"
    assert (await licensing.anonymous.get(f"{BASE}/tier")).json()["required_tier"] == "pro"
    assert (await admin.patch(BASE, json={"license_tier": "gold"})).status == 422
    assert (await admin.patch(BASE, json={"license_tier": "pro", "license_key": "----"})).status == 422
    missing = "/v1/licensing/plugins/nobody/license"
    assert (await admin.patch(missing, json={"license_tier": "pro"})).status == 404
    await admin.patch(BASE, json={"license_tier": "community"})


async def check(actor: Actor, key: str | None) -> tuple[bool, str]:
    """Whether a key is enough, and for which tier."""
    answer = await actor.post(f"{BASE}/validate", json={"license_key": key})
    assert answer.status == 200, answer.body
    return answer.json()["valid"], answer.json()["tier"]


async def test_a_key_against_what_the_plugin_needs(licensing: Running) -> None:
    """No key is needed for a free tier; for a paid one that of the server counts, and no other."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    await admin.patch(BASE, json={"license_tier": "community"})
    assert await check(ann, None) == (True, "community")
    await admin.patch(BASE, json={"license_tier": "enterprise", "license_key": "AAAA-BBBB-CCCC-DDDD"})
    assert await check(ann, None) == (False, "enterprise")
    assert await check(ann, "AAAA-BBBB-CCCC-DDDD") == (True, "enterprise")
    assert await check(ann, "AAAA-BBBB-CCCC-0000") == (False, "enterprise")
    await admin.patch(BASE, json={"license_tier": "community"})


async def ask(running: Running, actor: Actor, plugin: str, required: str) -> plugin_registry.LicenseVerdict:
    answer = await running.platform.hooks.ask(
        plugin_registry.check_license,
        platform=running.platform,
        subject=str(actor.user["id"]),
        plugin=plugin,
        required=required,
        used=True,
    )
    assert answer is not None
    return answer


async def test_the_hook(licensing: Running) -> None:
    """Nobody needs a license for community; a paid tier takes one as high; an unknown tier denies."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    plugin = await make_listing(licensing, admin)
    assert (await ask(licensing, ann, plugin["name"], "free")).allowed
    assert (await ask(licensing, ann, plugin["name"], "community")).allowed
    refused = await ask(licensing, ann, plugin["name"], "pro")
    assert (refused.allowed, refused.tier_required, refused.user_tier) == (False, "pro", "community")
    await activate(admin, plugin["id"], user_id=str(ann.user["id"]))
    assert (await ask(licensing, ann, plugin["name"], "pro")).allowed
    assert not (await ask(licensing, ann, plugin["name"], "enterprise")).allowed
    assert not (await ask(licensing, ann, plugin["name"], "platinum")).allowed


async def test_what_an_administrator_demands_counts_for_each_use(licensing: Running) -> None:
    """The higher one of the tool's own tier and of the plugin's."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    await admin.patch(BASE, json={"license_tier": "pro"})
    verdict = await ask(licensing, ann, "counter", "free")
    assert (verdict.allowed, verdict.tier_required) == (False, "pro")
    await admin.patch(BASE, json={"license_tier": "community"})


async def test_any_key_in_development(tmp_path: Path) -> None:
    """PLATFORM_ALLOW_UNVALIDATED_LICENSES accepts any key of a paid plugin, and still wants one."""
    env = {"PLATFORM_ALLOW_UNVALIDATED_LICENSES": "1"}
    async with platforms(tmp_path) as start:
        running = await start("tenancy", "plugin_registry", "licensing", Counter(), env=env)
        admin = await running.user(role="admin")
        await admin.patch(BASE, json={"license_tier": "pro"})
        assert await check(admin, "anything") == (True, "pro")
        assert await check(admin, None) == (False, "pro")


async def test_validations_are_limited(tmp_path: Path) -> None:
    """Guessing keys ends after as many as the operator allows in a minute."""
    env = {"RATE_LIMIT_ENABLED": "true", "PLATFORM_LICENSING_VALIDATIONS_PER_MINUTE": "3"}
    body = {"license_key": "AAAA-AAAA-AAAA-AAAA", "plugin_id": "00000000-0000-4000-8000-000000000000"}
    async with platforms(tmp_path) as start:
        running = await start("tenancy", "marketplace", "licensing", env=env)
        ann = await running.user()
        found = [(await ann.post("/v1/marketplace/licenses/validate", json=body)).status for _ in range(5)]
    assert found == [200, 200, 200, 429, 429]
