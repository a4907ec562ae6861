"""What the tests of licensing share: listings, licenses, a plugin that needs some."""

from __future__ import annotations

import secrets
from typing import Any

from kernel.sdk import Plugin
from kernel.testing import Actor, Running

LICENSES = "/v1/marketplace/licenses"


class Counter(Plugin):
    """A plugin whose tier administrators set."""

    name = "counter"
    version = "1.0"


async def make_listing(running: Running, admin: Actor) -> dict[str, Any]:
    name = f"tool-{secrets.token_hex(4)}"
    body = {"name": name, "display_name": name.title(), "author": "Ada", "description": "Counts the tides."}
    created = await admin.post("/v1/marketplace/plugins", json=body)
    assert created.status == 201, created.body
    listing: dict[str, Any] = created.json()
    for step in ("submit", "claim", "approve"):
        answer = await admin.post(f"/v1/marketplace/submissions/{listing['id']}/{step}")
        assert answer.status == 200, answer.body
    return listing


async def activate(admin: Actor, plugin_id: str, tier: str = "pro", **more: Any) -> dict[str, Any]:
    answer = await admin.post(f"{LICENSES}/activate", json={"plugin_id": plugin_id, "tier": tier, **more})
    assert answer.status == 200, answer.body
    license_record: dict[str, Any] = answer.json()
    return license_record


async def look_up(admin: Actor, user_id: int | str, plugin_id: str) -> Any:
    answer = await admin.get(f"{LICENSES}/lookup?user_id={user_id}&plugin_id={plugin_id}")
    assert answer.status == 200, answer.body
    return answer.json()["tier"]
