"""Custom roles over HTTP: define, list, change, delete; what they give counts at once, and who may not."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from builtin_plugins.tenancy.models import Role
from kernel.sdk import utc_now
from kernel.testing import Actor, Running, platforms
from tests.builtin_plugins.tenancy.roles_support import (
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


async def test_record(running: Running) -> None:
    """A role is answered as it is shown later, with its keys sorted and its groups by name."""
    ann, org = await owned(running)
    group = await make_group(ann, org, AUDIT, name="Auditing")
    body = {
        "name": "  Editors ",
        "description": "They edit",
        "permissions": [SETTINGS, MEMBERS, SETTINGS],
        "permission_group_ids": [group["id"], group["id"]],
    }
    answer = await ann.post(roles_of(org), json=body)
    assert answer.status == 201, answer.body
    role = answer.json()
    assert role == {
        "id": role["id"],
        "organization_id": org,
        "name": "Editors",
        "description": "They edit",
        "is_builtin": False,
        "permissions": [MEMBERS, SETTINGS],
        "permission_groups": [{"id": group["id"], "name": "Auditing"}],
        "inherited_from": None,
        "created_at": role["created_at"],
    }
    assert (await ann.get(roles_of(org, role["id"]))).json() == role


async def test_list_shows_what_is_usable_here(running: Running) -> None:
    """Built-in roles first, then own and inherited ones; nothing from below or from beside."""
    ann, top = await owned(running)
    middle, beside = await make_org(running, parent=top), await make_org(running, parent=top)
    below = await make_org(running, parent=middle)
    names = {org: (await make_role(ann, org))["id"] for org in (top, middle, beside, below)}
    page = (await ann.get(roles_of(middle), params={"limit": 500})).json()
    assert [one["name"] for one in page["items"][:3]] == ["owner", "admin", "member"]
    assert page["total"] == 5
    found = {one["id"]: one["inherited_from"] for one in page["items"] if not one["is_builtin"]}
    assert found == {names[top]: top, names[middle]: None}
    assert "org.roles.manage" in page["items"][0]["permissions"]
    assert page["items"][2]["permissions"] == ["org.view"]
    second = (await ann.get(roles_of(middle), params={"limit": 2, "offset": 4})).json()
    assert [one["id"] for one in second["items"]] == [names[middle]]
    assert (await ann.get(roles_of(middle, names[below]))).status == 404
    assert (await ann.get(roles_of(below, names[top]))).json()["inherited_from"] == top


async def test_unknown_keys_are_named(running: Running) -> None:
    """Each wrong key is named, with the place where all are listed, on creation and on change."""
    ann, org = await owned(running)
    role = await make_role(ann, org, AUDIT)
    wrong = {"name": "x", "permissions": ["no.such", AUDIT, "team.manage"]}
    for answer in (
        await ann.post(roles_of(org), json=wrong),
        await ann.patch(roles_of(org, role["id"]), json=wrong),
    ):
        found = problems(answer)
        assert set(found) == {"body.permissions.0", "body.permissions.2"}
        assert "'no.such'" in found["body.permissions.0"] and "/v1/permissions" in found["body.permissions.0"]
        assert "scope 'team'" in found["body.permissions.2"]
    assert (await ann.get(roles_of(org, role["id"]))).json() == role


async def test_groups_of_other_organizations_are_unknown(running: Running) -> None:
    """A role takes groups from here and from above, none from below or beside."""
    ann, top = await owned(running)
    org = await make_org(running, parent=top)
    below = await make_org(running, parent=org)
    bob, foreign = await owned(running)
    above = await make_group(ann, top, AUDIT)
    role = await make_role(ann, org, groups=[above["id"]])
    for group in (await make_group(ann, below), await make_group(bob, foreign), {"id": UNKNOWN}):
        body = {"name": fresh("r"), "permission_group_ids": [group["id"]]}
        answer = await ann.post(roles_of(org), json=body)
        refused(answer, 404, "permission_group_not_found")
        assert str(group["id"]) in answer.detail
        refused(await ann.patch(roles_of(org, role["id"]), json=body), 404, "permission_group_not_found")


async def test_names(running: Running) -> None:
    """A name is taken once in an organization, whatever its case; built-in names are taken everywhere."""
    ann, org = await owned(running)
    await make_role(ann, org, name="Straße")
    other = await make_role(ann, org, name="Other")
    refused(await ann.post(roles_of(org), json={"name": " STRASSE"}), 409, "name_taken")
    refused(await ann.patch(roles_of(org, other["id"]), json={"name": "strasse"}), 409, "name_taken")
    refused(await ann.post(roles_of(org), json={"name": "Owner"}), 409, "name_taken")
    renamed = await ann.patch(roles_of(org, other["id"]), json={"name": "OTHER"})
    assert renamed.json()["name"] == "OTHER"
    below = await make_org(running, parent=org)
    await make_role(ann, below, name="Straße")


async def test_a_name_is_taken_once_in_a_race(running: Running) -> None:
    ann, org = await owned(running)
    answers = await asyncio.gather(
        *(ann.post(roles_of(org), json={"name": name}) for name in ["Race", "RACE"] * 4)
    )
    assert sorted(one.status for one in answers) == [201] + [409] * 7


async def test_partial_change(running: Running) -> None:
    """A field that is left out stays; a change of nothing is none."""
    ann, org = await owned(running)
    group = await make_group(ann, org, AUDIT)
    role = await make_role(ann, org, MEMBERS, groups=[group["id"]])
    path = roles_of(org, role["id"])
    changed = (await ann.patch(path, json={"description": "new"})).json()
    assert changed == {**role, "description": "new"}
    changed = (await ann.patch(path, json={"permission_group_ids": []})).json()
    assert (changed["permission_groups"], changed["permissions"]) == ([], [MEMBERS])
    before = len(await audited(running, "role.updated", role["id"]))
    assert (await ann.patch(path, json={"description": "new"})).status == 200
    assert len(await audited(running, "role.updated", role["id"])) == before == 2


async def test_builtin_and_inherited_roles_stay(running: Running) -> None:
    """Built-in roles can't be changed by anybody, inherited ones not from below."""
    ann, top = await owned(running)
    org = await make_org(running, parent=top)
    root = await somebody(running, platform_admin=True)
    above = (await make_role(ann, top, AUDIT))["id"]
    for actor in (ann, root):
        for role, status, code in ((1, 409, "builtin_role"), (above, 403, "defined_above")):
            refused(await actor.patch(roles_of(org, role), json={"name": "x"}), status, code)
            refused(await actor.delete(roles_of(org, role), params={"force": "true"}), status, code)
    refused(await ann.patch(roles_of(org, UNKNOWN), json={"name": "x"}), 404, "role_not_found")


