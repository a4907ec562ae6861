"""Many at once, on two platforms with one database: each guard of teams and invites holds for all of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import func, select

from builtin_plugins.tenancy.models import Invite, Team, TeamMember
from kernel.testing import Actor, Reply, Running, platforms, postgres_database
from tests.builtin_plugins.tenancy.invite_support import by_token, invite, invite_to_org
from tests.builtin_plugins.tenancy.tenancy_support import (
    audited,
    fresh,
    give_keys,
    id_of,
    join,
    join_team,
    make_org,
    make_team,
    somebody,
)

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

Pair = tuple[Running, Running]
ROUNDS = 8


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Pair]:
    """Two platforms on one database, as two processes would be."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database()) if request.param == "postgresql" else None
        async with platforms(tmp_path_factory.mktemp("races")) as start:
            env = {"DATABASE_URL": url}
            yield await start("tenancy", env=env), await start("tenancy", env=env)


def turn(actor: Actor, pair: Pair, number: int) -> Actor:
    return replace(actor, running=pair[number % 2])


async def at_once(requests: Sequence[Awaitable[Reply]]) -> Counter[tuple[int, str]]:
    """How often each status, with the code of an error, was answered to requests sent together."""
    answers = await asyncio.gather(*requests)
    return Counter((one.status, _code(one)) for one in answers)


def _code(answer: Reply) -> str:
    return str(answer.json()["code"]) if answer.status >= 400 else ""


async def count(running: Running, *where: Any) -> int:
    number = await running.platform.database.read(
        lambda session: session.scalar(select(func.count()).select_from(TeamMember).where(*where))
    )
    return int(number or 0)


async def stored(running: Running, issued: dict[str, Any]) -> tuple[str, int]:
    """Status and uses of an invite as the table has them."""
    row = await running.platform.database.read(lambda session: session.get_one(Invite, issued["id"]))
    return str(row.status), int(row.use_count)


async def test_fifty_clients_redeem_a_personal_invite(pair: Pair) -> None:
    """Of the invited account's fifty clients one succeeds; the others hear that it is spent."""
    ann, ben = await somebody(pair[0]), await somebody(pair[0])
    team = await make_team(pair[0], ann)
    issued = await invite(ann, team, ben.user["email"])
    path = by_token(issued, "/redeem")
    found = await at_once([turn(ben, pair, number).post(path) for number in range(50)])
    assert found == {(200, ""): 1, (409, "invite_spent"): 49}
    assert await stored(pair[0], issued) == ("accepted", 1)
    assert await count(pair[0], TeamMember.team_id == team) == 2
    assert len(await audited(pair[0], "invite.redeemed", issued["id"])) == 1


async def test_fifty_accounts_redeem_a_personal_invite(pair: Pair) -> None:
    """Only the invited one succeeds, and none of the others takes its use."""
    ann = await somebody(pair[0])
    team = await make_team(pair[0], ann)
    crowd = [await somebody(pair[0]) for _ in range(50)]
    issued = await invite(ann, team, crowd[37].user["email"])
    path = by_token(issued, "/redeem")
    found = await at_once([turn(one, pair, number).post(path) for number, one in enumerate(crowd)])
    assert found == {(200, ""): 1, (403, "invite_for_another"): 49}
    assert await count(pair[0], TeamMember.team_id == team, TeamMember.user_id == id_of(crowd[37])) == 1


@pytest.mark.parametrize("kind", ["team", "organization"])
async def test_ten_accounts_redeem_an_invite_for_three(pair: Pair, kind: str) -> None:
    ann = await somebody(pair[0])
    if kind == "team":
        issued = await invite(ann, await make_team(pair[0], ann), "all@example.org", max_uses=3)
    else:
        issued = await invite_to_org(ann, await make_org(pair[0], ann), "all@example.org", max_uses=3)
    crowd = [await somebody(pair[0]) for _ in range(10)]
    path = by_token(issued, "/redeem")
    found = await at_once([turn(one, pair, number).post(path) for number, one in enumerate(crowd)])
    assert found == {(200, ""): 3, (409, "invite_spent"): 7}
    assert await stored(pair[0], issued) == ("accepted", 3)
    assert len(await audited(pair[0], "invite.redeemed", issued["id"])) == 3


async def test_redeem_against_revoke(pair: Pair) -> None:
    """One of the two wins, and the invite, the membership and both answers agree."""
    ann = await somebody(pair[0])
    team = await make_team(pair[0], ann)
    for number in range(ROUNDS):
        ben = await somebody(pair[0])
        issued = await invite(ann, team, ben.user["email"])
        redeemed, revoked = await asyncio.gather(
            turn(ben, pair, number).post(by_token(issued, "/redeem")),
            turn(ann, pair, number + 1).post(f"/v1/invites/{issued['id']}/revoke"),
        )
        assert sorted((redeemed.status, revoked.status)) == [200, 409]
        won = redeemed.status == 200
        assert await stored(pair[0], issued) == (("accepted", 1) if won else ("revoked", 0))
        assert await count(pair[0], TeamMember.team_id == team, TeamMember.user_id == id_of(ben)) == won


