"""Hooks by which a tenancy plugin takes part: scopes, claims, vetoes on changes of accounts."""

from __future__ import annotations

from typing import Any

import jwt

from kernel.sdk import PLUGIN_STATES, Account, Conflict, Plugin, Principal, Scope, Unit, hookimpl
from kernel.testing import Start
from tests.fakes.loaded_once import LoadedOnce

TEAM = 7


class TenancyPlugin(Plugin):
    """Everybody is in one team; nobody called mallory may have an account or a session."""

    name = "fake_tenancy"
    version = "1"

    def __init__(self) -> None:
        self.changes: list[tuple[str, str]] = []

    @hookimpl
    async def find_scope(self, principal: Principal) -> Scope:
        return Scope(principal.id, teams=(TEAM,))

    @hookimpl
    def token_claims(self, unit: Unit, account: Account) -> dict[str, Any]:
        return {"teams": [TEAM]}

    @hookimpl
    def on_account_event(self, unit: Unit, account: Account, change: str) -> None:
        if account.username == "mallory":
            raise Conflict("mallory is not welcome")
        self.changes.append((account.username, change))


async def test_hook_find_scope(start_platform: Start) -> None:
    """A knowledge base of a team is seen by those whom the hook puts into it, whatever the token says."""
    running = await start_platform(LoadedOnce, "rag", TenancyPlugin)
    ann, bob = await running.user("ann"), await running.user("bob")
    wanted = {"name": "Shared", "visibility": "team", "team_id": TEAM}
    made = await ann.post("/v1/rag/knowledge-bases", json=wanted)
    assert made.status == 200, made.body
    assert (await bob.get(f"/v1/rag/knowledge-bases/{made.json()['id']}")).status == 200


async def test_claims_give_no_rights(start_platform: Start) -> None:
    """With the plugin switched off a token that still names the team opens nothing of the team's."""
    running = await start_platform(LoadedOnce, "rag", TenancyPlugin)
    ann, bob = await running.user("ann"), await running.user("bob")
    wanted = {"name": "Shared", "visibility": "team", "team_id": TEAM}
    made = (await ann.post("/v1/rag/knowledge-bases", json=wanted)).json()
    running.platform.resource(PLUGIN_STATES).switch_off(["fake_tenancy"])
    assert jwt.decode(bob.token or "", options={"verify_signature": False})["teams"] == [TEAM]
    assert (await bob.get(f"/v1/rag/knowledge-bases/{made['id']}")).status == 404
    assert (await ann.get(f"/v1/rag/knowledge-bases/{made['id']}")).status == 200
    assert (await bob.post("/v1/rag/knowledge-bases", json=wanted)).status == 403


async def test_hook_on_account_event(start_platform: Start) -> None:
    """A plugin hears of a new account and of its sign-in, and its veto leaves nothing behind."""
    plugin = TenancyPlugin()
    running = await start_platform(plugin)
    ann = await running.user("ann")
    assert plugin.changes == [("ann", "created"), ("ann", "signed_in")]
    claims = jwt.decode(ann.token or "", options={"verify_signature": False})
    assert claims["teams"] == [TEAM]
    body = {"username": "mallory", "email": "m@example.org", "password": "long enough"}
    refused = await running.anonymous.post("/v1/auth/register", json=body)
    assert (refused.status, refused.detail) == (409, "mallory is not welcome")
    login = await running.anonymous.post(
        "/v1/auth/login", json={k: body[k] for k in ("username", "password")}
    )
    assert login.status == 401
