"""Claims at sign-in and refresh, and the scope of the caller: memberships as of now (spec 5.1, 5.3)."""

from __future__ import annotations

import pytest

from kernel.auth.identity import IDENTITY
from kernel.sdk import Scope, scope_of
from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Running
from tests.builtin_plugins.tenancy.tenancy_support import (
    claims,
    join,
    join_team,
    make_org,
    make_team,
    somebody,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def scope(running: Running, actor: Actor) -> Scope:
    principal = await running.platform.resource(IDENTITY).principal_of(
        running.platform.resource(TOKENS).verify(actor.token or "")
    )
    return await scope_of(running.platform, principal)


async def test_sign_in(running: Running) -> None:
    """A first token carries the teams and organizations, and the earliest membership as the home."""
    ann = await running.user()
    assert {"tenant_id", "active_tenant_id"}.isdisjoint(await claims(ann))
    first, second = await make_org(running), await make_org(running)
    await join(running, second, ann, "admin")
    await join(running, first, ann)
    team = await make_team(running, ann)
    again = await running.sign_in(ann.user["username"], ann.password)
    found = await claims(again)
    assert found["teams"] == [team]
    assert found["tenant_id"] == second
    assert found["orgs"] == [{"id": second, "role": "admin"}, {"id": first, "role": "member"}]
    assert "active_tenant_id" not in found


async def test_a_token_stays_usable(running: Running) -> None:
    """Whoever is in very many teams and organizations still gets a token that the server takes."""
    ann = await somebody(running)
    for _ in range(120):
        await join(running, await make_org(running), ann)
        await join_team(running, await make_team(running), ann)
    found = await claims(ann)
    assert found["orgs"][0]["id"] == found["tenant_id"]
    assert len((await scope(running, ann)).organizations) == 120
    assert (await ann.get("/v1/permissions")).status == 200
