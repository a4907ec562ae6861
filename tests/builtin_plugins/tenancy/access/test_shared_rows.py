"""Rows shared with teams and organizations follow memberships as they are now, whatever a token says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from kernel.sdk import Account
from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import ask_raw, ingest, make_base, make_pipeline
from tests.builtin_plugins.tenancy.tenancy_support import (
    claims,
    id_of,
    join,
    join_team,
    make_org,
    make_team,
    refused,
    somebody,
    suspend,
)

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.each_database]

BASES, PIPELINES = "/v1/rag/knowledge-bases", "/v1/rag/pipeline"
WORD = b"Quillfeather"


@dataclass
class Shelf:
    """A knowledge base with a document and a pipeline over it, shared with a team or an organization."""

    base: str
    pipeline: str

    async def seen_by(self, actor: Actor) -> bool:
        """Whether the actor sees it, the same in every way: read, list, search."""
        asked = await ask_raw(actor, self.pipeline, "Where does the mascot live?")
        bases, pipelines = await actor.get(f"{BASES}?limit=500"), await actor.get(f"{PIPELINES}?limit=500")
        ways = {
            "base": (await actor.get(f"{BASES}/{self.base}")).status == 200,
            "pipeline": (await actor.get(f"{PIPELINES}/{self.pipeline}")).status == 200,
            "answer": WORD in asked.body,
            "listed": self.base.encode() in bases.body,
            "pipelines": self.pipeline.encode() in pipelines.body,
        }
        assert len(set(ways.values())) == 1, ways
        return ways["base"]


async def make_shelf(running: Running, owner: Actor, **sharing: Any) -> Shelf:
    base = await make_base(owner, **sharing)
    await ingest(running, owner, base, "mascot.md", "The mascot Quillfeather lives in the tower.")
    return Shelf(base, await make_pipeline(owner, base, **sharing))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def owner(sharing: Running) -> Actor:
    """Somebody who shares."""
    return await somebody(sharing)


async def test_team_members_come_and_go(sharing: Running, owner: Actor) -> None:
    """One token sees what is shared with the team from the moment of joining to that of leaving."""
    team = await make_team(sharing, owner)
    shelf = await make_shelf(sharing, owner, visibility="team", team_id=team)
    mate = await somebody(sharing)
    assert not await shelf.seen_by(mate)
    body = {"user_id": id_of(mate), "team_role": "member"}
    assert (await owner.post(f"/v1/teams/{team}/members", json=body)).status == 201
    assert await shelf.seen_by(mate)
    assert (await owner.delete(f"/v1/teams/{team}/members/{id_of(mate)}")).status == 204
    assert not await shelf.seen_by(mate)
    assert await shelf.seen_by(owner)


async def test_claims_of_a_token_count_for_nothing(sharing: Running, owner: Actor) -> None:
    """A token that still names the team neither reads nor shares once its bearer has left."""
    team = await make_team(sharing, owner)
    shelf = await make_shelf(sharing, owner, visibility="team", team_id=team)
    mate = await somebody(sharing)
    await join_team(sharing, team, mate)
    assert (await claims(mate))["teams"] == [team]
    assert (await owner.delete(f"/v1/teams/{team}/members/{id_of(mate)}")).status == 204
    assert not await shelf.seen_by(mate)
    shared = {"name": "x", "visibility": "team", "team_id": team}
    refused(await mate.post(BASES, json=shared), 403, "not_in_team")
    own = await make_base(mate)
    refused(await mate.patch(f"{BASES}/{own}", json=shared), 403, "not_in_team")
    body = {**shared, "knowledge_base_ids": [own]}
    refused(await mate.post(PIPELINES, json=body), 403, "not_in_team")
    pipeline = await make_pipeline(mate, own)
    refused(await mate.patch(f"{PIPELINES}/{pipeline}", json=shared), 403, "not_in_team")


async def test_a_deleted_team_shares_nothing(sharing: Running, owner: Actor) -> None:
    """What was shared with it is its owner's alone."""
    team = await make_team(sharing, owner)
    shelf = await make_shelf(sharing, owner, visibility="team", team_id=team)
    mate = await somebody(sharing)
    await join_team(sharing, team, mate)
    assert await shelf.seen_by(mate)
    assert (await owner.delete(f"/v1/teams/{team}")).status == 204
    assert not await shelf.seen_by(mate)
    assert await shelf.seen_by(owner)


async def test_an_organization_shows_its_own_members(sharing: Running, owner: Actor) -> None:
    """Not those above it, not those below it, whatever they may manage there."""
    top, low = await somebody(sharing), await somebody(sharing)
    above = await make_org(sharing, top)
    middle = await make_org(sharing, owner, parent=above)
    below = await make_org(sharing, low, parent=middle)
    shelf = await make_shelf(sharing, owner, visibility="organization", organization_id=middle)
    mate, child, boss = [await somebody(sharing) for _ in range(3)]
    for organization, actor, role in (
        (middle, mate, "member"),
        (below, child, "admin"),
        (above, boss, "admin"),
    ):
        await join(sharing, organization, actor, role)
    assert [await shelf.seen_by(actor) for actor in (owner, mate)] == [True, True]
    assert [await shelf.seen_by(actor) for actor in (top, low, child, boss)] == [False] * 4


async def test_suspension_hides_at_once(sharing: Running, owner: Actor) -> None:
    """What is shared with the organization and with its own teams; what is shared with others stays seen."""
    organization = await make_org(sharing, owner)
    mate = await somebody(sharing)
    await join(sharing, organization, mate)
    inner = await make_team(sharing, owner, organization=organization)
    outer = await make_team(sharing, owner)
    for team in (inner, outer):
        await join_team(sharing, team, mate)
    shelves = [
        await make_shelf(sharing, owner, visibility="organization", organization_id=organization),
        await make_shelf(sharing, owner, visibility="team", team_id=inner),
        await make_shelf(sharing, owner, visibility="team", team_id=outer),
    ]
    assert [await shelf.seen_by(mate) for shelf in shelves] == [True, True, True]
    await suspend(sharing, organization, mate)
    assert [await shelf.seen_by(mate) for shelf in shelves] == [False, False, True]


async def test_leaving_the_organization_hides_its_teams(sharing: Running, owner: Actor) -> None:
    """A removed member is out of the organization's own teams as well."""
    organization = await make_org(sharing, owner)
    mate = await somebody(sharing)
    await join(sharing, organization, mate)
    team = await make_team(sharing, owner, organization=organization)
    await join_team(sharing, team, mate)
    shelf = await make_shelf(sharing, owner, visibility="team", team_id=team)
    assert await shelf.seen_by(mate)
    path = f"/v1/organizations/{organization}/members/{id_of(mate)}"
    assert (await owner.delete(path)).status == 204
    mate.token = sharing.platform.resource(TOKENS).mint(await account_of(sharing, mate), {})
    assert not await shelf.seen_by(mate)


async def account_of(running: Running, actor: Actor) -> Account:
    return await running.platform.database.read(lambda session: session.get_one(Account, id_of(actor)))


async def test_administrators_share_only_where_they_belong(sharing: Running) -> None:
    """An instance administrator sees everything, and shares with a team only as its member."""
    admin, stranger = await somebody(sharing, role="admin"), await somebody(sharing)
    team = await make_team(sharing, stranger)
    foreign = {"name": "x", "visibility": "team", "team_id": team}
    refused(await admin.post(BASES, json=foreign), 403, "not_in_team")
    await join_team(sharing, team, admin)
    assert (await admin.post(BASES, json=foreign)).status == 200