async def test_delete(running: Running) -> None:
    """A role in use stays, unless forced; an expired assignment is no use, one in a part is."""
    ann, org = await owned(running)
    below = await make_org(running, parent=org)
    bob = await somebody(running)
    await join(running, below, bob)
    path = roles_of(org, (await make_role(ann, org))["id"])
    assert (await ann.delete(path)).status == 204
    refused(await ann.delete(path), 404, "role_not_found")
    expired = await give_keys(running, org, bob, AUDIT, expires_at=utc_now() - timedelta(seconds=1))
    assert (await ann.delete(roles_of(org, expired))).status == 204
    used = await make_role(ann, org, AUDIT)
    assert (await assign(ann, below, bob, used["id"])).status == 201
    refused(await ann.delete(roles_of(org, used["id"])), 409, "in_use")
    assert (await ann.delete(roles_of(org, used["id"]), params={"force": "yes"})).status == 204
    assert (await ann.get(given_to(below, bob))).json()["total"] == 0
    entry = (await audited(running, "role.deleted", used["id"]))[0]
    assert entry.before_state is not None and entry.before_state["assigned_to"] == [id_of(bob)]


async def test_nobody_hands_on_what_he_does_not_hold(running: Running) -> None:
    """Who manages roles but holds no settings defines, changes and deletes no role with them."""
    ann, org = await owned(running)
    bob = await somebody(running)
    await join(running, org, bob)
    await give_keys(running, org, bob, MANAGE, MEMBERS)
    mine = await make_role(bob, org, MEMBERS)
    powerful = await make_role(ann, org, SETTINGS)
    group = await make_group(ann, org, SETTINGS)
    outer = await make_group(ann, org, children=[group["id"]])
    attempts = [
        await bob.post(roles_of(org), json={"name": fresh("r"), "permissions": [MEMBERS, SETTINGS]}),
        await bob.post(roles_of(org), json={"name": fresh("r"), "permission_group_ids": [outer["id"]]}),
        await bob.patch(roles_of(org, mine["id"]), json={"permissions": [SETTINGS]}),
        await bob.patch(roles_of(org, mine["id"]), json={"permission_group_ids": [outer["id"]]}),
        await bob.patch(roles_of(org, powerful["id"]), json={"permissions": []}),
        await bob.patch(roles_of(org, powerful["id"]), json={"name": fresh("r")}),
        await bob.delete(roles_of(org, powerful["id"])),
    ]
    for answer in attempts:
        refused(answer, 403, "key_not_held")
        assert SETTINGS in answer.detail and MEMBERS not in answer.detail
    assert (await ann.get(roles_of(org, powerful["id"]))).json() == powerful
    assert (await ann.get(roles_of(org, mine["id"]))).json() == mine
    assert (await bob.patch(roles_of(org, mine["id"]), json={"permissions": []})).status == 200


