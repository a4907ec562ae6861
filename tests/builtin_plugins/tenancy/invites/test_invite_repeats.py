"""A request for an invite that is sent again, as by a client that lost the answer, makes no second invite."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kernel.testing import Actor, Running
from tests.builtin_plugins.tenancy.invite_support import by_token, invite, invite_to_org
from tests.builtin_plugins.tenancy.tenancy_support import (
    audited,
    fresh,
    join,
    join_team,
    make_org,
    make_team,
    refused,
    renew,
    somebody,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def invites_of(actor: Actor, team_id: int) -> list[dict[str, Any]]:
    return list((await actor.get(f"/v1/invites?team_id={team_id}")).json()["items"])


async def test_a_repeated_request_returns_its_invite(running: Running) -> None:
    """With the same token; the invite is recorded once, and what became of it is shown."""
    ann, ben = await somebody(running), await somebody(running)
    team, org, key = await make_team(running, ann), await make_org(running, ann), fresh("key")
    made = []
    for send, place in ((invite, team), (invite_to_org, org)):
        first = await send(ann, place, ben.user["email"], idempotency_key=key)
        made.append(first["id"])
        again = await send(ann, place, ben.user["email"].upper(), idempotency_key=key)
        assert again == first
        assert len(await audited(running, "invite.created", first["id"])) == 1
        assert (await ben.post(by_token(again, "/redeem"))).status == 200
        late = await send(ann, place, ben.user["email"], idempotency_key=key)
        over = {"status": "accepted", "use_count": 1, "how_to_accept": late["how_to_accept"]}
        assert late == {**first, **over} and late["how_to_accept"] != first["how_to_accept"]
    assert [one["id"] for one in await invites_of(ann, team)] == made[:1]


async def test_thirty_at_once_make_one(running: Running) -> None:
    """Whoever comes first makes it; the others get the same."""
    ann = await somebody(running)
    team, email, key = await make_team(running, ann), f"{fresh('x')}@example.org", fresh("key")
    made = await asyncio.gather(*(invite(ann, team, email, idempotency_key=key) for _ in range(30)))
    assert len({one["token"] for one in made}) == 1
    assert len(await invites_of(ann, team)) == 1


async def test_other_requests_make_other_invites(running: Running) -> None:
    """Without a key, with another one, for another address, team or sender."""
    ann, ben = await somebody(running), await somebody(running)
    team, other, key = await make_team(running, ann), await make_team(running, ann), fresh("key")
    await join_team(running, team, ben, "team_admin")
    email = f"{fresh('x')}@example.org"
    made = [
        await invite(ann, team, email, idempotency_key=key),
        await invite(ann, team, email, idempotency_key=fresh("key")),
        await invite(ann, team, f"a{email}", idempotency_key=key),
        await invite(ann, other, email, idempotency_key=key),
        await invite(ben, team, email, idempotency_key=key),
        await invite(ann, team, email),
        await invite(ann, team, email),
    ]
    assert len({one["token"] for one in made}) == len({one["id"] for one in made}) == len(made)


async def test_a_key_is_for_one_request(running: Running) -> None:
    """With another role or number of uses it is 409; who lost the right to invite learns nothing from it."""
    ann, ben = await somebody(running), await somebody(running)
    team, org, key = await make_team(running, ann), await make_org(running, ann), fresh("key")
    body = {"email": f"{fresh('x')}@example.org", "team_id": team, "idempotency_key": key}
    assert (await ann.post("/v1/invites", json=body)).status == 201
    for change in ({"max_uses": 2}, {"team_role": "team_admin"}):
        answer = await ann.post("/v1/invites", json={**body, **change})
        assert (answer.status, answer.json()["code"]) == (409, "idempotency_key_used")
    many = {"emails": [body["email"]], "team_id": team, "idempotency_key": key, "max_uses": 2}
    assert (await ann.post("/v1/invites/bulk", json=many)).status == 409
    await join(running, org, ben, "admin")
    mine = await invite_to_org(ben, org, body["email"], idempotency_key=key)
    assert (await ann.delete(f"/v1/organizations/{org}/members/{ben.user['id']}")).status == 204
    await renew(running, ben)
    sent = {"email": mine["email"], "idempotency_key": key}
    refused(await ben.post(f"/v1/organizations/{org}/invites", json=sent), 403)


async def test_bulk_requests_repeated(running: Running) -> None:
    """Each address gets the invite that it had; those that failed are tried again."""
    ann, ben = await somebody(running), await somebody(running)
    team, key = await make_team(running, ann), fresh("key")
    await join_team(running, team, ben)
    emails = [f"{fresh('x')}@example.org", "nobody", ben.user["email"], f"{fresh('x')}@example.org"]
    body = {"emails": emails, "team_id": team, "idempotency_key": key}
    first = (await ann.post("/v1/invites/bulk", json=body)).json()
    assert (first["created_count"], first["failed_count"]) == (2, 2)
    assert (await ann.post("/v1/invites/bulk", json=body)).json() == first
    single = await invite(ann, team, emails[0], idempotency_key=key)
    assert single["token"] == first["results"][0]["invite"]["token"]
    assert len(await invites_of(ann, team)) == 2