async def test_redeem_against_removal_of_the_sender(pair: Pair) -> None:
    """Whoever redeems after the sender was removed is refused: never both a removal and a later member."""
    ann = await somebody(pair[0])
    team = await make_team(pair[0], ann)
    for number in range(ROUNDS):
        eve, ben = await somebody(pair[0]), await somebody(pair[0])
        await join_team(pair[0], team, eve, "team_admin")
        issued = await invite(eve, team, ben.user["email"])
        redeemed, removed = await asyncio.gather(
            turn(ben, pair, number).post(by_token(issued, "/redeem")),
            turn(ann, pair, number + 1).delete(f"/v1/teams/{team}/members/{id_of(eve)}"),
        )
        assert removed.status == 204
        assert (redeemed.status, _code(redeemed)) in {(200, ""), (409, "invite_withdrawn")}
        (leaving,) = [
            one
            for one in await audited(pair[0], "team.member_removed", team)
            if one.before_state["user_id"] == id_of(eve)
        ]
        for joining in await audited(pair[0], "invite.redeemed", issued["id"]):
            assert joining.id < leaving.id


@pytest.mark.parametrize("way", ["leave", "demote each other"])
async def test_the_last_two_administrators(pair: Pair, way: str) -> None:
    for number in range(ROUNDS):
        ann, ben = await somebody(pair[0]), await somebody(pair[0])
        team = await make_team(pair[0], ann)
        await join_team(pair[0], team, ben, "team_admin")
        path = f"/v1/teams/{team}/members"
        first, second = turn(ann, pair, number), turn(ben, pair, number + 1)
        if way == "leave":
            found = await at_once(
                [first.delete(f"{path}/{id_of(ann)}"), second.delete(f"{path}/{id_of(ben)}")]
            )
            assert found == {(204, ""): 1, (409, "last_team_admin"): 1}
        else:
            body = {"team_role": "member"}
            found = await at_once(
                [
                    first.patch(f"{path}/{id_of(ben)}", json=body),
                    second.patch(f"{path}/{id_of(ann)}", json=body),
                ]
            )
            # The slower one may be no team_admin any more when its turn comes.
            assert found[200, ""] == 1
            assert found[409, "last_team_admin"] + found[403, "forbidden"] == 1
        administrators = (TeamMember.team_id == team, TeamMember.team_role == "team_admin")
        assert await count(pair[0], *administrators) == 1


async def test_a_name_claimed_many_times(pair: Pair) -> None:
    """One team gets it, by making or by renaming, in whatever case."""
    ann = await somebody(pair[0])
    others = [await make_team(pair[0], ann) for _ in range(10)]
    name = fresh("Claimed")
    makes = [
        turn(ann, pair, number).post("/v1/teams", json={"name": name.upper() if number % 3 else name})
        for number in range(10)
    ]
    renames = [
        turn(ann, pair, number).patch(f"/v1/teams/{team}", json={"name": name.lower()})
        for number, team in enumerate(others)
    ]
    found = await at_once([*makes, *renames])
    assert found[201, ""] + found[200, ""] == 1
    assert found[409, "team_name_taken"] == 19
    taken = select(func.count()).select_from(Team).where(Team.name_key == name.casefold())
    assert await pair[0].platform.database.read(lambda session: session.scalar(taken)) == 1


async def test_an_account_is_added_many_times(pair: Pair) -> None:
    """By an invite and by two managers: one way in, and the others hear of it."""
    ann, ben = await somebody(pair[0]), await somebody(pair[0])
    team = await make_team(pair[0], ann)
    issued = await invite(ann, team, "all@example.org", max_uses=9)
    adds = [
        turn(ann, pair, number).post(f"/v1/teams/{team}/members", json={"user_id": id_of(ben)})
        for number in range(10)
    ]
    redeems = [turn(ben, pair, number).post(by_token(issued, "/redeem")) for number in range(10)]
    found = await at_once([*adds, *redeems])
    assert found[201, ""] + found[200, ""] == 1
    assert found[409, "already_member"] == 19
    assert await stored(pair[0], issued) == ("pending", found[200, ""])


async def test_the_same_address_in_bulk_many_times(pair: Pair) -> None:
    """Every address is invited once, by whichever request came first."""
    ann = await somebody(pair[0])
    team = await make_team(pair[0], ann)
    emails = [f"{fresh('x')}@example.org" for _ in range(20)]
    body = {"emails": emails, "team_id": team}
    answers = await asyncio.gather(
        *(turn(ann, pair, number).post("/v1/invites/bulk", json=body) for number in range(6))
    )
    assert {one.status for one in answers} == {200}
    assert sum(one.json()["created_count"] for one in answers) == 20
    listed = (await ann.get("/v1/invites", params={"team_id": str(team)})).json()
    assert sorted(one["email"] for one in listed["items"]) == sorted(emails)


