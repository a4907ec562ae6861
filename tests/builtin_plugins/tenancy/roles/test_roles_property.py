"""Random trees, groups, roles and assignments: what the routes answer and admit is what a plain model says.

The model knows four rules: a suspended membership and an expired assignment count for nothing; keys of an
organization hold in all below it, save those of the built-in role `member`; a role holds its own keys and
those of its groups; a group holds its own keys and those of the groups nested in it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import product

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from builtin_plugins.tenancy.models import (
    GroupChild,
    GroupPermission,
    Membership,
    PermissionGroup,
    Role,
    RoleAssignment,
    RoleGroup,
    RolePermission,
)
from kernel.sdk import Unit, utc_now
from kernel.testing import Actor, Running, platforms, postgres_database
from tests.builtin_plugins.tenancy.roles_support import (
    DRAFT,
    PUBLISH,
    Notes,
    ask_effective,
    given_to,
    groups_of,
    nest,
    roles_of,
)
from tests.builtin_plugins.tenancy.tenancy_support import id_of, make_org, somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEYS = (PUBLISH.key, DRAFT.key)
BUILTIN = {"owner": {*KEYS, "org.view"}, "admin": {DRAFT.key, "org.view"}, "member": {"org.view"}}
BUILTIN_IDS = {"owner": 1, "admin": 2, "member": 3}
USERS = 3
PAST = timedelta(hours=-1)

Entry = tuple[str, int, int | None, int | None]


@dataclass
class Group:
    """A permission group of an organization; all numbers are places in the lists of the world."""

    org: int
    keys: set[str]
    children: set[int]


@dataclass
class CustomRole:
    org: int
    keys: set[str]
    groups: set[int]
    exists: bool = True


@dataclass
class World:
    """The model, and the ids of its things on the platform."""

    parents: list[int | None]
    members: dict[tuple[int, int], tuple[str, bool]]
    groups: list[Group]
    roles: list[CustomRole]
    assignments: dict[tuple[int, int, int], bool]
    orgs: list[int] = field(default_factory=list)
    users: list[Actor] = field(default_factory=list)
    group_ids: list[int] = field(default_factory=list)
    role_ids: list[int] = field(default_factory=list)

    def lineage(self, org: int) -> list[int]:
        above = self.parents[org]
        return [org] if above is None else [org, *self.lineage(above)]

    def held_by_group(self, group: int) -> Iterator[tuple[str, int]]:
        yield from ((key, group) for key in self.groups[group].keys)
        for child in self.groups[group].children:
            yield from self.held_by_group(child)

    def held_by_role(self, role: int) -> set[tuple[str, int | None]]:
        """Keys with the group that holds each, or None for the role's own."""
        pairs: set[tuple[str, int | None]] = {(key, None) for key in self.roles[role].keys}
        for group in self.roles[role].groups:
            pairs |= set(self.held_by_group(group))
        return pairs

    def effective(self, org: int, user: int) -> set[Entry]:
        """Keys with role, group and organization above, by their ids on the platform."""
        entries: set[Entry] = set()
        for place in self.lineage(org):
            org_role, suspended = self.members.get((place, user), ("", True))
            if suspended:
                continue
            via = None if place == org else self.orgs[place]
            if via is None or org_role != "member":
                entries |= {(key, BUILTIN_IDS[org_role], None, via) for key in BUILTIN[org_role]}
            for role, custom in enumerate(self.roles):
                if custom.exists and self.assignments.get((place, user, role)) is False:
                    for key, group in self.held_by_role(role):
                        by = None if group is None else self.group_ids[group]
                        entries.add((key, self.role_ids[role], by, via))
        return entries

    def roles_holding(self, org: int, key: str) -> set[int]:
        """The custom roles usable in an organization that hold a key."""
        return {
            self.role_ids[number]
            for number, role in enumerate(self.roles)
            if role.exists
            and role.org in self.lineage(org)
            and key in {role_key for role_key, _ in self.held_by_role(number)}
        }


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A tree with members, groups, roles and assignments that the routes would have allowed."""
    parents: list[int | None] = [None]
    for number in range(1, draw(st.integers(1, 5))):
        parents.append(draw(st.none() | st.integers(0, number - 1)))
    places = range(len(parents))
    roles = st.sampled_from(["owner", "admin", "member"])
    membership = st.none() | st.tuples(roles, st.booleans())
    drawn = {pair: draw(membership) for pair in product(places, range(USERS))}
    members = {pair: one for pair, one in drawn.items() if one is not None}
    world = World(parents, members, [], [], {})
    keys = st.sets(st.sampled_from(KEYS))
    for _ in range(draw(st.integers(0, 5))):
        org = draw(st.sampled_from(places))
        world.groups.append(Group(org, draw(keys), draw(_some(_usable_groups(world, org)))))
    for _ in range(draw(st.integers(0, 4))):
        org = draw(st.sampled_from(places))
        world.roles.append(CustomRole(org, draw(keys), draw(_some(_usable_groups(world, org)))))
    for (org, user), (number, role) in product(members, enumerate(world.roles)):
        expired = draw(st.none() | st.booleans()) if role.org in world.lineage(org) else None
        if expired is not None:
            world.assignments[org, user, number] = expired
    return world


def _usable_groups(world: World, org: int) -> list[int]:
    return [number for number, group in enumerate(world.groups) if group.org in world.lineage(org)]


def _some(numbers: list[int]) -> st.SearchStrategy[set[int]]:
    return st.sets(st.sampled_from(numbers)) if numbers else st.just(set())


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Running]:
    """A platform with a route of an organization's permission to try."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database()) if request.param == "postgresql" else None
        async with platforms(tmp_path_factory.mktemp("property")) as start:
            yield await start("tenancy", Notes, env={"DATABASE_URL": url})


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def root(running: Running) -> Actor:
    """A Platform Admin, who may ask and change everything."""
    return await somebody(running, platform_admin=True)


