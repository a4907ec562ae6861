"""Rows shared with teams and organizations follow memberships as they are now, whatever a token says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import ask_raw, ingest, make_base, make_pipeline
from tests.builtin_plugins.tenancy.tenancy_support import (
    claims,
    id_of,
    join_team,
    make_team,
    refused,
    somebody,
)

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

BASES, PIPELINES = "/v1/rag/knowledge-bases", "/v1/rag/pipeline"
WORD = b"Quillfeather"


@dataclass
class Shelf:
    """A knowledge base with a document and a pipeline over it, shared with a team or an organization."""

    base: str
    pipeline: str

    async def seen_by(self, actor: Actor) -> bool:
        """Whether the actor sees it, the same in every way: read, list, search."""
        answer = await ask_raw(actor, self.pipeline, "Where does the mascot live?")
        bases, pipelines = await actor.get(f"{BASES}?limit=500"), await actor.get(f"{PIPELINES}?limit=500")
        ways = {
            "base": (await actor.get(f"{BASES}/{self.base}")).status == 200,
            "pipeline": (await actor.get(f"{PIPELINES}/{self.pipeline}")).status == 200,
            "answer": WORD in answer.body,
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
    return await somebody(sharing)


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


async def test_administrators_share_only_where_they_belong(sharing: Running) -> None:
    """An instance administrator sees everything, and shares with a team only as its member."""
    admin, stranger = await somebody(sharing, role="admin"), await somebody(sharing)
    team = await make_team(sharing, stranger)
    foreign = {"name": "x", "visibility": "team", "team_id": team}
    refused(await admin.post(BASES, json=foreign), 403, "not_in_team")
    await join_team(sharing, team, admin)
    assert (await admin.post(BASES, json=foreign)).status == 200