async def test_a_team_is_deleted_meanwhile(pair: Pair) -> None:
    """Whoever comes too late finds no team or no invite; nobody waits for ever, nothing breaks."""
    for number in range(ROUNDS):
        ann, ben, cat = [await somebody(pair[0]) for _ in range(3)]
        team = await make_team(pair[0], ann)
        issued = await invite(ann, team, "all@example.org", max_uses=9)
        body = {"email": "new@example.org", "team_id": team}
        found = await at_once(
            [
                turn(ann, pair, number).post(f"/v1/teams/{team}/members", json={"user_id": id_of(cat)}),
                turn(ben, pair, number).post(by_token(issued, "/redeem")),
                turn(ann, pair, number + 1).delete(f"/v1/teams/{team}"),
                turn(ann, pair, number).post("/v1/invites", json=body),
                turn(ann, pair, number + 1).patch(f"/v1/teams/{team}", json={"description": "late"}),
                turn(ann, pair, number).post(f"/v1/invites/{issued['id']}/revoke"),
            ]
        )
        assert {status for status, _ in found} <= {200, 201, 204, 403, 404, 409}
        assert found[204, ""] == 1
        assert await count(pair[0], TeamMember.team_id == team) == 0


async def test_a_storm(pair: Pair) -> None:
    """Teams, organizations and accounts changed at once take their locks in one order: all get an answer."""
    ann = await somebody(pair[0])
    home = await make_org(pair[0], ann)
    team = await make_team(pair[0], ann, organization=home)
    crowd = [await somebody(pair[0]) for _ in range(12)]
    for one in crowd[:6]:
        await join(pair[0], home, one)
    to_org = await invite_to_org(ann, home, "all@example.org", max_uses=50)
    to_team = await invite(ann, team, "all@example.org", max_uses=50)
    requests: list[Awaitable[Reply]] = []
    for number, one in enumerate(crowd):
        here, there = turn(ann, pair, number), turn(one, pair, number + 1)
        requests += [
            there.post(by_token(to_org, "/redeem")),
            there.post(by_token(to_team, "/redeem")),
            here.post(f"/v1/teams/{team}/members", json={"user_id": id_of(one)}),
            here.delete(f"/v1/organizations/{home}/members/{id_of(one)}"),
            here.delete(f"/v1/teams/{team}/members/{id_of(one)}"),
        ]
    async with asyncio.timeout(60):
        found = await at_once(requests)
    assert {status for status, _ in found} <= {200, 201, 204, 401, 403, 404, 409}


@pytest.mark.parametrize("action", ["rename", "add", "demote", "delete", "invite", "invite in bulk"])
async def test_whoever_lost_the_right_a_moment_ago(pair: Pair, action: str) -> None:
    """Another process that remembers the right refuses nevertheless: it looks again before it writes."""
    ann, eve, ben = [await somebody(pair[0]) for _ in range(3)]
    team = await make_team(pair[0], ann)
    await join_team(pair[0], team, eve, "team_admin")
    there = turn(eve, pair, 1)
    path = f"/v1/teams/{team}"
    assert (await there.patch(path, json={"description": "while I may"})).status == 200
    assert (await ann.delete(f"{path}/members/{id_of(eve)}")).status == 204
    if action == "rename":
        answer = await there.patch(path, json={"name": fresh("late")})
    elif action == "add":
        answer = await there.post(f"{path}/members", json={"user_id": id_of(ben)})
    elif action == "demote":
        answer = await there.patch(f"{path}/members/{id_of(ann)}", json={"team_role": "member"})
    elif action == "delete":
        answer = await there.delete(path)
    elif action == "invite":
        answer = await there.post("/v1/invites", json={"email": "x@example.org", "team_id": team})
    else:
        body = {"emails": ["x@example.org"], "team_id": team}
        answer = await there.post("/v1/invites/bulk", json=body)
    assert answer.status == 403
    shown = (await ann.get(path)).json()
    assert (shown["description"], shown["member_count"]) == ("while I may", 1)
    assert (await ann.get("/v1/invites", params={"team_id": str(team)})).json()["total"] == 0


@pytest.mark.parametrize("action", ["rename", "found below"])
async def test_whoever_lost_an_organization_a_moment_ago(pair: Pair, action: str) -> None:
    """The same for those who could change an organization and make others below it."""
    ann, eve = [await somebody(pair[0]) for _ in range(2)]
    home = await make_org(pair[0], ann)
    await join(pair[0], home, eve)
    role = await give_keys(pair[0], home, eve, "org.settings.manage")
    there = turn(eve, pair, 1)
    path = f"/v1/organizations/{home}"
    assert (await there.patch(path, json={"name": "While I may"})).status == 200
    assert (await ann.delete(f"{path}/members/{id_of(eve)}/roles/{role}")).status == 204
    if action == "rename":
        answer = await there.patch(path, json={"name": "Late"})
    else:
        body = {"name": "Foothold", "slug": fresh("foothold"), "parent_id": home}
        answer = await there.post("/v1/organizations", json=body)
    assert answer.status == 403
    assert (await ann.get(path)).json()["name"] == "While I may"
    assert (await ann.get(f"{path}/organizations")).json()["total"] == 0
