"""Organizations over HTTP: create, list, show, change, the tree, switch (spec 4.4)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import func, select

from builtin_plugins.tenancy.models import Organization, Team
from kernel.testing import Actor, Reply, Running, Start
from tests.builtin_plugins.tenancy.tenancy_support import (
    audited,
    claims,
    fresh,
    id_of,
    join,
    make_org,
    problems,
    read_claims,
    refused,
    somebody,
    suspend,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

ORGS = "/v1/organizations"


async def create(actor: Actor, **fields: Any) -> Reply:
    """Create an organization; what is not given gets a fresh value."""
    slug = fresh("org")
    return await actor.post(ORGS, json={"name": slug.title(), "slug": slug, **fields})


async def new_organization(actor: Actor, **fields: Any) -> dict[str, Any]:
    answer = await create(actor, **fields)
    assert answer.status == 201, answer.body
    return dict(answer.json())


async def listed(actor: Actor, path: str = ORGS) -> dict[int, dict[str, Any]]:
    answer = await actor.get(f"{path}?limit=500")
    assert answer.status == 200, answer.body
    return {one["id"]: one for one in answer.json()["items"]}


class TestCreate:
    async def test_record(self, running: Running) -> None:
        """The caller owns it and administers its default team; the slug is lowered."""
        root = await somebody(running, role="admin")
        slug = fresh("Acme-Corp")
        record = await new_organization(root, name="  Acme Corp ", slug=slug)
        assert record.pop("created_at").endswith(("Z", "+00:00"))
        team_id, org_id = record.pop("default_team_id"), record.pop("id")
        assert record == {
            "name": "Acme Corp",
            "slug": slug.lower(),
            "parent_id": None,
            "member_count": 1,
            "owner_user_id": id_of(root),
        }
        found = await claims(root)
        assert found["orgs"] == [{"id": org_id, "role": "owner"}]
        assert found["teams"] == [team_id]
        [entry] = await audited(running, "organization.created", org_id)
        assert (entry.actor_id, entry.scope_org_id) == (id_of(root), org_id)
        [entry] = await audited(running, "organization.member_added", id_of(root))
        assert entry.after_state == {"organization_id": org_id, "org_role": "owner"}

    async def test_for_another_owner(self, running: Running) -> None:
        """The owner that is named gets it; the administrator who made it is not in it."""
        root, ann = await somebody(running, role="admin"), await somebody(running)
        org = await new_organization(root, owner_user_id=id_of(ann))
        assert (await ann.get(f"{ORGS}/{org['id']}/members")).json()["total"] == 1
        assert (await root.get(f"{ORGS}/mine")).json() == []

    async def test_default_teams_of_like_names(self, running: Running) -> None:
        """Organizations may be called alike, teams may not: the second default team has another name."""
        root = await somebody(running, role="admin")
        name = fresh("Twins")
        first, second = (
            await new_organization(root, name=name),
            await new_organization(root, name=name.upper()),
        )
        names = await running.platform.database.read(
            lambda session: [
                session.scalar(select(Team.name).where(Team.id == one["default_team_id"]))
                for one in (first, second)
            ]
        )
        assert names == [name, f"{name.upper()} ({second['slug']})"]

    @pytest.mark.parametrize(
        ("body", "place"),
        [
            ({"name": " ", "slug": "x"}, "body.name"),
            ({"name": "a\nb", "slug": "x"}, "body.name"),
            ({"name": "x", "slug": "-x"}, "body.slug"),
            ({"name": "x", "slug": "x-"}, "body.slug"),
            ({"name": "x", "slug": "a b"}, "body.slug"),
            ({"name": "x", "slug": "ä"}, "body.slug"),
            ({"name": "x", "slug": "x", "owner_user_id": 2**31 - 1}, "body.owner_user_id"),
            ({"name": "x", "slug": "x", "parent_id": 2**31 - 1}, "body.parent_id"),
        ],
    )
    async def test_misfits(self, running: Running, body: dict[str, Any], place: str) -> None:
        """A field that does not fit is named, and nothing is made."""
        root = await somebody(running, role="admin")
        assert place in problems(await root.post(ORGS, json=body))
        assert (await root.get(f"{ORGS}/mine")).json() == []

    async def test_deactivated_owner(self, running: Running) -> None:
        """Nobody can own an organization without being able to sign in."""
        root = await somebody(running, role="admin")
        gone = await somebody(running, is_active=False)
        assert "body.owner_user_id" in problems(await create(root, owner_user_id=id_of(gone)))

    async def test_who_may(self, running: Running) -> None:
        """Administrators of the instance and Platform Admins; others only below what they manage."""
        ann, bob = await somebody(running), await somebody(running)
        home, foreign = await make_org(running, ann), await make_org(running, bob)
        refused(await create(ann), 403)
        for parent in (foreign, 2**31 - 1):
            answer = await create(ann, parent_id=parent)
            refused(answer, 403)
        assert (await create(ann, parent_id=foreign)).body == answer.body
        below = await new_organization(ann, parent_id=home)
        assert below["parent_id"] == home
        assert (await create(await somebody(running, platform_admin=True))).status == 201
        refused(await create(running.anonymous), 401)

    async def test_slug_taken(self, running: Running) -> None:
        """A second organization with a slug is refused, whatever its case."""
        root = await somebody(running, role="admin")
        org = await new_organization(root)
        refused(await create(root, slug=org["slug"].upper()), 409, "slug_taken")

    async def test_slug_claimed_at_once(self, running: Running) -> None:
        """Of many who claim a slug at once, one gets it; nothing is left of the others."""
        root = await somebody(running, role="admin")
        slug = fresh("wanted")
        answers = await asyncio.gather(*(create(root, slug=slug, name=slug) for _ in range(20)))
        assert Counter(one.status for one in answers) == {201: 1, 409: 19}
        teams = select(func.count()).select_from(Team).where(Team.name.startswith(slug))
        assert await running.platform.database.read(lambda session: session.scalar(teams)) == 1

    @pytest.mark.asyncio(loop_scope="function")
    async def test_depth(self, start_platform: Start) -> None:
        """The tree has a bound, and the refusal names the setting."""
        running = await start_platform("tenancy", env={"PLATFORM_TENANCY_MAX_TREE_DEPTH": "2"})
        root = await somebody(running, role="admin")
        top = await new_organization(root)
        middle = await new_organization(root, parent_id=top["id"])
        answer = await create(root, parent_id=middle["id"])
        refused(answer, 409, "too_deep")
        assert "PLATFORM_TENANCY_MAX_TREE_DEPTH" in answer.detail


class TestRead:
    async def test_all(self, running: Running) -> None:
        """Administrators of the instance and Platform Admins see all, with counts; nobody else."""
        ann = await somebody(running)
        org = await make_org(running, ann)
        await join(running, org, await somebody(running))
        for actor in (await somebody(running, role="admin"), await somebody(running, platform_admin=True)):
            assert (await listed(actor))[org]["member_count"] == 2
        refused(await ann.get(ORGS), 403)

    async def test_paging(self, running: Running) -> None:
        root = await somebody(running, role="admin")
        for _ in range(3):
            await make_org(running)
        first = (await root.get(f"{ORGS}?limit=2")).json()
        rest = (await root.get(f"{ORGS}?limit=500&offset=2")).json()
        ids = [one["id"] for one in first["items"] + rest["items"]]
        assert ids == sorted(set(ids))
        assert first["total"] == len(ids)
        assert (first["limit"], first["offset"]) == (2, 0)

    async def test_mine(self, running: Running) -> None:
        """The caller's organizations as an array, the first joined first, suspended ones marked."""
        ann = await somebody(running)
        assert (await ann.get(f"{ORGS}/mine")).json() == []
        first, second = await make_org(running, ann), await make_org(running)
        await join(running, second, ann)
        await suspend(running, second, ann)
        found = (await ann.get(f"{ORGS}/mine")).json()
        assert [(one["id"], one["org_role"], one["suspended"]) for one in found] == [
            (first, "owner", False),
            (second, "member", True),
        ]
        assert [one["member_count"] for one in found] == [1, None]

    async def test_below(self, running: Running) -> None:
        """Authority sees all that is directly below; a plain member what it belongs to as well."""
        boss, worker = await somebody(running), await somebody(running)
        top = await make_org(running, boss)
        await join(running, top, worker)
        first, second = await make_org(running, parent=top), await make_org(running, parent=top)
        await make_org(running, parent=first)
        await join(running, second, worker)
        path = f"{ORGS}/{top}/organizations"
        assert list(await listed(boss, path)) == [first, second]
        assert list(await listed(await somebody(running, platform_admin=True), path)) == [first, second]
        answer = (await worker.get(path)).json()
        assert ([one["id"] for one in answer["items"]], answer["total"]) == ([second], 1)


