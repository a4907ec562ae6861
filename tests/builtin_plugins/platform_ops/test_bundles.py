"""Bundles switch the plugins of their services (spec 3.7, 4.8, wire-facts 9.2)."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.testing import Actor, Running, Start, audited, somebody

PLUGINS = ("platform_ops", "plugin_registry", "speech", "models")


@pytest.fixture
async def running(start_platform: Start) -> Running:
    return await start_platform(*PLUGINS)


async def bundle_record(running: Running, name: str) -> dict[str, Any]:
    bundles = (await running.anonymous.get("/v1/bundles")).json()["bundles"]
    return next(dict(bundle) for bundle in bundles if bundle["name"] == name)


async def done(actor: Actor, path: str) -> dict[str, Any]:
    reply = await actor.post(f"/v1/bundles/{path}")
    assert reply.status == 200, reply.body
    return dict(reply.json())


async def test_a_bundle_is_switched_off_and_on(running: Running) -> None:
    """Its service's plugin follows; what is wanted, what orphans, the audit log, and doing it twice."""
    admin = await somebody(running, role="admin")
    assert (await bundle_record(running, "voice"))["enabled"] is True
    off = await done(admin, "voice/disable")
    assert off["stopped"] == off["orphaned"] == ["tts-stt"]
    assert (await admin.get("/v1/tts/languages")).status == 403
    voice = await bundle_record(running, "voice")
    assert voice["enabled"] is False
    assert voice["services"] == [{"name": "tts-stt", "active": False, "claimants": [], "image": None}]
    assert (await running.anonymous.get("/v1/bundles")).json()["orphaned"] == ["tts-stt"]
    assert (await done(admin, "voice/disable"))["already_stopped"] == ["tts-stt"]
    assert (await done(admin, "voice/enable"))["started"] == ["tts-stt"]
    assert (await admin.get("/v1/tts/languages")).status == 200
    assert (await done(admin, "voice/enable"))["already_running"] == ["tts-stt"]
    assert [entry.action for entry in await audited(running, target_id="voice")] == [
        "bundle.disabled",
        "bundle.enabled",
    ]


async def test_a_service_goes_on_while_another_bundle_claims_it(running: Running) -> None:
    """Model management belongs to three bundles, and stops with the last of them."""
    admin = await somebody(running, role="admin")
    assert (await done(admin, "inference/disable"))["orphaned"] == []
    assert (await bundle_record(running, "rag"))["services"][1]["claimants"] == ["rag", "chat"]
    assert (await done(admin, "chat/disable"))["absent"] == ["orchestrator"]
    assert (await done(admin, "rag/disable"))["stopped"] == ["model-management"]


async def test_what_is_not_installed_is_pending(running: Running) -> None:
    admin = await somebody(running, role="admin")
    assert (await done(admin, "graph-rag/enable"))["pending_create"] == ["graph-rag"]


async def test_readiness_is_what_runs_now(running: Running) -> None:
    """Wanted or not: a plugin that was disabled by itself is not ready, and reconciling brings it back."""
    admin = await somebody(running, role="admin")

    async def ready() -> bool:
        found = (await running.anonymous.get("/v1/bundles/ready")).json()["bundles"]
        return next(bool(bundle["ready"]) for bundle in found if bundle["name"] == "voice")

    assert await ready()
    assert (await admin.post("/v1/plugins/speech/disable")).status == 200
    assert not await ready()
    assert (await bundle_record(running, "voice"))["enabled"] is True
    assert (await done(admin, "reconcile"))["started"] == ["tts-stt"]
    assert await ready()


async def test_what_is_wanted_survives_a_restart(start_platform: Start) -> None:
    """A second process on the same database has the bundle disabled, and its plugin."""
    first = await start_platform(*PLUGINS)
    admin = await somebody(first, role="admin")
    await done(admin, "voice/disable")
    again = await start_platform(*PLUGINS, env={"DATABASE_URL": first.platform.settings.sqlalchemy_url})
    assert (await bundle_record(again, "voice"))["enabled"] is False
    assert not again.platform.is_on("speech")


async def test_core_stays_and_names_are_checked(running: Running) -> None:
    """409 for `core`, 404 for what is no bundle, 401 and 403 for others than administrators."""
    admin = await somebody(running, role="admin")
    assert (await admin.post("/v1/bundles/core/disable")).status == 409
    assert (await admin.post("/v1/bundles/unknown/enable")).status == 404
    assert (await admin.post("/v1/bundles/unknown/disable")).status == 404
