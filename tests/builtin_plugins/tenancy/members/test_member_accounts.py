"""Account reset and account status by an organization: only inside its tree, never upward (spec 4.4, 5.7)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kernel.sdk import utc_now
from kernel.testing import Actor, Reply, Running
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


def path(org: int, whom: Actor | int, rest: str) -> str:
    user_id = whom if isinstance(whom, int) else id_of(whom)
    return f"/v1/organizations/{org}/members/{user_id}/{rest}"


async def reset(by: Actor, org: int, whom: Actor | int, **body: Any) -> Reply:
    return await by.post(path(org, whom, "reset-password"), json=body or {"mode": "generate"})


async def set_status(by: Actor, org: int, whom: Actor | int, is_active: bool) -> Reply:
    return await by.patch(path(org, whom, "account-status"), json={"is_active": is_active})


async def member(running: Running, org: int, org_role: str = "member", **kind: Any) -> Actor:
    actor = await somebody(running, local=True, **kind)
    await join(running, org, actor, org_role, managed=True)
    return actor


async def is_signed_in(actor: Actor) -> bool:
    return (await actor.get("/v1/organizations/mine")).status == 200


async def hint(by: Actor, org: int, whom: Actor) -> bool:
    answer = await by.get(f"/v1/organizations/{org}/members?q={whom.user['username']}")
    [record] = answer.json()["items"]
    return bool(record["resettable_by_caller"])


class TestReset:
    async def test_generated(self, running: Running) -> None:
        """The password is shown once and works; the old session ends; the log does not contain it."""
        ann = await somebody(running)
        org = await make_org(running, ann)
        bob = await running.user()
        await join(running, org, bob, managed=True)
        assert await hint(ann, org, bob)
        answer = await reset(ann, org, bob)
        assert answer.status == 200
        assert answer.headers["Cache-Control"] == "no-store"
        password = answer.json()["temporary_password"]
        assert not await is_signed_in(bob)
        again = await running.sign_in(bob.user["username"], password)
        assert again.user["must_change_password"] is True
        [entry] = await audited(running, "account.password_reset", id_of(bob))
        assert (entry.actor_id, entry.scope_org_id) == (id_of(ann), org)
        assert password not in repr((entry.before_state, entry.after_state))

    async def test_given(self, running: Running) -> None:
        ann = await somebody(running)
        org = await make_org(running, ann)
        bob = await member(running, org)
        answer = await reset(ann, org, bob, mode="set", new_password="for-the-time-being")
        assert answer.json() == {"temporary_password": "for-the-time-being"}
        assert "body.new_password" in problems(await reset(ann, org, bob, mode="set"))

    async def test_kernel_refusals(self, running: Running) -> None:
        """Not the own account, and none of the identity provider."""
        ann = await somebody(running, local=True)
        org = await make_org(running, ann)
        guest = await somebody(running)
        await join(running, org, guest, managed=True)
        refused(await reset(ann, org, ann), 409)
        refused(await reset(ann, org, guest), 409)
        assert not await hint(ann, org, ann)
        assert not await hint(ann, org, guest)


class TestWho:
    """Both actions, by the answer to each; the hint says the same of the reset."""

    async def verdict(self, by: Actor, org: int, whom: Actor) -> tuple[int, int]:
        statuses = (await set_status(by, org, whom, False)).status, (await reset(by, org, whom)).status
        if statuses[0] == 200:
            assert not await is_signed_in(whom)
        return statuses

    async def test_strangers_are_not_managed(self, running: Running) -> None:
        """Unknown accounts, foreign ones, and those of no organization answer alike."""
        ann = await somebody(running)
        org = await make_org(running, ann)
        foreign = await member(running, await make_org(running))
        answers = [
            await reset(ann, org, one) for one in (UNKNOWN, foreign, await somebody(running, local=True))
        ]
        for answer in answers:
            refused(answer, 403, "not_managed")
        assert len({answer.body for answer in answers}) == 1

    async def test_only_in_the_tree(self, running: Running) -> None:
        """An account that is also above, beside or elsewhere is out of reach, suspended there or not."""
        top_owner, ann = await somebody(running), await somebody(running)
        top = await make_org(running, top_owner)
        org, beside = await make_org(running, ann, parent=top), await make_org(running, parent=top)
        below = await make_org(running, parent=org)
        for other in (top, beside, await make_org(running)):
            bob = await member(running, org)
            await join(running, other, bob)
            await suspend(running, other, bob)
            assert not await hint(ann, org, bob)
            assert await self.verdict(ann, org, bob) == (403, 403)
        inside = await member(running, below)
        await join(running, org, inside)
        assert await hint(ann, org, inside)
        assert await self.verdict(ann, org, inside) == (200, 200)
        deep = await member(running, below)
        assert await self.verdict(top_owner, top, deep) == (200, 200)
        assert (await self.verdict(ann, top, await member(running, top)))[0] == 403

    async def test_platform_admins_keep_to_the_tree(self, running: Running) -> None:
        """Through an organization a Platform Admin reaches its accounts; others by the platform's routes."""
        everywhere = await somebody(running, platform_admin=True)
        org = await make_org(running)
        bob, shared = await member(running, org), await member(running, org)
        await join(running, await make_org(running), shared)
        assert await self.verdict(everywhere, org, shared) == (403, 403)
        assert await hint(everywhere, org, bob)
        assert await self.verdict(everywhere, org, bob) == (200, 200)

    async def test_administrators_need_owners(self, running: Running) -> None:
        """Acting on an administrator needs org.roles.manage; an owner can't be reset, but deactivated."""
        ann = await somebody(running)
        org = await make_org(running, ann)
        admin, peer, owner = [await member(running, org, role) for role in ("admin", "admin", "owner")]
        for whom in (peer, owner):
            assert not await hint(admin, org, whom)
            assert await self.verdict(admin, org, whom) == (403, 403)
        assert await hint(ann, org, peer)
        assert await self.verdict(ann, org, peer) == (200, 200)
        refused(await reset(ann, org, owner), 403, "owner_not_reset")
        assert not await hint(ann, org, owner)
        assert await self.verdict(ann, org, owner) == (200, 403)

    async def test_never_upward(self, running: Running) -> None:
        """Nobody takes over an account that holds more than they do, however it came to that."""
        ann = await somebody(running)
        org = await make_org(running, ann)
        clerk = await member(running, org)
        await give_keys(running, org, clerk, "org.members.manage")
        auditor, former, equal = [await member(running, org) for _ in range(3)]
        await give_keys(running, org, auditor, "org.audit.read")
        await give_keys(running, org, former, "org.audit.read", expires_at=utc_now() - timedelta(seconds=1))
        await give_keys(running, org, equal, "org.members.manage")
        assert not await hint(clerk, org, auditor)
        assert await self.verdict(clerk, org, auditor) == (403, 403)
        for whom in (former, equal):
            assert await hint(clerk, org, whom)
            assert await self.verdict(clerk, org, whom) == (200, 200)

    @pytest.mark.parametrize("kind", [{"role": "admin"}, {"platform_admin": True}])
    async def test_administrators_of_the_instance(self, running: Running, kind: dict[str, Any]) -> None:
        """An organization has no power over those who run the instance; Platform Admins have."""
        ann = await somebody(running)
        org = await make_org(running, ann)
        bob = await member(running, org, **kind)
        spare = await somebody(running, role="admin", platform_admin=True)
        assert not await hint(ann, org, bob)
        assert await self.verdict(ann, org, bob) == (403, 403)
        assert await self.verdict(spare, org, bob) == (200, 200)


