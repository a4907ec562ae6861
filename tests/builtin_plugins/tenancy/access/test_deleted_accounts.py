"""Deleting an account that belongs to teams and organizations: who is kept, what goes to whom."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.models import Invite, Membership, RoleAssignment, TeamMember
from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import ask_raw, ingest, make_base, make_pipeline
from tests.builtin_plugins.tenancy.invite_support import invite
from tests.builtin_plugins.tenancy.tenancy_support import (
    give_keys,
    id_of,
    join,
    join_team,
    make_org,
    make_team,
    refused,
    somebody,
)
from tests.fakes.deleting import delete_account, deletion

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

BASES, PIPELINES = "/v1/rag/knowledge-bases", "/v1/rag/pipeline"


def rows_of(actor: Actor) -> Any:
    def count(session: Session) -> int:
        total = 0
        for table in (Membership, TeamMember, RoleAssignment):
            query = select(func.count()).select_from(table).where(table.user_id == id_of(actor))
            total += session.scalar(query) or 0
        to = select(func.count()).select_from(Invite).where(Invite.email == actor.user["email"])
        return total + (session.scalar(to) or 0)

    return count


async def test_the_last_owner(running: Running) -> None:
    """An organization keeps an active owner; the answer names it."""
    ann, ben = await somebody(running), await somebody(running)
    organization = await make_org(running, ann)
    await join(running, organization, ben)
    answer = await deletion(running, ann)
    refused(answer, 409, "last_owner")
    refused(await ann.delete("/v1/auth/me", json={}), 409, "last_owner")
    other = await somebody(running)
    await join(running, organization, other, "owner")
    assert (await deletion(running, ann)).status == 202


async def test_the_last_team_admin(running: Running) -> None:
    """A team keeps an active team_admin, who is also active in the team's organization."""
    ann, ben, owner = [await somebody(running) for _ in range(3)]
    organization = await make_org(running, owner)
    for one in (ann, ben):
        await join(running, organization, one)
    free, bound = await make_team(running, ann), await make_team(running, ann, organization=organization)
    for team in (free, bound):
        await join_team(running, team, ben)
    answer = await deletion(running, ann)
    refused(answer, 409, "last_team_admin")
    assert answer.detail.count("'team-") == 2
    for team in (free, bound):
        assert (
            await ann.patch(f"/v1/teams/{team}/members/{id_of(ben)}", json={"team_role": "team_admin"})
        ).status == 200
    assert (await owner.put(f"/v1/organizations/{organization}/members/{id_of(ben)}/suspension")).status < 300
    answer = await deletion(running, ann)
    refused(answer, 409, "last_team_admin")
    assert answer.detail.count("'team-") == 1
    assert (await owner.delete(f"/v1/teams/{bound}")).status == 204
    assert (await deletion(running, ann)).status == 202


async def test_managers_of_a_managed_account(running: Running) -> None:
    owner, ann = await somebody(running), await somebody(running, local=True)
    organization = await make_org(running, owner)
    await join(running, organization, ann, managed=True)
    refused(await owner.delete(f"/v1/auth/users/{id_of(ann)}"), 403)
    path = f"/v1/organizations/{organization}/members/{id_of(ann)}/account-status"
    assert (await owner.patch(path, json={"is_active": False})).status == 200
    assert (await deletion(running, ann)).status == 202


async def test_memberships_end(running: Running) -> None:
    """Memberships, roles and invites to the address are gone; those of others stay."""
    owner, ann, ben = [await somebody(running) for _ in range(3)]
    organization = await make_org(running, owner)
    team = await make_team(running, owner, organization=organization)
    for one in (ann, ben):
        await join(running, organization, one)
        await give_keys(running, organization, one, "org.members.manage")
        await invite(owner, team, one.user["email"])
    await join_team(running, team, ann)
    await delete_account(running, ann)
    read = running.platform.database.read
    assert (await read(rows_of(ann)), await read(rows_of(ben))) == (0, 3)
    members = (await owner.get(f"/v1/organizations/{organization}/members")).json()["items"]
    assert {one["user_id"] for one in members} == {id_of(owner), id_of(ben)}


async def test_what_a_team_uses(sharing: Running) -> None:
    """Only an heir from the team or organization takes it over, with nothing else changed for the others."""
    ann, ben, eve = [await somebody(sharing) for _ in range(3)]
    team = await make_team(sharing, ben)
    await join_team(sharing, team, ann)
    organization = await make_org(sharing, ben)
    await join(sharing, organization, ann)
    of_team: dict[str, Any] = {"visibility": "team", "team_id": team}
    of_org: dict[str, Any] = {"visibility": "organization", "organization_id": organization}
    model = {"embedding_model": "all-minilm"}
    shared = [await make_base(ann, **model, **kind) for kind in (of_team, of_org, {"visibility": "shared"})]
    private = await make_base(ann, **model)
    await ingest(sharing, ann, shared[0], "mascot.md", "# Mascot\n\nThe mascot is called Quillfeather.")
    pipeline = await make_pipeline(ann, shared[0], **of_team)
    for heir in ({}, {"heir_id": id_of(eve)}):
        answer = await deletion(sharing, ann, **heir)
        refused(answer, 409, "still_shared")
        told = {thing["id"]: thing["shared_with"] for thing in answer.detail["shared"]}
        wanted = {shared[0]: "team", shared[1]: "organization", pipeline: "team"}
        assert told == (wanted if heir else {**wanted, shared[2]: "shared"})
    assert (await ann.get(f"{BASES}/{shared[2]}")).json()["owner_id"] == id_of(ann)
    await delete_account(sharing, ann, heir_id=id_of(ben))
    for base in shared:
        assert (await ben.get(f"{BASES}/{base}")).json()["owner_id"] == id_of(ben)
    assert b"Quillfeather" in (await ask_raw(ben, pipeline, "What is the mascot called?")).body
    assert (await ben.patch(f"{PIPELINES}/{pipeline}", json={"name": "Mascots"})).status == 200
    admin = await somebody(sharing, role="admin")
    assert (await admin.get(f"{BASES}/{private}")).status == 404
    assert (await eve.get(f"{BASES}/{shared[0]}")).status == 404
