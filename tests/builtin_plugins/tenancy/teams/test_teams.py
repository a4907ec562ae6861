"""Teams: records, names, who sees what, who may change what, and what deleting one leaves."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.models import Invite, TeamMember
from kernel.auth.identity import IDENTITY
from kernel.sdk import scope_of
from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Running
from tests.builtin_plugins.tenancy.tenancy_support import (
    audited,
    claims,
    fresh,
    give_keys,
    id_of,
    join,
    join_team,
    make_org,
    make_team,
    problems,
    refused,
    renew,
    somebody,
    suspend,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def create(actor: Actor, **body: Any) -> dict[str, Any]:
    answer = await actor.post("/v1/teams", json={"name": fresh("Team"), **body})
    assert answer.status == 201, answer.body
    return dict(answer.json())


async def test_the_creator_becomes_team_admin(running: Running) -> None:
    """The record is that of decisions.md; the details name the creator; a fresh token knows the team."""
    ann = await somebody(running)
    name = fresh("Team")
    answer = await ann.post("/v1/teams", json={"name": f"  {name} ", "description": "those of the tests"})
    assert answer.status == 201
    made = answer.json()
    assert made.keys() == {"id", "name", "description", "organization_id", "created_at", "member_count"}
    assert (made["name"], made["description"]) == (name, "those of the tests")
    assert (made["member_count"], made["organization_id"]) == (1, None)

    shown = (await ann.get(f"/v1/teams/{made['id']}")).json()
    members = shown.pop("members")
    assert shown.pop("unlisted") is False
    assert shown == made
    assert [one.pop("joined_at") is not None for one in members] == [True]
    assert members == [
        {
            "user_id": id_of(ann),
            "username": ann.user["username"],
            "email": ann.user["email"],
            "team_role": "team_admin",
        }
    ]
    assert (await claims(ann))["teams"] == [made["id"]]
    (entry,) = await audited(running, "team.created", made["id"])
    assert entry.actor_id == id_of(ann)
    assert entry.after_state == {"name": name, "description": "those of the tests"}


@pytest.mark.parametrize(
    "claim",
    [str.upper, str.swapcase, lambda name: f" {name}\t", lambda name: name.replace("fi", "\ufb01")],
    ids=["upper", "swapped", "spaces", "ligature"],
)
async def test_a_name_is_claimed_in_every_case(running: Running, claim: Any) -> None:
    """The same name in another writing is 409, at creation and at renaming."""
    ann = await somebody(running)
    name = fresh("Stra\u00dfe fin")
    await create(ann, name=name)
    refused(await ann.post("/v1/teams", json={"name": claim(name)}), 409, "team_name_taken")
    other = await create(ann)
    refused(await ann.patch(f"/v1/teams/{other['id']}", json={"name": claim(name)}), 409, "team_name_taken")
    assert (await ann.get(f"/v1/teams/{other['id']}")).json()["name"] == other["name"]


async def test_a_team_may_change_the_case_of_its_own_name(running: Running) -> None:
    ann = await somebody(running)
    made = await create(ann)
    answer = await ann.patch(f"/v1/teams/{made['id']}", json={"name": made["name"].upper()})
    assert (answer.status, answer.json()["name"]) == (200, made["name"].upper())


@pytest.mark.parametrize(
    "name",
    ["   ", "\ufdfa" * 100, "two\nlines", "bell\x07"],
    ids=["blank", "long when folded", "lines", "control"],
)
async def test_names_that_do_not_fit(running: Running, name: str) -> None:
    """422 naming the field; nothing is made and nothing renamed."""
    ann = await somebody(running)
    assert "body.name" in problems(await ann.post("/v1/teams", json={"name": name}))
    team = await create(ann)
    assert "body.name" in problems(await ann.patch(f"/v1/teams/{team['id']}", json={"name": name}))
    assert (await ann.get("/v1/teams", params={"mine": "true"})).json()["total"] == 1


async def test_what_may_be_changed(running: Running) -> None:
    """Name and description; an empty change and a foreign field are 422."""
    ann = await somebody(running)
    team = await create(ann, description="first")
    path = f"/v1/teams/{team['id']}"
    answer = await ann.patch(path, json={"description": "second"})
    assert answer.json() == {**team, "description": "second"}
    assert "body" in problems(await ann.patch(path, json={}))
    assert "body.organization_id" in problems(await ann.patch(path, json={"organization_id": 1}))
    (entry,) = await audited(running, "team.updated", team["id"])
    assert (entry.before_state["description"], entry.after_state["description"]) == ("first", "second")


async def test_the_list_shows_all_teams(running: Running) -> None:
    """Everybody sees every team, with its members counted; `q` and `mine` narrow it, before paging."""
    ann, ben = await somebody(running), await somebody(running)
    mark = fresh("list")
    names = [f"{mark} A", f"{mark} B", f"{mark} 100%_c"]
    made = [await create(ann, name=name) for name in names]
    await join_team(running, made[1]["id"], ben)
    page = (await ben.get("/v1/teams", params={"q": mark.upper(), "limit": "2"})).json()
    assert [one["name"] for one in page["items"]] == names[:2]
    assert [one["member_count"] for one in page["items"]] == [1, 2]
    assert (page["total"], page["limit"], page["offset"]) == (3, 2, 0)
    rest = (await ben.get("/v1/teams", params={"q": mark, "limit": "2", "offset": "2"})).json()
    assert [one["id"] for one in rest["items"]] == [made[2]["id"]]
    mine = (await ben.get("/v1/teams", params={"mine": "true"})).json()
    assert [one["id"] for one in mine["items"]] == [made[1]["id"]]
    assert mine["total"] == 1
    literal = (await ben.get("/v1/teams", params={"q": f"{mark} 100%_"})).json()
    assert [one["id"] for one in literal["items"]] == [made[2]["id"]]
    assert (await ben.get("/v1/teams", params={"q": f"{mark}%b"})).json()["total"] == 0


async def test_a_team_of_an_organization(running: Running) -> None:
    """Active members of the organization make it; who manages them, there or above, manages the team."""
    owner, above, member = [await somebody(running) for _ in range(3)]
    top = await make_org(running, above)
    home = await make_org(running, owner, parent=top)
    await join(running, home, member)
    team = await create(member, organization_id=home)
    assert team["organization_id"] == home
    (entry,) = await audited(running, "team.created", team["id"])
    assert entry.scope_org_id == home

    path = f"/v1/teams/{team['id']}"
    clerk = await somebody(running)
    await join(running, home, clerk)
    refused(await clerk.patch(path, json={"description": "x"}), 403)
    await give_keys(running, home, clerk, "org.members.manage")
    for actor in (owner, above, clerk):
        assert (await actor.patch(path, json={"description": fresh("text")})).status == 200
    sideways, below = await somebody(running), await somebody(running)
    await make_org(running, sideways, parent=top)
    await make_org(running, below, parent=home)
    for actor in (sideways, below):
        refused(await actor.patch(path, json={"description": "x"}), 403)


async def test_an_organization_takes_teams_of_active_members_only(running: Running) -> None:
    """Strangers, also from above, and suspended members get one answer, as for an unknown one."""
    above, owner, suspended = [await somebody(running) for _ in range(3)]
    top = await make_org(running, above)
    home = await make_org(running, owner, parent=top)
    await join(running, home, suspended)
    await suspend(running, home, suspended)
    body = {"name": fresh("team"), "organization_id": home}
    unknown = await above.post("/v1/teams", json={**body, "organization_id": 2_000_000_000})
    refused(unknown, 403, "not_a_member")
    for actor in (above, suspended, await somebody(running, role="admin")):
        answer = await actor.post("/v1/teams", json=body)
        assert (answer.status, answer.body) == (unknown.status, unknown.body)


async def test_strangers_do_not_learn_whose_team_it_is(running: Running) -> None:
    """The organization is named to those who may know it, in the list and alone."""
    owner, above, below, stranger = [await somebody(running) for _ in range(4)]
    top = await make_org(running, above)
    home = await make_org(running, owner, parent=top)
    await make_org(running, below, parent=home)
    team = await create(owner, organization_id=home)
    knowing = (owner, above, await somebody(running, role="admin"))
    for actor, expected in [*((one, home) for one in knowing), (below, None), (stranger, None)]:
        listed = (await actor.get("/v1/teams", params={"q": team["name"]})).json()["items"]
        assert [one["organization_id"] for one in listed] == [expected]
        assert (await actor.get(f"/v1/teams/{team['id']}")).json()["organization_id"] == expected


async def test_a_deleted_team_leaves_nothing(running: Running) -> None:
    """Memberships and invites go, scopes and claims forget it at once, and its id is not used again."""
    ann, ben = await somebody(running), await somebody(running)
    team = await create(ann)
    await join_team(running, team["id"], ben)
    invited = await ann.post("/v1/invites", json={"email": "x@example.org", "team_id": team["id"]})
    token = invited.json()["token"]
    assert (await ann.delete(f"/v1/teams/{team['id']}")).status == 204
    refused(await ann.get(f"/v1/teams/{team['id']}"), 404, "team_not_found")
    refused(await running.anonymous.get(f"/v1/invites/by-token/{token}"), 404, "invite_not_found")
    assert (await claims(ben))["teams"] == []
    assert (await scope_of(running.platform, await _principal(running, ben))).teams == ()
    for table in (TeamMember, Invite):
        left = select(func.count()).select_from(table).where(table.team_id == team["id"])
        assert await running.platform.database.read(Session.scalar, left) == 0
    (entry,) = await audited(running, "team.deleted", team["id"])
    assert entry.before_state["name"] == team["name"]
    assert id_of(ann) in entry.before_state["member_ids"]
    assert (await create(ann, name=team["name"]))["id"] > team["id"]


async def _principal(running: Running, actor: Actor) -> Any:
    claimed = running.platform.resource(TOKENS).verify(actor.token or "")
    return await running.platform.resource(IDENTITY).principal_of(claimed)


async def test_a_service_has_no_team(running: Running) -> None:
    """A service token lists teams but can't be a team's administrator."""
    token = running.platform.resource(TOKENS).mint_service("tests", 1)
    service = Actor(running, token)
    assert (await service.get("/v1/teams")).status == 200
    refused(await service.post("/v1/teams", json={"name": fresh("team")}), 403)
    assert await make_team(running) > 0


async def test_addresses_are_for_fellow_members(running: Running) -> None:
    """Every account sees names and roles; addresses only members, managers from above and administrators."""
    ann, ben, stranger = await somebody(running), await somebody(running), await somebody(running)
    boss, admin = await somebody(running), await somebody(running, role="admin")
    org = await make_org(running, boss)
    for person in (ann, ben):
        await join(running, org, person)
    team = await make_team(running, ann, organization=org)
    await join_team(running, team, ben)
    service = Actor(running, running.platform.resource(TOKENS).mint_service("tests", 1))
    mine = [ann.user["email"], ben.user["email"]]
    for actor, expected in (
        *((one, mine) for one in (ann, ben, boss, admin, service)),
        (stranger, [None, None]),
    ):
        details = (await actor.get(f"/v1/teams/{team}")).json()["members"]
        listed = (await actor.get(f"/v1/teams/{team}/members")).json()["items"]
        for members in (details, listed):
            assert [one["email"] for one in members] == expected
            assert [one["username"] for one in members] == [ann.user["username"], ben.user["username"]]
    assert (await ann.delete(f"/v1/teams/{team}/members/{ben.user['id']}")).status == 204
    await renew(running, ben)
    assert (await ben.get(f"/v1/teams/{team}")).json()["members"][0]["email"] is None
