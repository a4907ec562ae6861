"""Permission groups over HTTP: define, nest without circles, change, delete; and who may not."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from builtin_plugins.tenancy.models import GroupChild, PermissionGroup
from kernel.sdk import Unit
from kernel.testing import Actor, Running
from tests.builtin_plugins.tenancy.roles_support import (
    assign,
    created_record,
    groups_of,
    keys_of,
    make_group,
    make_role,
    nest,
    roles_of,
)
from tests.builtin_plugins.tenancy.tenancy_support import (
    audited,
    fresh,
    give_keys,
    id_of,
    join,
    make_org,
    problems,
    refused,
    somebody,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

UNKNOWN = 2**31 - 1
MEMBERS, SETTINGS, AUDIT = "org.members.manage", "org.settings.manage", "org.audit.read"
MANAGE = "org.roles.manage"


async def owned(running: Running) -> tuple[Actor, int]:
    ann = await somebody(running)
    return ann, await make_org(running, ann)


async def chain(actor: Actor, org: int, length: int) -> list[int]:
    ids = [(await make_group(actor, org))["id"] for _ in range(length)]
    for outer, inner in pairwise(ids):
        created_record(await nest(actor, org, outer, inner))
    return ids


async def test_record(running: Running) -> None:
    """A group is answered as it is shown later, with its own keys and the groups nested directly in it."""
    ann, org = await owned(running)
    inner = await make_group(ann, org, AUDIT, name="Inner")
    body = {"name": " Outer ", "description": "All", "permissions": [SETTINGS, MEMBERS, MEMBERS]}
    group = created_record(await ann.post(groups_of(org), json=body))
    assert group == {
        "id": group["id"],
        "organization_id": org,
        "name": "Outer",
        "description": "All",
        "permissions": [MEMBERS, SETTINGS],
        "children": [],
        "inherited_from": None,
        "created_at": group["created_at"],
    }
    nested = created_record(await nest(ann, org, group["id"], inner["id"]))
    assert nested == {**group, "children": [{"id": inner["id"], "name": "Inner"}]}
    assert (await ann.get(groups_of(org, group["id"]))).json() == nested
    page = (await ann.get(groups_of(org, group["id"], "/children"))).json()
    assert page == {"items": [inner], "total": 1, "limit": 50, "offset": 0}


async def test_list_shows_what_is_usable_here(running: Running) -> None:
    """Own groups and inherited ones; nothing from below or from beside."""
    ann, top = await owned(running)
    org, beside = await make_org(running, parent=top), await make_org(running, parent=top)
    below = await make_org(running, parent=org)
    ids = {one: (await make_group(ann, one))["id"] for one in (top, org, beside, below)}
    page = (await ann.get(groups_of(org))).json()
    found = {one["id"]: one["inherited_from"] for one in page["items"]}
    assert (page["total"], found) == (2, {ids[top]: top, ids[org]: None})
    second = (await ann.get(groups_of(org), params={"limit": 1, "offset": 1})).json()
    assert ([one["id"] for one in second["items"]], second["total"]) == ([ids[org]], 2)
    for group in (ids[below], ids[beside], UNKNOWN):
        for rest in ("", "/children"):
            refused(await ann.get(groups_of(org, group, rest)), 404, "permission_group_not_found")


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, "body.name"),
        ({"name": ""}, "body.name"),
        ({"name": "ŉ" * 51}, "body.name"),
        ({"name": "x", "permissions": ["no.such"]}, "body.permissions.0"),
        ({"name": "x", "permissions": ["team.manage"]}, "body.permissions.0"),
        ({"name": "x", "children": [1]}, "body.children"),
    ],
)
async def test_refusals(running: Running, body: dict[str, object], place: str) -> None:
    ann, org = await owned(running)
    assert place in problems(await ann.post(groups_of(org), json=body))


async def test_names(running: Running) -> None:
    """A name is taken once in an organization, whatever its case, in a race too."""
    ann, org = await owned(running)
    answers = await asyncio.gather(
        *(ann.post(groups_of(org), json={"name": name}) for name in ["Race", "RACE"] * 4)
    )
    assert sorted(one.status for one in answers) == [201] + [409] * 7
    other = await make_group(ann, org)
    refused(await ann.patch(groups_of(org, other["id"]), json={"name": "race"}), 409, "name_taken")
    await make_group(ann, await make_org(running, parent=org), name="Race")


async def test_two_requests_close_no_circle(running: Running) -> None:
    """Each nesting alone is right, together they would make a circle: one of them is refused."""
    ann, org = await owned(running)
    for length in (2, 3, 5):
        ids = [(await make_group(ann, org, AUDIT))["id"] for _ in range(length)]
        answers = await asyncio.gather(
            *(nest(ann, org, ids[n], ids[(n + 1) % length]) for n in range(length))
        )
        assert sorted(one.status for one in answers) == [201] * (length - 1) + [409]


async def test_depth(running: Running) -> None:
    """Eight levels, however they are put together, and not nine."""
    ann, org = await owned(running)
    upper, lower = await chain(ann, org, 5), await chain(ann, org, 4)
    refused(await nest(ann, org, upper[-1], lower[0]), 409, "groups_too_deep")
    created_record(await nest(ann, org, upper[-1], lower[1]))
    created_record(await nest(ann, org, upper[3], lower[0]))
    refused(await nest(ann, org, (await make_group(ann, org))["id"], upper[0]), 409, "groups_too_deep")
    refused(await nest(ann, org, lower[-1], (await make_group(ann, org))["id"]), 409, "groups_too_deep")


async def test_limits(running: Running) -> None:
    """An organization has at most 500 groups, and a group at most 50 others directly in it."""
    ann, org = await owned(running)
    outer = await make_group(ann, org)
    groups = [
        PermissionGroup(organization_id=org, name=f"g{number}", name_key=f"g{number}")
        for number in range(498)
    ]

    def fill(unit: Unit) -> None:
        unit.session.add_all(groups)
        unit.session.flush()
        unit.session.add_all(GroupChild(group_id=outer["id"], child_group_id=one.id) for one in groups[:49])

    await running.platform.database.write(fill)
    created_record(await nest(ann, org, outer["id"], groups[49].id))
    refused(await nest(ann, org, outer["id"], groups[50].id), 409, "limit_reached")
    await make_group(ann, org)
    refused(await ann.post(groups_of(org), json={"name": "one more"}), 409, "limit_reached")


async def test_nested_twice(running: Running) -> None:
    """The same nesting asked again changes nothing and is not an error."""
    ann, org = await owned(running)
    outer, inner = await make_group(ann, org), await make_group(ann, org)
    first, second = [await nest(ann, org, outer["id"], inner["id"]) for _ in range(2)]
    assert (first.status, second.status) == (201, 200)
    assert first.json() == second.json()
    assert len(await audited(running, "permission_group.child_added", outer["id"])) == 1


async def test_places(running: Running) -> None:
    """Groups from above may be nested here, others are unknown, and what is inherited is not changed here."""
    ann, top = await owned(running)
    org = await make_org(running, parent=top)
    below = await make_org(running, parent=org)
    above, here, under = [await make_group(ann, one, AUDIT) for one in (top, org, below)]
    created_record(await nest(ann, org, here["id"], above["id"]))
    for child in (under["id"], UNKNOWN):
        refused(await nest(ann, org, here["id"], child), 404, "permission_group_not_found")
    for answer in (
        await nest(ann, org, above["id"], here["id"]),
        await ann.patch(groups_of(org, above["id"]), json={"permissions": []}),
        await ann.delete(groups_of(org, above["id"]), params={"force": "true"}),
        await ann.delete(groups_of(org, above["id"], f"/children/{here['id']}")),
    ):
        refused(answer, 403, "defined_above")
    page = (await ann.get(groups_of(org, here["id"], "/children"))).json()
    assert [(one["id"], one["inherited_from"]) for one in page["items"]] == [(above["id"], top)]


async def test_delete(running: Running) -> None:
    """A group in use stays, unless forced out of roles and groups; its keys go with it."""
    ann, org = await owned(running)
    bob = await somebody(running)
    await join(running, org, bob)
    inner = await make_group(ann, org, AUDIT)
    outer = await make_group(ann, org, children=[inner["id"]])
    role = await make_role(ann, org, groups=[outer["id"]])
    await assign(ann, org, bob, role["id"])
    for group in (inner, outer):
        refused(await ann.delete(groups_of(org, group["id"])), 409, "in_use")
    assert AUDIT in await keys_of(ann, org, bob)
    assert (await ann.delete(groups_of(org, inner["id"]), params={"force": "true"})).status == 204
    assert AUDIT not in await keys_of(ann, org, bob)
    assert (await ann.get(groups_of(org, outer["id"]))).json()["children"] == []
    assert (await ann.delete(groups_of(org, outer["id"]), params={"force": "true"})).status == 204
    assert (await ann.get(roles_of(org, role["id"]))).json()["permission_groups"] == []
    last = groups_of(org, (await make_group(ann, org))["id"])
    assert (await ann.delete(last)).status == 204
    again = await ann.delete(last)
    refused(again, 404, "permission_group_not_found")
    assert "not found" in again.detail


async def test_nobody_hands_on_what_he_does_not_hold(running: Running) -> None:
    """A group counts with all that is nested in it: who lacks one of its keys changes nothing of it."""
    ann, org = await owned(running)
    bob = await somebody(running)
    await join(running, org, bob)
    await give_keys(running, org, bob, MANAGE, MEMBERS)
    strong = await make_group(ann, org, SETTINGS)
    outer = await make_group(ann, org, children=[strong["id"]])
    mine = await make_group(bob, org, MEMBERS)
    await make_role(ann, org, groups=[mine["id"], outer["id"]])
    child = groups_of(org, outer["id"], f"/children/{strong['id']}")
    for answer in (
        await bob.post(groups_of(org), json={"name": fresh("g"), "permissions": [SETTINGS]}),
        await bob.patch(groups_of(org, mine["id"]), json={"permissions": [MEMBERS, SETTINGS]}),
        await bob.patch(groups_of(org, outer["id"]), json={"name": fresh("g")}),
        await bob.patch(groups_of(org, strong["id"]), json={"permissions": []}),
        await nest(bob, org, mine["id"], outer["id"]),
        await nest(bob, org, outer["id"], mine["id"]),
        await bob.delete(child),
        await bob.delete(groups_of(org, outer["id"]), params={"force": "true"}),
    ):
        refused(answer, 403, "key_not_held")
        assert SETTINGS in answer.detail and MEMBERS not in answer.detail
    assert (await ann.get(groups_of(org, mine["id"]))).json() == mine
    assert (await ann.get(groups_of(org, outer["id"]))).json() == outer
    assert (await bob.patch(groups_of(org, mine["id"]), json={"permissions": []})).status == 200


async def test_audit(running: Running) -> None:
    """Each change is in the audit log with what was before and after, in its organization."""
    ann, org = await owned(running)
    inner = await make_group(ann, org, AUDIT, name="Inner")
    group = await make_group(ann, org, MEMBERS, name="First", children=[inner["id"]])
    path = groups_of(org, group["id"])
    await ann.patch(path, json={"name": "Second"})
    await ann.patch(path, json={"name": "Second"})
    await ann.delete(f"{path}/children/{inner['id']}")
    await ann.delete(path)
    actions = ["created", "child_added", "updated", "child_removed", "deleted"]
    entries = [await audited(running, f"permission_group.{one}", group["id"]) for one in actions]
    assert [len(one) for one in entries] == [1] * 5
    states = [(one[0].before_state, one[0].after_state) for one in entries]
    empty = {"name": "First", "description": "", "permissions": [MEMBERS], "children": []}
    full = {**empty, "children": [{"id": inner["id"], "name": "Inner"}]}
    renamed = {**full, "name": "Second"}
    bare = {**renamed, "children": []}
    used_by: dict[str, list[int]] = {"roles": [], "permission_groups": []}
    assert states == [
        (None, empty),
        (empty, full),
        (full, renamed),
        (renamed, bare),
        ({**bare, "used_by": used_by}, None),
    ]
    assert {(one[0].actor_id, one[0].scope_org_id) for one in entries} == {(id_of(ann), org)}