@settings(settings.get_profile("role-worlds"))
@given(data=st.data(), world=worlds())
async def test_answers_and_access_are_those_of_the_model(
    running: Running, root: Actor, data: st.DataObject, world: World
) -> None:
    """After the start and after each change, every answer and every access is as the model has it."""
    await build(running, world)
    await compare(root, world)
    for _ in range(data.draw(st.integers(0, 3))):
        await change(root, world, data)
        await compare(root, world)


async def build(running: Running, world: World) -> None:
    """Write the world's rows, as the routes would have written them."""
    for parent in world.parents:
        above = None if parent is None else world.orgs[parent]
        world.orgs.append(await make_org(running, parent=above))
    world.users += [await somebody(running) for _ in range(USERS)]

    def fill(unit: Unit) -> None:
        for (org, user), (org_role, suspended) in world.members.items():
            row = Membership(
                organization_id=world.orgs[org], user_id=id_of(world.users[user]), org_role=org_role
            )
            row.suspended_at = utc_now() if suspended else None
            unit.session.add(row)
        for number, group in enumerate(world.groups):
            name = f"group-{number}"
            group_row = PermissionGroup(organization_id=world.orgs[group.org], name=name, name_key=name)
            unit.session.add(group_row)
            unit.session.flush()
            world.group_ids.append(group_row.id)
            unit.session.add_all(
                GroupPermission(group_id=group_row.id, permission_key=key) for key in group.keys
            )
            children = [world.group_ids[child] for child in group.children]
            unit.session.add_all(
                GroupChild(group_id=group_row.id, child_group_id=child) for child in children
            )
        for number, role in enumerate(world.roles):
            name = f"role-{number}"
            custom = Role(organization_id=world.orgs[role.org], name=name, name_key=name)
            unit.session.add(custom)
            unit.session.flush()
            world.role_ids.append(custom.id)
            unit.session.add_all(RolePermission(role_id=custom.id, permission_key=key) for key in role.keys)
            groups = [world.group_ids[group] for group in role.groups]
            unit.session.add_all(RoleGroup(role_id=custom.id, group_id=group) for group in groups)
        for (org, user, number), expired in world.assignments.items():
            unit.session.add(
                RoleAssignment(
                    organization_id=world.orgs[org],
                    user_id=id_of(world.users[user]),
                    role_id=world.role_ids[number],
                    expires_at=utc_now() + PAST if expired else None,
                )
            )

    await running.platform.database.write(fill)


