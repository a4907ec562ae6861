"""Members of an organization over HTTP: list, add, change, suspend, remove (spec 4.4, 5.4)."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import Actor, Reply, Running, Start
from tests.builtin_plugins.tenancy.tenancy_support import (
    audited,
    claims,
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

UNKNOWN = 2**31 - 1


def members(org: int, actor: Actor | int | None = None, rest: str = "") -> str:
    """The path of the members, of one of them, or of something of that one."""
    path = f"/v1/organizations/{org}/members"
    if actor is None:
        return path
    return f"{path}/{actor if isinstance(actor, int) else id_of(actor)}{rest}"


async def give(by: Actor, org: int, whom: Actor | int, role: str) -> Reply:
    user_id = whom if isinstance(whom, int) else id_of(whom)
    return await by.post(members(org), json={"user_id": user_id, "org_role": role})


async def listed(actor: Actor, org: int) -> dict[int, dict[str, Any]]:
    answer = await actor.get(f"{members(org)}?limit=500")
    assert answer.status == 200, answer.body
    return {one["user_id"]: one for one in answer.json()["items"]}


async def roles(actor: Actor, org: int) -> dict[int, str]:
    return {user_id: one["org_role"] for user_id, one in (await listed(actor, org)).items()}


async def is_signed_in(actor: Actor) -> bool:
    answer = await actor.get("/v1/organizations/mine")
    assert answer.status in (200, 401)
    return answer.status == 200


async def cast(running: Running, *names: str) -> tuple[int, list[Actor]]:
    """An organization, and a member of it for each of these roles."""
    org, actors = await make_org(running), []
    for role in names:
        actors.append(await somebody(running))
        await join(running, org, actors[-1], role)
    return org, actors


class TestList:
    async def test_record(self, running: Running) -> None:
        """What everybody in it sees of a member; hints are false for who manages nothing."""
        org, [ann, bob] = await cast(running, "owner", "member")
        record = (await listed(bob, org))[id_of(ann)]
        assert record.pop("joined_at").endswith(("Z", "+00:00"))
        assert record == {
            "user_id": id_of(ann),
            "username": ann.user["username"],
            "email": ann.user["email"],
            "org_role": "owner",
            "suspended": False,
            "is_active": True,
            "managed": False,
            "managed_by_caller": False,
            "resettable_by_caller": False,
        }

    async def test_filters(self, running: Running) -> None:
        """By role, by suspension, by a part of the name; the total counts what fits."""
        org, [ann, bob, eve] = await cast(running, "owner", "member", "member")
        await suspend(running, org, eve)

        async def found(query: str) -> list[int]:
            answer = (await ann.get(f"{members(org)}?{query}")).json()
            assert answer["total"] == len(answer["items"])
            return [one["user_id"] for one in answer["items"]]

        assert await found("org_role=member") == [id_of(bob), id_of(eve)]
        assert await found("suspended=true") == [id_of(eve)]
        assert await found("suspended=false") == [id_of(ann), id_of(bob)]
        assert await found(f"q={bob.user['username'].upper()}") == [id_of(bob)]
        assert await found("q=%25") == []
        assert "query.org_role" in problems(await ann.get(f"{members(org)}?org_role=king"))

    @pytest.mark.parametrize("role", ["owner", "admin"])
    async def test_hint(self, running: Running, role: str) -> None:
        org, [by, *others] = await cast(running, role, "owner", "admin", "member")
        hints = await listed(by, org)
        for one in others:
            allowed = (await by.put(members(org, one, "/suspension"))).status == 200
            assert hints[id_of(one)]["managed_by_caller"] == allowed


class TestUpsert:
    async def test_add_and_change(self, running: Running) -> None:
        """201 with the record for a new member, 200 for one who was there; both take effect at once."""
        org, [ann] = await cast(running, "owner")
        bob = await somebody(running)
        answer = await give(ann, org, bob, "member")
        assert (answer.status, answer.json()["org_role"]) == (201, "member")
        assert (await listed(bob, org)).keys() == {id_of(ann), id_of(bob)}
        answer = await give(ann, org, bob, "admin")
        assert (answer.status, answer.json()["org_role"]) == (200, "admin")
        assert await is_signed_in(bob)
        assert (await give(bob, org, await somebody(running), "member")).status == 201
        [added] = await audited(running, "organization.member_added", id_of(bob))
        assert (added.actor_id, added.scope_org_id) == (id_of(ann), org)
        [raised] = await audited(running, "organization.member_role_changed", id_of(bob))
        assert raised.before_state == {"organization_id": org, "org_role": "member"}
        assert raised.after_state == {"organization_id": org, "org_role": "admin"}

    async def test_same_again(self, running: Running) -> None:
        """A retry changes nothing: no second entry in the audit log, no session ended."""
        org, [ann, bob] = await cast(running, "owner", "member")
        assert (await give(ann, org, bob, "member")).status == 200
        assert await is_signed_in(bob)
        assert await audited(running, "organization.member_role_changed", id_of(bob)) == []

    async def test_demotion_ends_sessions(self, running: Running) -> None:
        """Owner to admin, admin to member; a promotion ends none (spec 5.4)."""
        org, [ann, bob] = await cast(running, "owner", "owner")
        assert (await give(ann, org, bob, "admin")).status == 200
        assert not await is_signed_in(bob)
        org, [ann, bob] = await cast(running, "owner", "admin")
        assert (await give(ann, org, bob, "member")).status == 200
        assert not await is_signed_in(bob)

    async def test_unknown_account(self, running: Running) -> None:
        org, [ann] = await cast(running, "owner")
        gone = await somebody(running, is_active=False)
        for whom in (UNKNOWN, id_of(gone)):
            refused(await give(ann, org, whom, "member"), 404, "user_not_found")

    async def test_admins_do_not_touch_owners_or_each_other(self, running: Running) -> None:
        """Owners are made and unmade, and administrators changed, by those who manage roles."""
        org, [owner, admin, other, plain] = await cast(running, "owner", "admin", "admin", "member")
        for target, role in ((plain, "owner"), (admin, "owner"), (owner, "member"), (other, "member")):
            refused(await give(admin, org, target, role), 403, "above_you")
        assert (await give(admin, org, plain, "admin")).status == 200
        assert (await give(admin, org, admin, "member")).status == 200
        assert await roles(owner, org) == {
            id_of(owner): "owner",
            id_of(admin): "member",
            id_of(other): "admin",
            id_of(plain): "admin",
        }

    async def test_nobody_gives_what_they_lack(self, running: Running) -> None:
        """Who may manage members alone makes no administrator, not even of themselves."""
        org, [owner, clerk, plain] = await cast(running, "owner", "member", "member")
        await give_keys(running, org, clerk, "org.members.manage")
        for target in (clerk, plain):
            refused(await give(clerk, org, target, "admin"), 403, "key_not_held")
        assert (await give(clerk, org, await somebody(running), "member")).status == 201
        await give_keys(running, org, clerk, "org.roles.manage")
        refused(await give(clerk, org, plain, "owner"), 403, "key_not_held")
        assert (await roles(owner, org))[id_of(plain)] == "member"

    async def test_last_owner(self, running: Running) -> None:
        """The last owner who can act stays, whoever asks; one who is suspended or deactivated is none."""
        org, [ann, away] = await cast(running, "owner", "owner")
        gone = await somebody(running, is_active=False)
        await join(running, org, gone, "owner")
        await suspend(running, org, away)
        root = await somebody(running, role="admin")
        for actor in (ann, root):
            refused(await give(actor, org, ann, "admin"), 409, "last_owner")
            refused(await actor.delete(members(org, ann)), 409, "last_owner")
            refused(await actor.put(members(org, ann, "/suspension")), 409, "last_owner")
        assert await is_signed_in(ann)
        assert (await root.delete(members(org, gone))).status == 204
        assert (await root.delete(members(org, away, "/suspension"))).status == 204
        assert (await give(ann, org, ann, "admin")).status == 200


class TestRemove:
    async def test_remove(self, running: Running) -> None:
        """Ends the session, the membership in the organization's own teams, and roles assigned there."""
        org, [ann, bob] = await cast(running, "owner", "member")
        home = await make_org(running, bob)
        own, other = await make_team(running, organization=org), await make_team(running)
        for team in (own, other):
            await join_team(running, team, bob)
        role = await give_keys(running, org, bob, "org.settings.manage")
        assert (await ann.delete(members(org, bob))).status == 204
        assert not await is_signed_in(bob)
        assert (await roles(ann, org)).keys() == {id_of(ann)}
        [entry] = await audited(running, "organization.member_removed", id_of(bob))
        ended = {"org_role": "member", "suspended": False, "team_ids": [own], "role_ids": [role]}
        assert entry.before_state == {"organization_id": org, **ended}
        refused(await ann.delete(members(org, bob)), 404, "member_not_found")
        await renew(running, bob)
        found = await claims(bob)
        assert (found["teams"], found["tenant_id"]) == ([other], home)
        assert (await give(ann, org, bob, "member")).status == 201
        refused(await bob.patch(f"/v1/organizations/{org}", json={"name": "Mine"}), 403)

    async def test_leave(self, running: Running) -> None:
        """Everybody may leave, suspended or not; whoever is not in it learns nothing."""
        org, [_, bob, eve] = await cast(running, "owner", "member", "admin")
        await suspend(running, org, bob)
        for actor in (bob, eve):
            assert (await actor.delete(members(org, actor))).status == 204
        stranger = await somebody(running)
        answers = [await stranger.delete(members(one, stranger)) for one in (org, UNKNOWN)]
        for answer in answers:
            refused(answer, 403, "not_a_member")
        assert answers[0].body == answers[1].body

    async def test_who_may(self, running: Running) -> None:
        """Members remove nobody else, administrators no owners and no administrators."""
        org, [owner, admin, plain] = await cast(running, "owner", "admin", "member")
        for target in (owner, admin):
            refused(await plain.delete(members(org, target)), 403)
        refused(await admin.delete(members(org, owner)), 403, "above_you")
        stranger = await somebody(running)
        assert (await stranger.delete(members(org, owner))).body == (
            await stranger.delete(members(UNKNOWN, owner))
        ).body
        assert (await admin.delete(members(org, plain))).status == 204
        assert (await owner.delete(members(org, admin))).status == 204


