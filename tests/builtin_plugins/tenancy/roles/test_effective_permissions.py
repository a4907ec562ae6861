"""Effective permissions over HTTP: every key with its origin; refusals explained; no word of elsewhere."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from kernel.sdk import utc_now
from kernel.testing import Actor, Running, platforms, postgres_database
from tests.builtin_plugins.tenancy.roles_support import (
    DRAFT,
    PUBLISH,
    Notes,
    ask_effective,
    assign,
    effective,
    given_to,
    keys_of,
    make_group,
    make_role,
    roles_of,
)
from tests.builtin_plugins.tenancy.tenancy_support import (
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
MEMBERS, MANAGE = "org.members.manage", "org.roles.manage"


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Running]:
    """A platform with tenancy and somebody else's plugin, whose keys organizations grant."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database()) if request.param == "postgresql" else None
        async with platforms(tmp_path_factory.mktemp("notes")) as start:
            yield await start("tenancy", Notes, env={"DATABASE_URL": url})


async def owned(running: Running, parent: int | None = None) -> tuple[Actor, int]:
    ann = await somebody(running)
    return ann, await make_org(running, ann, parent=parent)


async def member(running: Running, org: int, role: str = "member") -> Actor:
    bob = await somebody(running)
    await join(running, org, bob, role)
    return bob


async def may(actor: Actor, org: int, what: str = "publish") -> bool:
    status = (await actor.post(f"/v1/notes/{org}/{what}")).status
    assert status in (200, 403)
    return status == 200


async def explained(actor: Actor, org: int, who: Actor, key: str = PUBLISH.key) -> dict[str, Any]:
    return dict((await effective(actor, org, who, key))["explanation"])


async def test_a_plugin_s_own_key(running: Running) -> None:
    """A key that a stranger's plugin declares is held by its built-in roles, and by custom ones, at once."""
    ann, org = await owned(running)
    bob = await member(running, org)
    listed = (await bob.get("/v1/permissions")).json()["permissions"]
    assert {"key": PUBLISH.key, "description": PUBLISH.description, "scope": "organization"} in listed
    assert await may(ann, org) and not await may(bob, org)
    role = await make_role(ann, org, PUBLISH.key)
    await assign(ann, org, bob, role["id"])
    assert await may(bob, org) and not await may(bob, org, "draft")
    below = await make_org(running, parent=org)
    assert await may(bob, below)
    other, foreign = await owned(running)
    assert not await may(bob, foreign) and not await may(other, org)
    await ann.patch(roles_of(org, role["id"]), json={"permissions": [DRAFT.key]})
    assert not await may(bob, org) and await may(bob, org, "draft")
    await ann.delete(given_to(org, bob, role["id"]))
    assert not await may(bob, org, "draft")
    body = {"user_ids": [id_of(bob)], "role_id": role["id"]}
    await ann.post(f"/v1/organizations/{org}/members/bulk-roles", json=body)
    assert await may(bob, org, "draft")
    await ann.delete(roles_of(org, role["id"]), params={"force": "true"})
    assert not await may(bob, org, "draft")
    refused(
        await ann.post(roles_of(org), json={"name": "x", "permissions": ["notes.pin"]}),
        422,
        "validation_error",
    )


async def test_entries(running: Running) -> None:
    """Each way to a key is an entry: built-in role, custom role, group, nested group, organization above."""
    ann, top = await owned(running)
    org = await make_org(running, parent=top)
    bob = await member(running, org)
    await join(running, top, bob, "admin")
    inner = await make_group(ann, org, PUBLISH.key, name="Inner")
    outer = await make_group(ann, org, children=[inner["id"]])
    role = await make_role(ann, org, PUBLISH.key, groups=[outer["id"]], name="Writers")
    above = await make_role(ann, top, PUBLISH.key, name="Chief writers")
    await assign(ann, org, bob, role["id"])
    await assign(ann, top, bob, above["id"])
    found = await effective(bob, org, bob)
    assert (found["organization_id"], found["user_id"]) == (org, id_of(bob))
    assert found["explanation"] is None
    ways = [
        tuple(one[name] for name in ("role_id", "permission_group_id", "via_ancestor_organization_id"))
        for one in found["permissions"]
        if one["permission_key"] == PUBLISH.key
    ]
    assert sorted(ways, key=str) == sorted(
        [(role["id"], None, None), (role["id"], inner["id"], None), (above["id"], None, top)], key=str
    )
    named = next(one for one in found["permissions"] if one["permission_group_id"] == inner["id"])
    assert (named["role_name"], named["permission_group_name"]) == ("Writers", "Inner")
    views = [one for one in found["permissions"] if one["permission_key"] == "org.view"]
    assert [(one["role_name"], one["via_ancestor_organization_id"]) for one in views] == [
        ("member", None),
        ("admin", top),
    ]
    here = await effective(bob, top, bob)
    assert {one["via_ancestor_organization_id"] for one in here["permissions"]} == {None}
    assert "Writers" not in json.dumps(here)


