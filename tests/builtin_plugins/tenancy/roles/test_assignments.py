"""Roles of members over HTTP: assign one or many, for a time, and take away (spec 2.5)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from kernel.testing import Actor, Reply, Running
from tests.builtin_plugins.tenancy.roles_support import (
    ask_effective,
    assign,
    given_to,
    keys_of,
    make_role,
)
from tests.builtin_plugins.tenancy.tenancy_support import (
    audited,
    give_keys,
    id_of,
    join,
    make_org,
    problems,
    refused,
    somebody,
    suspend,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

UNKNOWN = 2**31 - 1
MEMBERS, SETTINGS, AUDIT = "org.members.manage", "org.settings.manage", "org.audit.read"
MANAGE = "org.roles.manage"
LATER = datetime(2100, 1, 1, tzinfo=UTC)


async def owned(running: Running) -> tuple[Actor, int]:
    ann = await somebody(running)
    return ann, await make_org(running, ann)


async def member(running: Running, org: int, role: str = "member") -> Actor:
    bob = await somebody(running)
    await join(running, org, bob, role)
    return bob


async def bulk(actor: Actor, org: int, role: int, *users: int, **fields: object) -> Reply:
    body = {"user_ids": list(users), "role_id": role, **fields}
    return await actor.post(f"/v1/organizations/{org}/members/bulk-roles", json=body)


async def test_assign_list_remove(running: Running) -> None:
    """An assignment is answered as it is listed, counts at once, and is gone at once."""
    ann, org = await owned(running)
    bob, eve = await member(running, org), await member(running, org)
    role = await make_role(ann, org, MEMBERS, name="Hosts")
    assert (await ask_effective(bob, org, eve)).status == 403
    answer = await assign(ann, org, bob, role["id"])
    assert answer.status == 201, answer.body
    record = answer.json()
    assert record == {
        "organization_id": org,
        "user_id": id_of(bob),
        "role_id": role["id"],
        "role_name": "Hosts",
        "expires_at": None,
        "is_expired": False,
        "assigned_by": id_of(ann),
        "created_at": record["created_at"],
    }
    assert (await ask_effective(bob, org, eve)).status == 200
    page = {"items": [record], "total": 1, "limit": 50, "offset": 0}
    assert (await ann.get(given_to(org, bob))).json() == page
    assert (await bob.get(given_to(org, bob))).json() == page
    assert (await ann.delete(given_to(org, bob, role["id"]))).status == 204
    assert (await ask_effective(bob, org, eve)).status == 403
    refused(await ann.delete(given_to(org, bob, role["id"])), 404, "assignment_not_found")


async def test_assigned_again(running: Running) -> None:
    """The same role again has the new expiry; it stays one assignment."""
    ann, org = await owned(running)
    bob = await member(running, org)
    role = await make_role(ann, org, AUDIT)
    first = await assign(ann, org, bob, role["id"], LATER)
    assert (first.status, first.json()["expires_at"]) == (201, "2100-01-01T00:00:00Z")
    for expires_at in (LATER + timedelta(days=1), None, None):
        again = await assign(ann, org, bob, role["id"], expires_at)
        assert again.status == 200
        assert again.json()["created_at"] == first.json()["created_at"]
        assert (again.json()["expires_at"] is None) is (expires_at is None)
    assert (await ann.get(given_to(org, bob))).json()["total"] == 1
    assert len(await audited(running, "role.assigned", id_of(bob))) == 3


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"role_id": 1}, "body.role_id"),
        ({"role_id": 3}, "body.role_id"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "body.expires_at"),
        ({"expires_at": "2020-01-01T00:00:00"}, "body.expires_at"),
        ({"expires_at": "0001-01-01T00:00:00+10:00"}, "body.expires_at"),
        ({"expires_at": "9999-12-31T23:59:59-10:00"}, "body.expires_at"),
    ],
)
async def test_refusals(running: Running, body: dict[str, object], place: str) -> None:
    """A past expiry, a built-in role and whatever does not fit are named."""
    ann, org = await owned(running)
    bob = await member(running, org)
    if place != "body.role_id":
        body = {"role_id": (await make_role(ann, org))["id"], **body}
    found = problems(await ann.post(given_to(org, bob), json=body))
    assert place in found
    if body.get("role_id") in (1, 3):
        assert f"/v1/organizations/{org}/members" in found[place]


async def test_an_expiry_without_an_offset_is_utc(running: Running) -> None:
    """What a client sends without a zone is read as UTC."""
    ann, org = await owned(running)
    bob = await member(running, org)
    body = {"role_id": (await make_role(ann, org))["id"], "expires_at": "2100-01-01T12:00:00"}
    answer = await ann.post(given_to(org, bob), json=body)
    assert answer.json()["expires_at"] == "2100-01-01T12:00:00Z"


async def test_only_active_members(running: Running) -> None:
    """A role goes to active members of this very organization; the rest of the world answers alike."""
    ann, org = await owned(running)
    below = await make_org(running, parent=org)
    role = await make_role(ann, org)
    suspended, elsewhere, nobody = await member(running, org), await member(running, below), Actor(running)
    nobody.user = {"id": UNKNOWN}
    await suspend(running, org, suspended)
    refused(await assign(ann, org, suspended, role["id"]), 409, "member_suspended")
    answers = [await assign(ann, org, who, role["id"]) for who in (elsewhere, nobody)]
    assert [one.status for one in answers] == [404, 404] and answers[0].body == answers[1].body
    assert (await assign(ann, below, elsewhere, role["id"])).status == 201
    refused(await ann.get(given_to(org, elsewhere)), 404, "member_not_found")


async def test_roles_of_other_organizations_are_unknown(running: Running) -> None:
    """Only what is usable here can be assigned: not a role from below, from beside, or of nobody."""
    ann, org = await owned(running)
    eve, foreign = await owned(running)
    bob = await member(running, org)
    below = await make_org(running, parent=org)
    roles = [(await make_role(ann, below))["id"], (await make_role(eve, foreign))["id"], UNKNOWN]
    for role in roles:
        refused(await assign(ann, org, bob, role), 404, "role_not_found")
        refused(await bulk(ann, org, role, id_of(bob)), 404, "role_not_found")


async def test_nobody_hands_on_what_he_does_not_hold(running: Running) -> None:
    """Who lacks a key of a role neither gives nor takes the role; bulk gives it to nobody."""
    ann, org = await owned(running)
    bob, eve, tom = [await member(running, org) for _ in range(3)]
    await give_keys(running, org, bob, MANAGE, AUDIT)
    strong = (await make_role(ann, org, AUDIT, SETTINGS))["id"]
    weak = (await make_role(ann, org, AUDIT))["id"]
    await assign(ann, org, tom, strong)
    for answer in (
        await assign(bob, org, eve, strong),
        await assign(bob, org, bob, strong),
        await bulk(bob, org, strong, id_of(eve), id_of(bob)),
        await bob.delete(given_to(org, tom, strong)),
    ):
        refused(answer, 403, "key_not_held")
        assert SETTINGS in answer.detail and AUDIT not in answer.detail
    assert SETTINGS not in await keys_of(ann, org, eve) | await keys_of(ann, org, bob)
    assert SETTINGS in await keys_of(ann, org, tom)
    assert (await assign(bob, org, eve, weak)).status == 201
    assert (await bob.delete(given_to(org, eve, weak))).status == 204


async def test_what_membership_gives_is_not_handed_on(running: Running) -> None:
    """A member sees the organization, not those below; a role would carry that down, also to himself."""
    ann, org = await owned(running)
    below = await make_org(running, parent=org)
    bob, eve = await member(running, org), await somebody(running)
    await give_keys(running, org, bob, MANAGE, MEMBERS, SETTINGS, AUDIT)
    view = (await make_role(ann, org, "org.view"))["id"]
    for answer in (
        await assign(bob, org, bob, view),
        await bob.post(f"/v1/organizations/{org}/roles", json={"name": "x", "permissions": ["org.view"]}),
        await bob.post(f"/v1/organizations/{org}/members", json={"user_id": id_of(eve), "org_role": "admin"}),
    ):
        refused(answer, 403, "key_not_held")
        assert "org.view" in answer.detail
    assert (await assign(ann, org, bob, view)).status == 201
    assert (await bob.get(f"/v1/organizations/{below}/roles")).status == 200
    assert (await assign(bob, org, bob, view)).status == 200


async def test_bulk(running: Running) -> None:
    """Each account has its result, in the order asked; one that can't have the role stops no other."""
    ann, org = await owned(running)
    new, has, had, suspended = [await member(running, org) for _ in range(4)]
    stranger = await somebody(running)
    role = (await make_role(ann, org, AUDIT))["id"]
    await assign(ann, org, has, role)
    await assign(ann, org, had, role, LATER)
    await suspend(running, org, suspended)
    asked = [*map(id_of, (new, has, had, suspended, stranger)), UNKNOWN, id_of(new)]
    answer = await bulk(ann, org, role, *asked)
    assert answer.status == 200, answer.body
    body = answer.json()
    assert [one["user_id"] for one in body["results"]] == asked
    statuses = [one["status"] for one in body["results"]]
    assert statuses == ["assigned", "already_assigned", "assigned", *["failed"] * 3, "already_assigned"]
    assert (body["assigned_count"], body["failed_count"]) == (2, 3)
    errors = [one["error"] for one in body["results"]]
    assert "suspended" in errors[3] and errors[3] != errors[4] == errors[5]
    assert [errors[n] for n in (0, 1, 2, 6)] == [None] * 4
    for who in (new, has, had):
        assert AUDIT in await keys_of(ann, org, who)
    assert (await ann.get(given_to(org, had))).json()["items"][0]["expires_at"] is None
    assert len(await audited(running, "role.assigned", id_of(new))) == 1
    assert len(await audited(running, "role.assigned", id_of(has))) == 1


