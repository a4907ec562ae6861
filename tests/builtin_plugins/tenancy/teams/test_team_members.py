"""Members of teams: joining, roles, leaving, and the administrator that a team keeps."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from kernel.auth.identity import IDENTITY
from kernel.sdk import Account, scope_of
from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Running
from tests.builtin_plugins.tenancy.tenancy_support import (
    audited,
    claims,
    id_of,
    join,
    join_team,
    make_org,
    make_team,
    refused,
    somebody,
    suspend,
)
from tests.fakes.rows import execute

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def roster(actor: Actor, team_id: int) -> dict[int, str]:
    """The members of a team with their roles, over HTTP."""
    team = (await actor.get(f"/v1/teams/{team_id}")).json()
    assert team["member_count"] == len(team["members"])
    return {one["user_id"]: one["team_role"] for one in team["members"]}


async def deactivate(running: Running, actor: Actor) -> None:
    change = update(Account).where(Account.id == id_of(actor)).values(is_active=False)
    await execute(running.platform.database, change)


async def teams_in_scope(running: Running, actor: Actor) -> tuple[int, ...]:
    """The teams whose rows the actor may read right now, whatever its token says."""
    claimed = running.platform.resource(TOKENS).verify(actor.token or "")
    principal = await running.platform.resource(IDENTITY).principal_of(claimed)
    return (await scope_of(running.platform, principal)).teams


async def test_members_in_pages(running: Running) -> None:
    """In the order of the team's record; an unknown team is 404, a wrong bound 422."""
    ann, ben, eve = await somebody(running), await somebody(running), await somebody(running)
    team = await make_team(running, ann)
    await join_team(running, team, ben)
    whole = (await eve.get(f"/v1/teams/{team}")).json()["members"]
    path = f"/v1/teams/{team}/members"
    assert (await eve.get(path)).json() == {"items": whole, "total": 2, "limit": 50, "offset": 0}
    assert (await eve.get(f"{path}?limit=1&offset=1")).json()["items"] == whole[1:]
    assert (await eve.get(f"{path}?offset=2")).json() == {"items": [], "total": 2, "limit": 50, "offset": 2}
    refused(await eve.get("/v1/teams/2000000000/members"), 404, "team_not_found")
    assert (await eve.get(f"{path}?limit=501")).status == 422


async def test_a_member_joins_and_leaves(running: Running) -> None:
    """The record is that of the list; scopes change at once, claims at the refresh; all is audited."""
    ann, ben = await somebody(running), await somebody(running)
    team = await make_team(running, ann)
    path = f"/v1/teams/{team}/members"
    assert await teams_in_scope(running, ben) == ()
    answer = await ann.post(path, json={"user_id": id_of(ben)})
    assert answer.status == 201
    record = answer.json()
    assert record.pop("joined_at")
    assert record == {
        "user_id": id_of(ben),
        "username": ben.user["username"],
        "email": ben.user["email"],
        "team_role": "member",
    }
    assert await teams_in_scope(running, ben) == (team,)
    assert (await claims(ben))["teams"] == [team]

    promoted = await ann.patch(f"{path}/{id_of(ben)}", json={"team_role": "team_admin"})
    assert (promoted.status, promoted.json()["team_role"]) == (200, "team_admin")
    assert (await ben.patch(f"/v1/teams/{team}", json={"description": "by ben"})).status == 200

    assert (await ben.delete(f"{path}/{id_of(ben)}")).status == 204
    assert await roster(ann, team) == {id_of(ann): "team_admin"}
    assert await teams_in_scope(running, ben) == ()
    refused(await ben.patch(f"/v1/teams/{team}", json={"description": "again"}), 403)
    for action, before, after in (
        ("team.member_added", None, {"team_role": "member"}),
        ("team.member_role_changed", {"team_role": "member"}, {"team_role": "team_admin"}),
        ("team.member_removed", {"team_role": "team_admin"}, None),
    ):
        (entry,) = await audited(running, action, team)
        who = {"user_id": id_of(ben)}
        assert entry.before_state == (before and {**who, **before})
        assert entry.after_state == (after and {**who, **after})


async def test_nobody_joins_twice(running: Running) -> None:
    ann, ben = await somebody(running), await somebody(running)
    team = await make_team(running, ann)
    await join_team(running, team, ben)
    body = {"user_id": id_of(ben), "team_role": "team_admin"}
    refused(await ann.post(f"/v1/teams/{team}/members", json=body), 409, "already_member")
    assert (await roster(ann, team))[id_of(ben)] == "member"


async def test_only_active_accounts_join(running: Running) -> None:
    """An unknown account and a deactivated one get the same 404."""
    ann, gone = await somebody(running), await somebody(running, is_active=False)
    team = await make_team(running, ann)
    path = f"/v1/teams/{team}/members"
    unknown = await ann.post(path, json={"user_id": 2_000_000_000})
    refused(unknown, 404, "user_not_found")
    inactive = await ann.post(path, json={"user_id": id_of(gone)})
    assert (inactive.status, inactive.body) == (unknown.status, unknown.body)