async def test_who_may_ask(running: Running) -> None:
    """The member, managers of members or roles, Platform Admins; others learn nothing."""
    ann, org = await owned(running)
    bob, eve, admin = (
        await member(running, org),
        await member(running, org),
        await member(running, org, "admin"),
    )
    stranger, root = await somebody(running), await somebody(running, platform_admin=True)
    keeper = await member(running, org)
    await give_keys(running, org, keeper, MANAGE)
    for actor in (bob, ann, admin, keeper, root):
        assert (await ask_effective(actor, org, bob)).status == 200
    for actor in (eve, stranger, await somebody(running, role="admin")):
        refused(await ask_effective(actor, org, bob), 403)
    foreign = [await ask_effective(stranger, place, stranger) for place in (org, UNKNOWN)]
    assert [one.status for one in foreign] == [403, 403] and foreign[0].body == foreign[1].body
    nobody = Actor(running, user={"id": UNKNOWN})
    unknown = [await ask_effective(ann, org, who) for who in (stranger, nobody)]
    assert [one.status for one in unknown] == [404, 404] and unknown[0].body == unknown[1].body
    refused(await ask_effective(root, UNKNOWN, bob), 404, "organization_not_found")
    await suspend(running, org, bob)
    refused(await ask_effective(bob, org, bob), 403)
    assert await keys_of(ann, org, bob) == set()


async def test_members_of_above(running: Running) -> None:
    """Who belongs above asks about himself below; a manager from below can't look up who belongs above."""
    ann, top = await owned(running)
    tom, org = await owned(running, parent=top)
    assert MANAGE in await keys_of(ann, org, ann)
    refused(await ask_effective(tom, org, ann), 404, "member_not_found")
    root = await somebody(running, platform_admin=True)
    assert MANAGE in await keys_of(root, org, ann)
    assert MANAGE in await keys_of(ann, org, tom)


async def test_unknown_keys(running: Running) -> None:
    """A key that is none, or that organizations don't grant, is named."""
    ann, org = await owned(running)
    for key, why in (("no.such", "/v1/permissions"), ("notes.pin", "scope 'team'"), ("x" * 129, "128")):
        assert why in problems(await ask_effective(ann, org, ann, key))["query.key"]


async def test_a_held_key_is_explained(running: Running) -> None:
    """With the key, only its entries, and the roles behind it."""
    ann, org = await owned(running)
    found = await effective(ann, org, ann, PUBLISH.key)
    assert {one["permission_key"] for one in found["permissions"]} == {PUBLISH.key}
    told = found["explanation"]
    assert (told["key"], told["held"], told["description"]) == (PUBLISH.key, True, PUBLISH.description)
    assert "'owner'" in told["summary"]
    assert (told["obstacles"], told["would_grant"]) == ([], [])


async def test_a_refusal_is_explained(running: Running) -> None:
    """What would grant the key: the roles usable here that hold it, by which groups, given by whom."""
    ann, top = await owned(running)
    org = await make_org(running, parent=top)
    own, bob = await member(running, org, "owner"), await member(running, org)
    keeper, weak = await member(running, org), await member(running, org)
    await give_keys(running, org, keeper, MANAGE, PUBLISH.key)
    await give_keys(running, org, weak, MANAGE)
    inner = await make_group(own, org, PUBLISH.key, name="Inner")
    outer = await make_group(own, org, children=[inner["id"]], name="Outer")
    direct = await make_role(ann, top, PUBLISH.key, name="Direct")
    nested = await make_role(own, org, DRAFT.key, groups=[outer["id"]], name="Nested")
    await make_role(own, org, DRAFT.key, name="Useless")
    told = await explained(bob, org, bob)
    assert not told["held"] and told["obstacles"] == []
    ways = {one["role_name"]: one for one in told["would_grant"]}
    assert set(ways) - {"owner", "Direct", "Nested"} == {one for one in ways if one.startswith("role-")}
    assert ways["owner"]["is_builtin"] and "org_role 'owner'" in ways["owner"]["how"]
    assert ways["Direct"]["role_id"] == direct["id"] and ways["Direct"]["permission_groups"] == []
    assert [one["name"] for one in ways["Nested"]["permission_groups"]] == ["Outer", "Inner"]
    assert given_to(org, bob) in ways["Nested"]["how"]
    givers = {name: {one["user_id"] for one in way["assignable_by"]} for name, way in ways.items()}
    assert givers["Direct"] == {id_of(own), id_of(keeper)}
    assert givers["Nested"] == givers["owner"] == {id_of(own)}
    assert not any(one["assignable_by_caller"] for one in ways.values())
    mine = {one["role_name"]: one for one in (await explained(keeper, org, bob))["would_grant"]}
    assert [mine[name]["assignable_by_caller"] for name in ("Direct", "Nested", "owner")] == [
        True,
        False,
        False,
    ]
    # What is said to grant it does.
    assert (await assign(keeper, org, bob, direct["id"])).status == 201
    assert await may(bob, org) and (await explained(bob, org, bob))["held"]
    refused(await assign(keeper, org, weak, nested["id"]), 403, "key_not_held")