class TestUpdate:
    async def test_change(self, running: Running) -> None:
        """What is left out stays; the change is in the audit log."""
        ann = await somebody(running)
        org = await make_org(running, ann)
        slug = fresh("renamed")
        answer = await ann.patch(f"{ORGS}/{org}", json={"slug": slug.upper()})
        assert answer.status == 200
        record = (await ann.patch(f"{ORGS}/{org}", json={"name": "New"})).json()
        assert (record["name"], record["slug"], record["member_count"]) == ("New", slug, 1)
        assert [entry.actor_id for entry in await audited(running, "organization.updated", org)] == [
            id_of(ann)
        ] * 2

    async def test_refusals(self, running: Running) -> None:
        """Plain members change nothing, a taken slug stays taken, other fields are refused."""
        ann, bob = await somebody(running), await somebody(running)
        org, other = await make_org(running, ann), await make_org(running, bob)
        await join(running, org, bob)
        refused(await bob.patch(f"{ORGS}/{org}", json={"name": "Mine"}), 403)
        taken = (await bob.get(f"{ORGS}/{other}")).json()["slug"]
        refused(await ann.patch(f"{ORGS}/{org}", json={"slug": taken}), 409, "slug_taken")
        assert "body.parent_id" in problems(await ann.patch(f"{ORGS}/{org}", json={"parent_id": other}))