class TestStatus:
    async def test_back_and_forth(self, running: Running) -> None:
        """Deactivation holds for the whole instance at once and is undone by the same route."""
        ann = await somebody(running)
        org = await make_org(running, ann)
        bob = await running.user()
        await join(running, org, bob, managed=True)
        answer = await set_status(ann, org, bob, False)
        assert answer.json() == {"user_id": id_of(bob), "is_active": False}
        assert not await is_signed_in(bob)
        login = {"username": bob.user["username"], "password": bob.password}
        refused(await running.anonymous.post("/v1/auth/login", json=login), 403, "account_disabled")
        assert (await set_status(ann, org, bob, True)).json()["is_active"] is True
        assert await is_signed_in(await running.sign_in(bob.user["username"], bob.password))
        [entry] = await audited(running, "account.deactivated", id_of(bob))
        assert (entry.actor_id, entry.scope_org_id) == (id_of(ann), org)

    async def test_own_account(self, running: Running) -> None:
        ann, bob = await somebody(running), await somebody(running)
        org = await make_org(running, ann)
        await join(running, org, bob, "owner")
        refused(await set_status(ann, org, ann, False), 409)

    async def test_last_owner(self, running: Running) -> None:
        """The last active owner of an organization stays active, also against Platform Admins."""
        everywhere = await somebody(running, platform_admin=True)
        ann, bob = await somebody(running), await somebody(running)
        org = await make_org(running)
        await join(running, org, ann, "owner", managed=True)
        await join(running, org, bob, "owner")
        await suspend(running, org, bob)
        status = {"is_active": False}
        refused(await set_status(everywhere, org, ann, False), 409, "last_owner")
        answer = await everywhere.patch(f"/v1/auth/users/{id_of(ann)}/status", json=status)
        refused(answer, 409, "last_owner")
        assert await is_signed_in(ann)
        assert (await everywhere.patch(f"/v1/auth/users/{id_of(bob)}/status", json=status)).status == 200
