"""Decisions by live standings: what is held, where, until when, and that nobody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, update

from builtin_plugins.tenancy.access.decisions import decide
from builtin_plugins.tenancy.models import (
    RoleAssignment,
)
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, SETTINGS_MANAGE, TEAM_MANAGE
from kernel.auth.identity import IDENTITY
from kernel.sdk import Account, Caller, Permission, Principal, utc_now
from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Running, Start
from tests.builtin_plugins.tenancy.tenancy_support import (
    change_membership,
    give_keys,
    id_of,
    join,
    join_team,
    make_org,
    make_team,
    refused,
    somebody,
    suspend,
    write,
)
from tests.fakes.statements import listening

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEY = SETTINGS_MANAGE.key


async def principal(running: Running, actor: Actor) -> Principal:
    claims = running.platform.resource(TOKENS).verify(actor.token or "")
    return await running.platform.resource(IDENTITY).principal_of(claims)


async def holds(running: Running, actor: Actor, place: int, key: Permission = SETTINGS_MANAGE) -> bool:
    return await decide(Caller(running.platform, await principal(running, actor)), key, place)


@contextmanager
def statements() -> Iterator[list[str]]:
    texts: list[str] = []

    def listen(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        texts.append(statement)

    with listening(listen):
        yield texts


async def test_expiry_counts_while_remembered(running: Running) -> None:
    """A role ends when it ends, not when somebody looks it up again."""
    ann = await somebody(running)
    org = await make_org(running)
    await join(running, org, ann)
    soon = utc_now() + timedelta(seconds=1.5)
    await give_keys(running, org, ann, KEY, expires_at=soon)
    assert await holds(running, ann, org)
    await asyncio.sleep((soon - utc_now()).total_seconds() + 0.01)
    assert not await holds(running, ann, org)


async def test_changes_count_at_once(running: Running) -> None:
    """Right after the commit, in the process that made the change."""
    ann = await somebody(running)
    org = await make_org(running)
    await join(running, org, ann, "admin")
    assert await holds(running, ann, org)
    await suspend(running, org, ann)
    assert not await holds(running, ann, org)
    await give_keys(running, org, ann, KEY)
    assert not await holds(running, ann, org), "an assigned role counts for nothing while suspended"
    await change_membership(running, org, ann, suspended_at=None, org_role="member")
    assert await holds(running, ann, org)
    await write(running, delete(RoleAssignment).where(RoleAssignment.user_id == id_of(ann)), about=[ann])
    assert not await holds(running, ann, org)


async def test_platform_admins_are_looked_up(running: Running) -> None:
    """The flag counts as the database has it, whatever the process remembers."""
    ann = await somebody(running, platform_admin=True)
    org = await make_org(running)
    known = await principal(running, ann)
    assert await decide(Caller(running.platform, known), MEMBERS_MANAGE, org)
    await write(running, update(Account).where(Account.id == id_of(ann)).values(platform_admin=False))
    assert not await decide(Caller(running.platform, known), MEMBERS_MANAGE, org)


async def test_instance_administrators_only_where_it_is_said(running: Running) -> None:
    root = await principal(running, await somebody(running, role="admin"))
    org = await make_org(running)
    assert not await decide(Caller(running.platform, root), MEMBERS_MANAGE, org)
    assert await decide(Caller(running.platform, root), MEMBERS_MANAGE, org, or_admin=True)


async def test_services_hold_nothing(running: Running) -> None:
    org = await make_org(running)
    service = Principal("service", "service:x", username="x", role="service")
    assert not await decide(Caller(running.platform, service), MEMBERS_MANAGE, org, or_admin=True)


async def test_teams(running: Running) -> None:
    """Its admins, and who manages the members of its organization or above; unknown ones are 404."""
    ann, boss, clerk, plain = [await somebody(running) for _ in range(4)]
    top = await make_org(running, boss)
    org = await make_org(running, parent=top)
    await join(running, org, clerk)
    await give_keys(running, org, clerk, MEMBERS_MANAGE.key)
    await join(running, org, plain)
    await join(running, org, ann)
    team, free = await make_team(running, ann, organization=org), await make_team(running, ann)
    await join_team(running, team, plain)
    for actor, wanted in ((ann, True), (boss, True), (clerk, True), (plain, False)):
        assert await holds(running, actor, team, TEAM_MANAGE) is wanted
        assert await holds(running, actor, free, TEAM_MANAGE) is (actor is ann)
    refused(await plain.patch(f"/v1/teams/{team}", json={"description": "x"}), 403)
    refused(await plain.patch(f"/v1/teams/{2**31 - 1}", json={"description": "x"}), 404, "team_not_found")
    await suspend(running, org, ann)
    assert not await holds(running, ann, team, TEAM_MANAGE)
    assert await holds(running, ann, free, TEAM_MANAGE)


async def test_warm_decisions_ask_no_database(running: Running) -> None:
    """Granted or refused, a decision on a member is made from memory, which is renewed now and then."""
    ann, bob = await somebody(running), await somebody(running)
    org = await make_org(running, ann)
    below = await make_org(running, parent=org)
    await join(running, org, bob)
    asked = [
        (await principal(running, actor), place, wanted)
        for actor, place, wanted in ((ann, org, True), (ann, below, True), (bob, org, False))
    ]
    for known, place, wanted in asked:
        assert await decide(Caller(running.platform, known), SETTINGS_MANAGE, place) is wanted
    with statements() as seen:
        for _ in range(200):
            for known, place, _wanted in asked:
                await decide(Caller(running.platform, known), SETTINGS_MANAGE, place)
    assert len([one for one in seen if "tenancy_" in one or "kernel_account" in one]) < 60, seen[:5]


async def test_list_of_users(running: Running) -> None:
    """Platform Admins see the memberships of accounts, and list the accounts of an organization."""
    everywhere = await somebody(running, platform_admin=True)
    ann, bob = await somebody(running), await somebody(running)
    org = await make_org(running, ann)
    second = await make_org(running)
    for one in (org, second):
        await join(running, one, bob)
    answer = (await everywhere.get(f"/v1/auth/users?org_id={org}")).json()
    found = {user["id"]: user["organizations"] for user in answer["items"]}
    assert found.keys() == {id_of(ann), id_of(bob)}
    assert [(one["id"], one["role"]) for one in found[id_of(bob)]] == [(org, "member"), (second, "member")]
    record = (await ann.get(f"/v1/organizations/{org}")).json()
    assert found[id_of(ann)] == [{"id": org, "name": record["name"], "slug": record["slug"], "role": "owner"}]


async def test_audit_log(running: Running) -> None:
    """Who may read it in an organization reads it of those below as well, and of no other."""
    boss, ann, plain = [await somebody(running) for _ in range(3)]
    top = await make_org(running, boss)
    org = await make_org(running, ann, parent=top)
    await join(running, org, plain)
    newcomer = await somebody(running)
    body = {"user_id": id_of(newcomer), "org_role": "member"}
    assert (await ann.post(f"/v1/organizations/{org}/members", json=body)).status == 201
    query = f"/v1/audit?action=organization.member_added&target_id={id_of(newcomer)}"
    everywhere = await somebody(running, platform_admin=True)
    for reader in (boss, ann, everywhere):
        for extra in ("", f"&org_id={org}"):
            assert (await reader.get(query + extra)).json()["total"] == 1
    assert (await boss.get(f"{query}&org_id={top}")).json()["total"] == 1
    assert (await everywhere.get(f"{query}&org_id={await make_org(running)}")).json()["total"] == 0
    stranger = await somebody(running)
    await make_org(running, stranger)
    for actor in (plain, stranger):
        for extra in ("", f"&org_id={org}"):
            answer = await actor.get(query + extra)
            assert answer.status == 403 or answer.json()["total"] == 0


@pytest.mark.asyncio(loop_scope="function")
async def test_another_process_hears_of_it(
    database_url: str | None, start_platform: Start, tmp_path: Path
) -> None:
    """Two processes on one database: what one changes counts in the other within a moment."""
    home = tmp_path / "home"
    one = await start_platform("tenancy", env={"DATABASE_URL": database_url}, home=home)
    other = await start_platform("tenancy", env={"DATABASE_URL": database_url}, home=home)
    ann = await somebody(one)
    org = await make_org(one)
    await join(one, org, ann, "admin")
    assert await holds(other, ann, org)
    await suspend(one, org, ann)
    async with asyncio.timeout(10):
        while await holds(other, ann, org):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