async def test_bulk_refusals(running: Running) -> None:
    """1 to 500 accounts; a past expiry, a built-in role and what does not fit are named."""
    ann, org = await owned(running)
    role = (await make_role(ann, org))["id"]
    assert "body.user_ids" in problems(await bulk(ann, org, role))
    assert "body.user_ids" in problems(await bulk(ann, org, role, *range(1, 502)))
    assert "body.user_ids.0" in problems(await bulk(ann, org, role, 0))
    assert "body.role_id" in problems(await bulk(ann, org, 2, id_of(ann)))
    past = {"expires_at": "2020-01-01T00:00:00Z"}
    assert "body.expires_at" in problems(await bulk(ann, org, role, id_of(ann), **past))
    most = await bulk(ann, org, role, *range(UNKNOWN - 499, UNKNOWN + 1))
    assert (most.status, most.json()["failed_count"]) == (200, 500)


async def test_assigned_at_once_by_many(running: Running) -> None:
    """Twenty requests for one assignment make one; single and bulk ones side by side end without error."""
    ann, org = await owned(running)
    bob, eve = await member(running, org), await member(running, org)
    role = (await make_role(ann, org, AUDIT))["id"]
    answers = await asyncio.gather(
        *(assign(ann, org, bob, role) for _ in range(20)),
        *(bulk(ann, org, role, id_of(eve), id_of(bob)) for _ in range(10)),
    )
    assert {one.status for one in answers} <= {200, 201}
    assert sum(one.status == 201 for one in answers) <= 1
    for who in (bob, eve):
        assert (await ann.get(given_to(org, who))).json()["total"] == 1
        assert len(await audited(running, "role.assigned", id_of(who))) == 1


