"""An organization manages only the accounts that agreed to it (spec 4.4)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kernel.sdk import Account
from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Reply, Running
from tests.builtin_plugins.tenancy.invite_support import by_token, invite_to_org
from tests.builtin_plugins.tenancy.tenancy_support import (
    audited,
    fresh,
    id_of,
    join,
    make_org,
    read,
    refused,
    somebody,
    suspend,
    write,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

UNKNOWN = 2**31 - 1


async def add(manager: Actor, org: int, whom: Actor) -> None:
    body = {"user_id": id_of(whom), "org_role": "member"}
    assert (await manager.post(f"/v1/organizations/{org}/members", json=body)).status == 201


async def redeem(manager: Actor, org: int, whom: Actor) -> None:
    """An account joins by an invite and agrees to be managed."""
    issued = await invite_to_org(manager, org, whom.user["email"])
    answer = await whom.post(by_token(issued, "/redeem"), json={"accept_management": True})
    assert (answer.status, answer.json()["managed"]) == (200, True)


async def accept(actor: Actor, org: int) -> Reply:
    return await actor.post(f"/v1/organizations/{org}/management")


async def withdraw(actor: Actor, org: int) -> Reply:
    return await actor.delete(f"/v1/organizations/{org}/management")


async def reset(by: Actor, org: int, whom: Actor) -> Reply:
    path = f"/v1/organizations/{org}/members/{id_of(whom)}/reset-password"
    return await by.post(path, json={"mode": "generate"})


async def deactivate(by: Actor, org: int, whom: Actor) -> Reply:
    path = f"/v1/organizations/{org}/members/{id_of(whom)}/account-status"
    return await by.patch(path, json={"is_active": False})


async def management_of(by: Actor, org: int, whom: Actor) -> tuple[bool, bool, bool]:
    """Of a member as the manager sees it: managed, the membership changeable, the password resettable."""
    answer = await by.get(f"/v1/organizations/{org}/members?q={whom.user['username']}")
    [record] = answer.json()["items"]
    return record["managed"], record["managed_by_caller"], record["resettable_by_caller"]


async def is_managed(actor: Actor, org: int) -> bool:
    mine = (await actor.get("/v1/organizations/mine")).json()
    return bool(next(one["managed"] for one in mine if one["id"] == org))


async def house(running: Running, **kind: Any) -> tuple[Actor, int, Actor]:
    """An owner, the organization, and an account with a password."""
    ann = await somebody(running)
    return ann, await make_org(running, ann), await somebody(running, local=True, **kind)


async def test_added_without_consent(running: Running) -> None:
    """A manager who adds an account makes it a member, and has no power over the account."""
    ann, org, bob = await house(running)
    await add(ann, org, bob)
    assert await management_of(ann, org, bob) == (False, True, False)
    refused(await reset(ann, org, bob), 403, "not_managed")
    refused(await deactivate(ann, org, bob), 403, "not_managed")
    assert not await is_managed(bob, org)


@pytest.mark.parametrize("body", [None, {}, {"accept_management": False}])
async def test_redeeming_alone_is_no_consent(running: Running, body: dict[str, bool] | None) -> None:
    """An account that existed before its invite joins by it, and remains its owner's; preview and answer
    say so.
    """
    ann, org, bob = await house(running)
    issued = await invite_to_org(ann, org, bob.user["email"])
    preview = (await bob.get(by_token(issued))).json()
    assert preview["managed_by_default"] is False and "reset the password" in preview["management"]
    answer = await bob.post(by_token(issued, "/redeem"), json=body)
    assert (answer.status, answer.json()["managed"]) == (200, False)
    assert not await is_managed(bob, org)
    refused(await reset(ann, org, bob), 403, "not_managed")
    refused(await deactivate(ann, org, bob), 403, "not_managed")
    [entry] = await audited(running, "organization.member_added", id_of(bob))
    assert entry.after_state is not None and entry.after_state["managed"] is False


async def test_an_account_made_for_an_invite(running: Running) -> None:
    ann, org, _ = await house(running)
    for declines in (False, True):
        name = fresh("new")
        issued = await invite_to_org(ann, org, f"{name}@example.org")
        assert (await running.anonymous.get(by_token(issued))).json()["managed_by_default"] is True
        new = await running.user(name)
        assert (await new.get(by_token(issued))).json()["managed_by_default"] is True
        body = {"accept_management": False} if declines else None
        answer = await new.post(by_token(issued, "/redeem"), json=body)
        assert answer.json()["managed"] is not declines
        assert await is_managed(new, org) is not declines


async def test_redeeming_with_consent(running: Running) -> None:
    """Whoever agrees while joining is managed; so it is in the audit log."""
    ann, org, bob = await house(running)
    await redeem(ann, org, bob)
    assert await is_managed(bob, org)
    assert await management_of(ann, org, bob) == (True, True, True)
    [entry] = await audited(running, "organization.member_added", id_of(bob))
    assert entry.after_state is not None and entry.after_state["managed"] is True
    assert (await reset(ann, org, bob)).status == 200


async def test_accepting_and_taking_back(running: Running) -> None:
    """The account itself lets the organization manage it, and takes that back; both are audited once."""
    ann, org, bob = await house(running)
    await add(ann, org, bob)
    first = await accept(bob, org)
    assert first.status == 200
    assert first.json()["organization_id"] == org
    assert (await accept(bob, org)).json() == first.json()
    assert await management_of(ann, org, bob) == (True, True, True)
    assert (await withdraw(bob, org)).status == 204
    assert (await withdraw(bob, org)).status == 204
    assert await management_of(ann, org, bob) == (False, True, False)
    refused(await reset(ann, org, bob), 403, "not_managed")
    for action, before, after in (("accepted", False, True), ("withdrawn", True, False)):
        [entry] = await audited(running, f"organization.management_{action}", id_of(bob))
        assert (entry.actor_id, entry.scope_org_id) == (id_of(bob), org)
        assert entry.before_state == {"organization_id": org, "managed": before}
        assert entry.after_state == {"organization_id": org, "managed": after}


async def test_nobody_accepts_for_another(running: Running) -> None:
    """Strangers, unknown organizations and suspended members answer the same 403; no manager may do it."""
    ann, org, bob = await house(running)
    await add(ann, org, bob)
    await suspend(running, org, bob)
    answers = [await accept(actor, org) for actor in (bob, await somebody(running))]
    answers.append(await accept(bob, UNKNOWN))
    answers.append(await withdraw(await somebody(running), org))
    for answer in answers:
        refused(answer, 403, "not_a_member")
    assert len({answer.body for answer in answers}) == 1
    assert (await accept(ann, org)).status == 200
    assert await management_of(ann, org, bob) == (False, True, False), (
        "the owner's consent is the owner's own"
    )
    service = Actor(running, running.platform.resource(TOKENS).mint_service("tests", 1))
    refused(await accept(service, org), 403, "not_a_member")
    refused(await accept(running.anonymous, org), 401)


async def test_the_way_out(running: Running) -> None:
    """An account that signs in only by what the organization gave it chooses a password of its own first."""
    ann, org, _ = await house(running)
    bob = await running.user()
    await redeem(ann, org, bob)
    given = (await reset(ann, org, bob)).json()["temporary_password"]
    bob = await running.sign_in(bob.user["username"], given)
    refused(await withdraw(bob, org), 409, "only_way_in")
    other = await make_org(running)
    await join(running, other, bob)
    await suspend(running, other, bob)
    refused(await withdraw(bob, org), 409, "only_way_in")
    body = {"current_password": given, "new_password": "one of my own choosing"}
    assert (await bob.post("/v1/auth/change-password", json=body)).status in (200, 204)
    bob = await running.sign_in(bob.user["username"], "one of my own choosing")
    assert (await withdraw(bob, org)).status == 204


async def test_the_way_out_for_members_of_others(running: Running) -> None:
    """A member of another organization takes it back at any time, and so does an external account."""
    _ann, org, _ = await house(running)
    guest = await somebody(running)
    await join(running, org, guest, managed=True)
    refused(await withdraw(guest, org), 409, "only_way_in")
    await join(running, await make_org(running), guest)
    assert (await withdraw(guest, org)).status == 204
    external = await somebody(running)
    await join(running, org, external, managed=True)

    account = await read(running, lambda session: session.get_one(Account, id_of(external)))
    account.sso_subject, account.sso_issuer = external.user["username"], "https://id.example"
    await write(running, lambda unit: unit.session.merge(account))
    assert (await withdraw(external, org)).status == 204


async def test_consent_ends_with_the_membership(running: Running) -> None:
    """Who is removed and added again has agreed to nothing."""
    ann, org, bob = await house(running)
    await redeem(ann, org, bob)
    path = f"/v1/organizations/{org}/members/{id_of(bob)}"
    assert (await ann.delete(path)).status == 204
    bob.token = running.platform.resource(TOKENS).mint(
        await read(running, lambda session: session.get_one(Account, id_of(bob))), {}
    )
    await add(ann, org, bob)
    assert not await is_managed(bob, org)
    refused(await reset(ann, org, bob), 403, "not_managed")


async def test_consent_reaches_upward(running: Running) -> None:
    """Those above an organization manage its accounts; those below one manage none of it."""
    boss = await somebody(running)
    top = await make_org(running, boss)
    ann, bob, carl = await somebody(running), *[await somebody(running, local=True) for _ in range(2)]
    org = await make_org(running, ann, parent=top)
    await redeem(ann, org, bob)
    assert (await reset(boss, top, bob)).status == 200
    await redeem(boss, top, carl)
    await add(boss, org, carl)
    refused(await reset(ann, org, carl), 403, "not_managed")
    assert (await reset(boss, top, carl)).status == 200


async def test_an_import_makes_members_only(running: Running) -> None:
    """A bundle adds accounts that are there already: it speaks for nobody's consent."""
    ann, org, bob = await house(running)
    bundle = {
        "format": "platform.organization",
        "version": 1,
        "organization": {"name": "x", "slug": "x"},
        "members": [{"email": bob.user["email"]}],
    }
    answer = await ann.post(f"/v1/organizations/{org}/import", json={"bundle": bundle})
    assert [one["name"] for one in answer.json()["created"]] == [bob.user["email"]]
    assert not await is_managed(bob, org)


async def test_a_race_of_reset_and_withdrawal(running: Running) -> None:
    """A reset that succeeds came before the withdrawal, which finds the session ended; none comes after."""
    ann, org, bob = await house(running)
    await redeem(ann, org, bob)
    withdrawn, answer = await asyncio.gather(withdraw(bob, org), reset(ann, org, bob))
    if answer.status == 200:
        assert withdrawn.status in (401, 409), (
            "the reset ended the session, or left a password of the organization"
        )
    else:
        refused(answer, 403, "not_managed")
    assert (await reset(ann, org, bob)).status == (200 if withdrawn.status != 204 else 403)