async def test_who_can_act_is_named(running: Running) -> None:
    """Suspended and deactivated accounts, and those whose own role expired, are not named as helpers."""
    ann, org = await owned(running)
    bob, keeper = await member(running, org), await member(running, org)
    await give_keys(running, org, keeper, MANAGE, PUBLISH.key)
    suspended, expired = await member(running, org, "owner"), await member(running, org)
    inactive = await somebody(running, is_active=False)
    await join(running, org, inactive, "owner")
    await suspend(running, org, suspended)
    past = utc_now() - timedelta(hours=1)
    await give_keys(running, org, expired, MANAGE, PUBLISH.key, expires_at=past)
    role = await make_role(ann, org, PUBLISH.key)
    ways = {one["role_id"]: one for one in (await explained(bob, org, bob))["would_grant"]}
    named = [(one["user_id"], one["organization_id"]) for one in ways[role["id"]]["assignable_by"]]
    assert named == [(id_of(ann), org), (id_of(keeper), org)]


async def test_obstacles(running: Running) -> None:
    """An expired assignment and a suspension are named as what stands in the way, and only then."""
    ann, org = await owned(running)
    bob, tom = await member(running, org), await member(running, org, "owner")
    past = utc_now() - timedelta(hours=1)
    role = await give_keys(running, org, bob, PUBLISH.key, expires_at=past)
    (obstacle,) = (await explained(bob, org, bob))["obstacles"]
    assert (obstacle["reason"], obstacle["role_id"], obstacle["organization_id"]) == ("expired", role, org)
    assert obstacle["since"].startswith(past.isoformat()[:19])
    assert (await explained(bob, org, bob, DRAFT.key))["obstacles"] == []
    await suspend(running, org, bob)
    await suspend(running, org, tom)
    reasons = [one["reason"] for one in (await explained(ann, org, bob))["obstacles"]]
    assert sorted(reasons) == ["expired", "suspended"]
    told = await explained(ann, org, tom)
    assert [(one["reason"], one["role_name"]) for one in told["obstacles"]] == [("suspended", "owner")]
    assert "suspended" in told["summary"]


async def test_platform_admins(running: Running) -> None:
    """A Platform Admin needs no role; only Platform Admins see that."""
    ann, org = await owned(running)
    root = await somebody(running, platform_admin=True)
    await join(running, org, root)
    assert await may(root, org)
    told = await explained(root, org, root)
    assert told["held"] and "Platform Admin" in told["summary"]
    assert not (await explained(ann, org, root))["held"]


async def test_nothing_is_told_of_elsewhere(running: Running) -> None:
    """Roles and groups usable here are named; none of beside or below, and no person or event of above."""
    ann, top = await owned(running)
    tom, org = await owned(running, parent=top)
    bob = await member(running, org)
    await join(running, top, bob, "owner")
    await suspend(running, top, bob)
    expired = await give_keys(running, top, bob, PUBLISH.key, expires_at=utc_now() - timedelta(hours=1))
    beside, below = await make_org(running, parent=top), await make_org(running, parent=org)
    for number, place in enumerate((beside, below)):
        group = await make_group(ann, place, PUBLISH.key, name=f"Secret group {number}")
        await make_role(ann, place, PUBLISH.key, groups=[group["id"]], name=f"Secret role {number}")
    for actor in (tom, bob):
        told = await explained(actor, org, bob)
        assert told["obstacles"] == [] and not told["held"]
        text = json.dumps(told)
        assert "Secret" not in text and ann.user["username"] not in text
        assert {one["role_id"] for one in told["would_grant"]} == {1, expired}
        assert {one["user_id"] for way in told["would_grant"] for one in way["assignable_by"]} == {id_of(tom)}
    root = await somebody(running, platform_admin=True)
    seen = await explained(root, org, bob)
    assert [one["organization_id"] for one in seen["obstacles"]] == [top] * 3
    assert id_of(ann) in {one["user_id"] for way in seen["would_grant"] for one in way["assignable_by"]}