async def test_assigned_while_leaving(running: Running) -> None:
    """A role that is assigned while the member is removed does not wait for who joins again."""
    ann, org = await owned(running)
    role = (await make_role(ann, org, AUDIT))["id"]
    leaving = [await member(running, org) for _ in range(6)]
    path = f"/v1/organizations/{org}/members"
    answers = await asyncio.gather(
        *(assign(ann, org, who, role) for who in leaving),
        *(ann.delete(f"{path}/{id_of(who)}") for who in leaving),
        bulk(ann, org, role, *map(id_of, leaving)),
    )
    assert {one.status for one in answers} <= {200, 201, 204, 404}
    for who in leaving:
        await join(running, org, who)
        assert (await ann.get(given_to(org, who))).json()["total"] == 0


async def test_audit(running: Running) -> None:
    """Assigning, changing the expiry and taking away are in the audit log, before and after."""
    ann, org = await owned(running)
    bob = await member(running, org)
    role = (await make_role(ann, org, AUDIT))["id"]
    await assign(ann, org, bob, role, LATER)
    await assign(ann, org, bob, role)
    await ann.delete(given_to(org, bob, role))
    timed = {"role_id": role, "expires_at": LATER.isoformat()}
    lasting = {"role_id": role, "expires_at": None}
    first, second = await audited(running, "role.assigned", id_of(bob))
    (third,) = await audited(running, "role.unassigned", id_of(bob))
    assert (first.before_state, first.after_state) == (None, timed)
    assert (second.before_state, second.after_state) == (timed, lasting)
    assert (third.before_state, third.after_state) == (lasting, None)
    for entry in (first, second, third):
        assert (entry.actor_id, entry.scope_org_id, entry.target_type) == (id_of(ann), org, "account")