class TestSuspension:
    async def test_suspend(self, running: Running) -> None:
        """It counts for nothing at once and ends the sessions; lifting it gives everything back."""
        org, [ann, bob] = await cast(running, "owner", "admin")
        answer = await ann.put(members(org, bob, "/suspension"))
        assert (answer.status, answer.json()["suspended"]) == (200, True)
        assert not await is_signed_in(bob)
        await renew(running, bob)
        refused(await bob.get(members(org)), 403)
        assert (await ann.put(members(org, bob, "/suspension"))).status == 200
        assert (await ann.delete(members(org, bob, "/suspension"))).status == 204
        assert (await give(bob, org, await somebody(running), "member")).status == 201
        assert len(await audited(running, "organization.member_suspended", id_of(bob))) == 1
        assert len(await audited(running, "organization.member_unsuspended", id_of(bob))) == 1


class TestAtOnce:
    async def test_two_owners_leave(self, running: Running) -> None:
        for _ in range(5):
            org, pair = await cast(running, "owner", "owner")
            answers = await asyncio.gather(*(one.delete(members(org, one)) for one in pair))
            assert sorted(answer.status for answer in answers) == [204, 409]

    async def test_two_owners_throw_each_other_out(self, running: Running) -> None:
        """The one who came first decides; the other has no say any more."""
        for _ in range(5):
            org, [ann, bob] = await cast(running, "owner", "owner")
            answers = await asyncio.gather(
                ann.delete(members(org, bob)), bob.put(members(org, ann, "/suspension"))
            )
            # Ended sessions, a membership that is gone or suspended: how the loser hears of it may differ.
            assert sum(answer.status in (200, 204) for answer in answers) == 1
            assert max(answer.status for answer in answers) < 500

    async def test_owner_leaves_while_the_other_is_deactivated(self, running: Running) -> None:
        """An organization keeps an owner who can sign in, across memberships and accounts."""
        everywhere = await somebody(running, platform_admin=True)
        for _ in range(5):
            org, [ann, bob] = await cast(running, "owner", "owner")
            answers = await asyncio.gather(
                ann.delete(members(org, ann)),
                everywhere.patch(f"/v1/auth/users/{id_of(bob)}/status", json={"is_active": False}),
            )
            assert sorted(answer.status == 409 for answer in answers) == [False, True], answers

    async def test_many_upserts(self, running: Running) -> None:
        """Many give the same account a role at once: one adds it, all succeed, no row is there twice."""
        org, [ann] = await cast(running, "owner")
        bob = await somebody(running)
        wanted = [("member", "admin", "owner")[n % 3] for n in range(30)]
        answers = await asyncio.gather(*(give(ann, org, bob, role) for role in wanted))
        assert Counter(answer.status for answer in answers) == {201: 1, 200: 29}
        assert list(await roles(ann, org)) == [id_of(ann), id_of(bob)]

    async def test_everything_at_once(self, running: Running) -> None:
        """Changes of one organization from all sides end, none with a server error."""
        org, [ann, bob, eve] = await cast(running, "owner", "owner", "admin")
        root = await somebody(running, platform_admin=True)
        status = {"is_active": False}
        calls = [
            call
            for _ in range(6)
            for call in (
                give(ann, org, eve, "member"),
                give(bob, org, eve, "admin"),
                root.put(members(org, bob, "/suspension")),
                root.delete(members(org, bob, "/suspension")),
                root.patch(members(org, eve, "/account-status"), json=status),
                root.patch(members(org, bob, "/account-status"), json=status),
            )
        ]
        answers = await asyncio.gather(*calls)
        assert max(answer.status for answer in answers) < 500, [a.body for a in answers if a.status >= 500]
        assert "owner" in (await roles(root, org)).values()

    @pytest.mark.asyncio(loop_scope="function")
    async def test_two_owners_leave_by_two_processes(
        self, database_url: str | None, start_platform: Start, tmp_path: Path
    ) -> None:
        env = {"DATABASE_URL": database_url}
        one = await start_platform("tenancy", env=env, home=tmp_path / "home")
        other = await start_platform("tenancy", env=env, home=tmp_path / "home")
        for _ in range(5):
            org, [ann, bob] = await cast(one, "owner", "owner")
            bob.running = other
            answers = await asyncio.gather(ann.delete(members(org, ann)), bob.delete(members(org, bob)))
            assert sorted(answer.status for answer in answers) == [204, 409]