async def test_what_is_not_there(running: Running) -> None:
    """Unknown teams and accounts that are no members are 404, for oneself as well."""
    ann, stranger = await somebody(running), await somebody(running)
    team = await make_team(running, ann)
    path = f"/v1/teams/{team}/members/{id_of(stranger)}"
    refused(await ann.patch(path, json={"team_role": "member"}), 404, "member_not_found")
    refused(await ann.delete(path), 404, "member_not_found")
    refused(await stranger.delete(path), 404, "member_not_found")
    refused(await stranger.delete(f"/v1/teams/2000000000/members/{id_of(stranger)}"), 404, "team_not_found")
    refused(await stranger.delete("/v1/teams/2000000000/members/1"), 404, "team_not_found")
    refused(await ann.post("/v1/teams/2000000000/members", json={"user_id": 1}), 404, "team_not_found")


async def test_a_team_keeps_an_administrator(running: Running) -> None:
    """The sole team_admin can't be demoted or removed, nor leave; with a second one it can."""
    ann, ben = await somebody(running), await somebody(running)
    team = await make_team(running, ann)
    await join_team(running, team, ben)
    path = f"/v1/teams/{team}/members"
    platform_admin = await somebody(running, platform_admin=True)
    for actor in (ann, platform_admin):
        refused(
            await actor.patch(f"{path}/{id_of(ann)}", json={"team_role": "member"}), 409, "last_team_admin"
        )
        refused(await actor.delete(f"{path}/{id_of(ann)}"), 409, "last_team_admin")
    same = await ann.patch(f"{path}/{id_of(ann)}", json={"team_role": "team_admin"})
    assert same.status == 200
    assert await audited(running, "team.member_role_changed", team) == []
    assert (await ann.patch(f"{path}/{id_of(ben)}", json={"team_role": "team_admin"})).status == 200
    assert (await ann.delete(f"{path}/{id_of(ann)}")).status == 204
    assert await roster(ben, team) == {id_of(ben): "team_admin"}


@pytest.mark.parametrize("way", ["demote", "remove"])
async def test_instance_administrators_may_take_the_last_one(running: Running, way: str) -> None:
    ann, admin = await somebody(running), await somebody(running, role="admin")
    team = await make_team(running, ann)
    path = f"/v1/teams/{team}/members/{id_of(ann)}"
    if way == "demote":
        assert (await admin.patch(path, json={"team_role": "member"})).status == 200
        assert await roster(admin, team) == {id_of(ann): "member"}
    else:
        assert (await admin.delete(path)).status == 204
        assert await roster(admin, team) == {}


async def test_a_deactivated_administrator_does_not_count(running: Running) -> None:
    """Nobody is left who could manage the team, if the other team_admin can't sign in."""
    ann, ben = await somebody(running), await somebody(running)
    team = await make_team(running, ann)
    await join_team(running, team, ben, "team_admin")
    await deactivate(running, ben)
    path = f"/v1/teams/{team}/members"
    refused(await ann.delete(f"{path}/{id_of(ann)}"), 409, "last_team_admin")
    assert (await ann.delete(f"{path}/{id_of(ben)}")).status == 204


async def test_an_administrator_suspended_in_the_organization_does_not_count(running: Running) -> None:
    owner, ann, ben = [await somebody(running) for _ in range(3)]
    home = await make_org(running, owner)
    team = await make_team(running, None, organization=home)
    for actor in (ann, ben):
        await join(running, home, actor)
        await join_team(running, team, actor, "team_admin")
    await suspend(running, home, ben)
    path = f"/v1/teams/{team}/members/{id_of(ann)}"
    refused(await ann.delete(path), 409, "last_team_admin")
    refused(await owner.patch(path, json={"team_role": "member"}), 409, "last_team_admin")


async def test_a_team_of_an_organization_takes_its_active_members(running: Running) -> None:
    """Strangers and suspended members can't be added by anybody; whoever is suspended has no team there."""
    owner, member, suspended = [await somebody(running) for _ in range(3)]
    home = await make_org(running, owner)
    team = await make_team(running, owner, organization=home)
    path = f"/v1/teams/{team}/members"
    for actor in (member, suspended):
        refused(await owner.post(path, json={"user_id": id_of(actor)}), 409, "outside_organization")
        await join(running, home, actor)
        assert (await owner.post(path, json={"user_id": id_of(actor)})).status == 201
    await suspend(running, home, suspended)
    assert await teams_in_scope(running, suspended) == ()
    assert await teams_in_scope(running, member) == (team,)
    assert (await owner.delete(f"{path}/{id_of(suspended)}")).status == 204
    refused(await owner.post(path, json={"user_id": id_of(suspended)}), 409, "outside_organization")
    entries = await audited(running, "team.member_added", team)
    assert {entry.scope_org_id for entry in entries} == {home}