class TestSwitch:
    async def test_switch(self, running: Running) -> None:
        """The token works in the other organization; home, session start and the rest stay."""
        ann = await somebody(running)
        home, other = await make_org(running, ann), await make_org(running)
        await join(running, other, ann)
        before = await claims(ann)
        answer = await ann.post(f"{ORGS}/switch", json={"organization_id": other})
        assert answer.status == 200
        body = answer.json()
        assert (body["token_type"], set(body)) == ("bearer", {"access_token", "token_type", "expires_in"})
        found = read_claims(body["access_token"])
        assert (found["active_tenant_id"], found["tenant_id"]) == (other, home)
        assert found["auth_time"] == before["auth_time"]
        assert body["expires_in"] == found["exp"] - found["iat"]
        ann.token = body["access_token"]
        assert (await claims(ann))["active_tenant_id"] == other
        await suspend(running, other, ann)
        assert "active_tenant_id" not in await claims(ann)

    async def test_refusals(self, running: Running) -> None:
        """Unknown, foreign and suspended are refused alike, for administrators of the instance as well."""
        ann = await somebody(running, role="admin")
        foreign, closed = await make_org(running), await make_org(running)
        await join(running, closed, ann, "owner")
        await suspend(running, closed, ann)
        answers = [
            await ann.post(f"{ORGS}/switch", json={"organization_id": one})
            for one in (foreign, closed, 2**31 - 1)
        ]
        for answer in answers:
            refused(answer, 403, "not_a_member")
        assert len({answer.body for answer in answers}) == 1


async def test_unknown_rows_are_not_made(running: Running) -> None:
    root = await somebody(running, role="admin")
    name = fresh("nothing")
    await create(root, name=name, owner_user_id=2**31 - 1)
    assert (
        await running.platform.database.read(
            lambda session: session.scalar(select(Organization.id).where(Organization.name == name))
        )
        is None
    )