async def test_keys_of_a_sibling_are_not_held_here(running: Running) -> None:
    """What somebody holds in one organization he can't hand on in another, but in one below he can."""
    _, top = await owned(running)
    one, two = await make_org(running, parent=top), await make_org(running, parent=top)
    below = await make_org(running, parent=one)
    bob = await somebody(running)
    for org in (one, two):
        await join(running, org, bob)
    await give_keys(running, one, bob, MANAGE, SETTINGS)
    await give_keys(running, two, bob, MANAGE)
    refused(await bob.post(roles_of(two), json={"name": "x", "permissions": [SETTINGS]}), 403, "key_not_held")
    await make_role(bob, below, SETTINGS)
    refused(await bob.post(roles_of(top), json={"name": "x"}), 403, "forbidden")


async def test_limit(running: Running) -> None:
    ann, org = await owned(running)
    await running.platform.database.write(
        lambda unit: unit.session.add_all(
            Role(organization_id=org, name=f"r{number}", name_key=f"r{number}") for number in range(499)
        )
    )
    last = await make_role(ann, org)
    refused(await ann.post(roles_of(org), json={"name": "one more"}), 409, "limit_reached")
    await ann.delete(roles_of(org, last["id"]))
    await make_role(ann, org)


async def test_keys_of_an_absent_plugin(tmp_path: Path) -> None:
    """A role keeps the key of a plugin that is not loaded; it gives nothing, and only an owner moves it."""
    async with platforms(tmp_path) as start:
        loaded, absent = await start("tenancy", Notes), await start("tenancy")
        ann, org = await owned(loaded)
        bob = await somebody(loaded)
        await join(loaded, org, bob)
        await give_keys(loaded, org, bob, MANAGE)
        role = await make_role(ann, org, PUBLISH.key)
        await assign(ann, org, ann, role["id"])
        path = roles_of(org, role["id"])
        ann.running = bob.running = absent
        assert (await ann.get(path)).json()["permissions"] == [PUBLISH.key]
        assert PUBLISH.key not in await keys_of(ann, org, ann)
        assert "query.key" in problems(await ask_effective(ann, org, ann, PUBLISH.key))
        refused(await bob.patch(path, json={"name": "Mine"}), 403, "key_not_held")
        refused(await assign(bob, org, bob, role["id"]), 403, "key_not_held")
        kept = {"name": "Kept", "permissions": [PUBLISH.key, AUDIT]}
        assert (await ann.patch(path, json=kept)).status == 200
        assert problems(await ann.post(roles_of(org), json={"name": "x", "permissions": [PUBLISH.key]}))
        ann.running = loaded
        assert PUBLISH.key in await keys_of(ann, org, ann)


async def test_audit(running: Running) -> None:
    """Each change is in the audit log with what was before and after, in its organization."""
    ann, org = await owned(running)
    role = await make_role(ann, org, AUDIT, name="First")
    await ann.patch(roles_of(org, role["id"]), json={"name": "Second", "permissions": []})
    await ann.delete(roles_of(org, role["id"]))
    made, changed, deleted = [
        (await audited(running, f"role.{action}", role["id"]))[0]
        for action in ("created", "updated", "deleted")
    ]
    first = {"name": "First", "description": "", "permissions": [AUDIT], "permission_groups": []}
    second = {**first, "name": "Second", "permissions": []}
    assert (made.before_state, made.after_state) == (None, first)
    assert (changed.before_state, changed.after_state) == (first, second)
    assert (deleted.before_state, deleted.after_state) == ({**second, "assigned_to": []}, None)
    for entry in (made, changed, deleted):
        assert (entry.actor_id, entry.scope_org_id, entry.target_type) == (id_of(ann), org, "role")


async def test_changes_and_assignments_at_once(running: Running) -> None:
    """Roles are changed, assigned and deleted together: no deadlock, no error, and what stays is sound."""
    ann, org = await owned(running)
    bob = await somebody(running)
    await join(running, org, bob)
    roles = [await make_role(ann, org, MEMBERS) for _ in range(4)]
    work = []
    for role in roles:
        path = roles_of(org, role["id"])
        work += [
            assign(ann, org, bob, role["id"]),
            ann.patch(path, json={"permissions": [AUDIT]}),
            ann.delete(path, params={"force": "true"}),
            ann.get(roles_of(org)),
        ]
    answers = await asyncio.gather(*work)
    assert {one.status for one in answers} <= {200, 201, 204, 404}
    assert (await ann.get(given_to(org, bob))).json()["total"] == 0
    assert {one["role_name"] for one in (await effective(ann, org, bob))["permissions"]} == {"member"}