async def compare(root: Actor, world: World) -> None:
    """Hold the platform against the model, for every account in every organization."""
    for org, user in product(range(len(world.orgs)), range(USERS)):
        place, actor = world.orgs[org], world.users[user]
        expected = world.effective(org, user)
        for key, what in ((PUBLISH.key, "publish"), (DRAFT.key, "draft")):
            status = (await actor.post(f"/v1/notes/{place}/{what}")).status
            assert status == (200 if key in {entry[0] for entry in expected} else 403)
        answer = await ask_effective(root, place, actor)
        if not any((above, user) in world.members for above in world.lineage(org)):
            assert answer.status == 404
            continue
        entries = answer.json()["permissions"]
        names = ("permission_key", "role_id", "permission_group_id", "via_ancestor_organization_id")
        rows = [tuple(one[name] for name in names) for one in entries]
        keys = {*KEYS, "org.view"}
        assert sorted((one for one in rows if one[0] in keys), key=str) == sorted(expected, key=str)
        explanation = (await ask_effective(root, place, actor, PUBLISH.key)).json()["explanation"]
        assert explanation["held"] == (PUBLISH.key in {entry[0] for entry in expected})
        if not explanation["held"]:
            remedies = {one["role_id"] for one in explanation["would_grant"]}
            assert remedies == {1} | world.roles_holding(org, PUBLISH.key)


async def change(root: Actor, world: World, data: st.DataObject) -> None:
    """One random change over HTTP, in the model too."""
    possible = [change_role, give_or_take, delete_role] if any(r.exists for r in world.roles) else []
    if world.groups:
        possible += [change_group, change_nesting]
    if possible:
        await data.draw(st.sampled_from(possible))(root, world, data)


def _role(world: World, data: st.DataObject) -> int:
    return data.draw(st.sampled_from([n for n, role in enumerate(world.roles) if role.exists]))


async def change_role(root: Actor, world: World, data: st.DataObject) -> None:
    number = _role(world, data)
    role = world.roles[number]
    role.keys = data.draw(st.sets(st.sampled_from(KEYS)))
    role.groups = data.draw(_some(_usable_groups(world, role.org)))
    groups = [world.group_ids[group] for group in role.groups]
    body = {"permissions": sorted(role.keys), "permission_group_ids": groups}
    answer = await root.patch(roles_of(world.orgs[role.org], world.role_ids[number]), json=body)
    assert answer.status == 200, answer.body


async def delete_role(root: Actor, world: World, data: st.DataObject) -> None:
    number = _role(world, data)
    role = world.roles[number]
    role.exists = False
    path = roles_of(world.orgs[role.org], world.role_ids[number])
    answer = await root.delete(path, params={"force": "true"})
    assert answer.status == 204, answer.body


async def give_or_take(root: Actor, world: World, data: st.DataObject) -> None:
    """A role is assigned, or taken from who has it."""
    number = _role(world, data)
    places = [
        pair
        for pair, (_, suspended) in world.members.items()
        if not suspended and world.roles[number].org in world.lineage(pair[0])
    ]
    if not places:
        return
    org, user = data.draw(st.sampled_from(places))
    place, actor = world.orgs[org], world.users[user]
    if world.assignments.get((org, user, number)) is False:
        del world.assignments[org, user, number]
        answer = await root.delete(given_to(place, actor, world.role_ids[number]))
    else:
        world.assignments[org, user, number] = False
        answer = await root.post(given_to(place, actor), json={"role_id": world.role_ids[number]})
    assert answer.status in (200, 201, 204), answer.body


async def change_group(root: Actor, world: World, data: st.DataObject) -> None:
    number = data.draw(st.sampled_from(range(len(world.groups))))
    group = world.groups[number]
    group.keys = data.draw(st.sets(st.sampled_from(KEYS)))
    path = groups_of(world.orgs[group.org], world.group_ids[number])
    answer = await root.patch(path, json={"permissions": sorted(group.keys)})
    assert answer.status == 200, answer.body


async def change_nesting(root: Actor, world: World, data: st.DataObject) -> None:
    """A group goes into another, or out of it; a circle is refused and changes nothing."""
    number = data.draw(st.sampled_from(range(len(world.groups))))
    group = world.groups[number]
    child = data.draw(st.sampled_from(_usable_groups(world, group.org)))
    place = world.orgs[group.org]
    if child in group.children:
        group.children.discard(child)
        path = groups_of(place, world.group_ids[number], f"/children/{world.group_ids[child]}")
        assert (await root.delete(path)).status == 204
        return
    answer = await nest(root, place, world.group_ids[number], world.group_ids[child])
    if number in _within(world, child):
        assert (answer.status, answer.json()["code"]) == (409, "group_cycle")
    else:
        assert answer.status == 201, answer.body
        group.children.add(child)


def _within(world: World, group: int) -> set[int]:
    return {group}.union(*(_within(world, child) for child in world.groups[group].children))
