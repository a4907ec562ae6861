"""An invite admits each account once, and nobody who was removed after it was sent."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kernel.testing import Actor, Reply, Running, platforms
from tests.builtin_plugins.tenancy.invite_support import by_token, invite, invite_to_org
from tests.builtin_plugins.tenancy.tenancy_support import (
    id_of,
    join,
    join_team,
    make_org,
    make_team,
    refused,
    renew,
    somebody,
)
from tests.fakes.own_clock import OwnClock

pytestmark = pytest.mark.asyncio(loop_scope="session")

EVERYBODY = "everybody@example.org"


def member(org_id: int, actor: Actor, what: str = "") -> str:
    return f"/v1/organizations/{org_id}/members/{id_of(actor)}{what}"


def team_member(team_id: int, actor: Actor) -> str:
    return f"/v1/teams/{team_id}/members/{id_of(actor)}"


async def reinvited(sender: Actor, place: dict[str, int], email: str) -> Reply:
    """What becomes of the address in a bulk request."""
    path = "/v1/invites/bulk"
    if "organization_id" in place:
        path, place = f"/v1/organizations/{place['organization_id']}/invites/bulk", {}
    answer = await sender.post(path, json={"emails": [email], **place})
    assert answer.status == 200, answer.body
    return answer


async def test_whoever_left_an_organization_does_not_return_by_the_same_invite(running: Running) -> None:
    """An invite for many admits each account once; it takes no use more, and another one does admit."""
    ann, ben = await somebody(running), await somebody(running)
    home = await make_org(running, ann)
    issued = await invite_to_org(ann, home, EVERYBODY, max_uses=9)
    assert (await ben.post(by_token(issued, "/redeem"))).status == 200
    assert (await ben.delete(member(home, ben))).status == 204
    await renew(running, ben)
    refused(await ben.post(by_token(issued, "/redeem")), 409, "invite_closed")
    (row,) = (await ann.get(f"/v1/organizations/{home}/invites")).json()["items"]
    assert (row["use_count"], row["status"]) == (1, "pending")
    another = await invite_to_org(ann, home, EVERYBODY, max_uses=9)
    assert (await ben.post(by_token(another, "/redeem"))).status == 200


async def test_whoever_is_removed_by_a_machine_with_another_clock(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database's clock says what is pending: the link of a removed account is closed everywhere."""
    clock = OwnClock(monkeypatch)
    async with platforms(tmp_path) as start:
        running = await start("tenancy", env={"DATABASE_URL": postgres_url})
        ann, ben, eve = [await somebody(running) for _ in range(3)]

        async def move(seconds: float) -> None:
            clock.by(seconds)
            for actor in (ann, ben, eve):
                await renew(running, actor)

        team = await make_team(running, ann)
        issued = await invite(ann, team, EVERYBODY, max_uses=9)
        assert (await ben.post(by_token(issued, "/redeem"))).status == 200
        await move(365 * 24 * 3600.0)
        ahead = await invite(ann, team, EVERYBODY, max_uses=9)
        assert (await ann.delete(team_member(team, ben))).status == 204
        assert (await eve.post(by_token(issued, "/redeem"))).status == 200
        await move(0)
        for one in (issued, ahead):
            refused(await ben.post(by_token(one, "/redeem")), 409, "invite_closed")
            assert datetime.fromisoformat(one["expires_at"]) < datetime.now(UTC) + timedelta(days=30)


async def test_whoever_is_removed_from_an_organization_needs_a_new_invite(running: Running) -> None:
    """Those that were pending are closed to the account, used or not, personal or not; not to others."""
    ann, ben, eve = [await somebody(running) for _ in range(3)]
    home = await make_org(running, ann)
    shared = await invite_to_org(ann, home, EVERYBODY, max_uses=9)
    personal = await invite_to_org(ann, home, ben.user["email"])
    await join(running, home, ben)
    assert (await ann.delete(member(home, ben))).status == 204
    await renew(running, ben)
    for issued in (shared, personal):
        refused(await ben.post(by_token(issued, "/redeem")), 409, "invite_closed")
    assert (await eve.post(by_token(shared, "/redeem"))).status == 200
    answer = await reinvited(ann, {"organization_id": home}, ben.user["email"])
    (result,) = answer.json()["results"]
    assert result["status"] == "created", "an invite that admits nobody stands in no way"
    assert (await ben.post(by_token(result["invite"], "/redeem"))).status == 200


async def test_whoever_is_removed_from_a_team_needs_a_new_invite(running: Running) -> None:
    """The same in a team, where the invite would have made a team_admin."""
    ann, ben, eve = [await somebody(running) for _ in range(3)]
    team = await make_team(running, ann)
    shared = await invite(ann, team, EVERYBODY, max_uses=9, team_role="team_admin")
    personal = await invite(ann, team, ben.user["email"])
    await join_team(running, team, ben)
    assert (await ann.delete(team_member(team, ben))).status == 204
    for issued in (shared, personal):
        refused(await ben.post(by_token(issued, "/redeem")), 409, "invite_closed")
    assert (await eve.post(by_token(shared, "/redeem"))).status == 200
    answer = await reinvited(ann, {"team_id": team}, ben.user["email"])
    assert answer.json()["created_count"] == 1


async def test_a_suspended_member_does_not_leave_and_return(running: Running) -> None:
    """Leaving ends no suspension by way of an invite that was never used."""
    ann, ben = await somebody(running), await somebody(running)
    home = await make_org(running, ann)
    issued = await invite_to_org(ann, home, EVERYBODY, max_uses=9)
    await join(running, home, ben)
    assert (await ann.put(member(home, ben, "/suspension"))).status == 200
    await renew(running, ben)
    assert (await ben.delete(member(home, ben))).status == 204
    await renew(running, ben)
    refused(await ben.post(by_token(issued, "/redeem")), 409, "invite_closed")


async def test_removal_while_the_invite_is_redeemed(running: Running) -> None:
    """Whichever comes first, one who was removed and has redeemed before is out."""
    ann, ben = await somebody(running), await somebody(running)
    team = await make_team(running, ann)
    issued = await invite(ann, team, EVERYBODY, max_uses=1000)
    assert (await ben.post(by_token(issued, "/redeem"))).status == 200
    again = [ben.post(by_token(issued, "/redeem")) for _ in range(20)]
    answers = await asyncio.gather(ann.delete(team_member(team, ben)), *again)
    assert answers[0].status == 204
    assert {answer.status for answer in answers[1:]} == {409}
    assert (await ann.get(f"/v1/teams/{team}")).json()["member_count"] == 1
