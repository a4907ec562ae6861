"""Bundles made by hand to attack: each is refused with 422 (a huge one with 413) and changes nothing."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import func, select

from builtin_plugins.rag.models import KnowledgeBase, Pipeline, PipelineSource
from builtin_plugins.tenancy.models import Membership, RoleAssignment, TeamMember
from kernel.auth.models import AuditEntry
from kernel.testing import Reply, Running
from tests.builtin_plugins.rag.rag_support import make_base
from tests.builtin_plugins.tenancy.tenancy_support import problems, somebody
from tests.builtin_plugins.tenancy.transfer_support import KINDS, Home, Kind, bundle, make_home

pytestmark = pytest.mark.asyncio(loop_scope="session")

TABLES = (KnowledgeBase, Pipeline, PipelineSource, TeamMember, Membership, RoleAssignment, AuditEntry)
BASE = bundle("team")["knowledge_bases"][0]
PIPELINE = bundle("team")["pipelines"][0]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def homes(sharing: Running) -> dict[str, Home]:
    """A team and an organization that nobody gets into."""
    return {kind: await make_home(sharing, kind) for kind in KINDS}


async def rows(running: Running) -> list[int]:
    """How many rows there are of all that an import may touch."""
    return await running.platform.database.read(
        lambda session: [int(session.scalar(select(func.count()).select_from(one)) or 0) for one in TABLES]
    )


async def refused_whole(home: Home, sent: Any, **options: Any) -> dict[str, str]:
    """Hold a bundle to be refused with 422, without a trace; returns the problems by their places."""
    before = await rows(home.running)
    problems_by_place = problems(await home.send(sent, **options))
    assert await rows(home.running) == before
    return problems_by_place


def base(**fields: Any) -> dict[str, Any]:
    return {"knowledge_bases": [{**BASE, **fields}], "pipelines": []}


def pipeline(**fields: Any) -> dict[str, Any]:
    return {"pipelines": [{**PIPELINE, **fields}]}


HEADS = [
    ({"format": "platform.galaxy"}, "format"),
    ({"format": None}, "format"),
    ({"format": ["platform.team"]}, "format"),
    ({"version": 2}, "version"),
    ({"version": "1"}, "version"),
    ({"version": True}, "version"),
    ({"version": 1.5}, "version"),
    ({"exported_at": "yesterday"}, "exported_at"),
    ({"members": {"email": "a@example.org"}}, "members"),
    ({"members": ["a@example.org"]}, "members.0"),
    ({"members": [{"email": 5}]}, "members.0.email"),
    ({"members": [{"email": "a@example.org", "user_id": 1}]}, "members.0.user_id"),
    ({"members": [{"email": "a@example.org", "platform_admin": True}]}, "members.0.platform_admin"),
    ({"members": [{"email": "a@example.org"}, {"email": "A@EXAMPLE.org"}]}, "members"),
    ({"members": [{"email": "x" * 400}]}, "members.0.email"),
    ({"members": [None]}, "members.0"),
    ({"id": 1}, "id"),
    ({"owner_id": 1}, "owner_id"),
    ({"organization_id": 1}, "organization_id"),
    ({"__proto__": {"is_admin": True}}, "__proto__"),
    ({"constructor": {"prototype": {}}}, "constructor"),
    ({"__class__": "Account"}, "__class__"),
    ({"model_extra": {}}, "model_extra"),
    ({"roles": [{"name": "owner", "keys": ["org.roles.manage"]}]}, "roles"),
    ({"invites": []}, "invites"),
    ({"x" * 5000: 1}, "x" * 80),
]

ROWS = [
    (base(id="00000000-0000-4000-8000-000000000000"), "knowledge_bases.0.id"),
    (base(owner_id=1), "knowledge_bases.0.owner_id"),
    (base(visibility="shared"), "knowledge_bases.0.visibility"),
    (base(team_id=1), "knowledge_bases.0.team_id"),
    (base(organization_id=1), "knowledge_bases.0.organization_id"),
    (base(documents=[{"text": "x"}]), "knowledge_bases.0.documents"),
    (base(created_at="2020-01-01T00:00:00Z"), "knowledge_bases.0.created_at"),
    (base(__class__="KnowledgeBase"), "knowledge_bases.0.__class__"),
    (base(name=""), "knowledge_bases.0.name"),
    (base(name="   "), "knowledge_bases.0.name"),
    (base(name="x" * 256), "knowledge_bases.0.name"),
    (base(name={"$ne": None}), "knowledge_bases.0.name"),
    (base(name=["a"]), "knowledge_bases.0.name"),
    (base(description="x" * 10_001), "knowledge_bases.0.description"),
    (base(chunk_size="512"), "knowledge_bases.0.chunk_size"),
    (base(chunk_size=True), "knowledge_bases.0.chunk_size"),
    (base(chunk_size=0), "knowledge_bases.0.chunk_size"),
    (base(chunk_size=2**40), "knowledge_bases.0.chunk_size"),
    (base(chunk_overlap=512), "knowledge_bases.0"),
    (base(chunk_overlap=-1), "knowledge_bases.0.chunk_overlap"),
    (base(embedding_model=None), "knowledge_bases.0.embedding_model"),
    (base(llm_model=5), "knowledge_bases.0.llm_model"),
    ({"knowledge_bases": {"0": BASE}, "pipelines": []}, "knowledge_bases"),
    ({"knowledge_bases": None, "pipelines": []}, "knowledge_bases"),
    ({"knowledge_bases": [BASE, BASE], "pipelines": []}, ""),
    ({"knowledge_bases": [BASE, {**BASE, "name": " Atlas "}], "pipelines": []}, ""),
    ({"pipelines": [PIPELINE, PIPELINE]}, ""),
    (pipeline(knowledge_bases=["Atlas", "Atlas"]), ""),
    (pipeline(knowledge_bases=["Elsewhere"]), ""),
    (pipeline(knowledge_bases=[5]), "pipelines.0.knowledge_bases.0"),
    (pipeline(knowledge_bases=["Atlas"] * 101), "pipelines.0.knowledge_bases"),
    (pipeline(knowledge_base_ids=["00000000-0000-4000-8000-000000000000"]), "pipelines.0.knowledge_base_ids"),
    (pipeline(owner_id=1), "pipelines.0.owner_id"),
    (pipeline(visibility="shared"), "pipelines.0.visibility"),
    (pipeline(retrieval_config={"top_k": 10**9}), "pipelines.0.retrieval_config.top_k"),
    (pipeline(retrieval_config={"hybrid": "yes"}), "pipelines.0.retrieval_config.hybrid"),
    (pipeline(retrieval_config={"hook": "os.system"}), "pipelines.0.retrieval_config.hook"),
    (
        pipeline(generation_config={"base_url": "http://169.254.169.254"}),
        "pipelines.0.generation_config.base_url",
    ),
    (pipeline(generation_config={"temperature": "hot"}), "pipelines.0.generation_config.temperature"),
    (
        {"knowledge_bases": [{**BASE, "name": f"b{n}"} for n in range(2001)], "pipelines": []},
        "knowledge_bases",
    ),
    ({"pipelines": [{**PIPELINE, "name": f"p{n}"} for n in range(2001)]}, "pipelines"),
    (
        {
            "knowledge_bases": [{**BASE, "name": f"b{n}"} for n in range(100)],
            "pipelines": [
                {**PIPELINE, "name": f"p{n}", "knowledge_bases": [f"b{m}" for m in range(100)]}
                for n in range(201)
            ],
        },
        "",
    ),
    (
        {
            "knowledge_bases": [{**BASE, "name": f"b{n}", "embedding_model": f"m{n}"} for n in range(17)],
            "pipelines": [],
        },
        "",
    ),
]


def named(fields: object) -> str:
    return json.dumps(fields)[:60]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("fields", "place"), HEADS, ids=[named(fields) for fields, _ in HEADS])
async def test_heads(homes: dict[str, Home], kind: Kind, fields: dict[str, Any], place: str) -> None:
    found = await refused_whole(homes[kind], bundle(kind, **fields))
    assert f"body.bundle.{place}" in found


@pytest.mark.parametrize(("fields", "place"), ROWS, ids=[named(fields) for fields, _ in ROWS])
async def test_rows(homes: dict[str, Home], fields: dict[str, Any], place: str) -> None:
    """Whatever is wrong with a knowledge base or a pipeline is refused where it stands."""
    found = await refused_whole(homes["team"], bundle("team", **fields))
    assert f"body.bundle.{place}".rstrip(".") in found


@pytest.mark.parametrize("kind", KINDS)
async def test_the_other_kind(homes: dict[str, Home], kind: Kind) -> None:
    """A team's bundle goes into no organization and the other way round, however it is dressed up."""
    other = KINDS[1 - KINDS.index(kind)]
    assert "body.bundle.format" in await refused_whole(homes[kind], bundle(other))
    dressed = {**bundle(other), "format": f"platform.{kind}"}
    assert f"body.bundle.{kind}" in await refused_whole(homes[kind], dressed)


@pytest.mark.parametrize("sent", [None, [], "bundle", 5, {}, [{}]])
async def test_no_bundle_at_all(homes: dict[str, Home], sent: Any) -> None:
    await refused_whole(homes["team"], sent)


async def test_a_knowledge_base_of_somebody_else(sharing: Running, homes: dict[str, Home]) -> None:
    """A pipeline can't name what stands outside of its bundle: neither by name nor by id."""
    victim = await somebody(sharing)
    secret = await make_base(victim, name="Secret", visibility="shared")
    for name in ("Secret", secret):
        await refused_whole(homes["team"], bundle("team", **pipeline(knowledge_bases=[name])))


async def test_a_hundred_thousand_members(homes: dict[str, Home]) -> None:
    """More than an organization of the greatest size is refused before anybody is looked up."""
    crowd = [{"email": f"u{number}@example.org"} for number in range(100_000)]
    for kind in KINDS:
        answer = await raw(homes[kind], json.dumps({"bundle": bundle(kind, members=crowd)}).encode())
        assert "more than 20,000 members" in problems(answer)["body.bundle"]


async def raw(home: Home, body: bytes) -> Reply:
    before = await rows(home.running)
    answer = await home.manager.post(
        f"{home.path}/import", data=io.BytesIO(body), headers={"Content-Type": "application/json"}
    )
    assert await rows(home.running) == before
    return answer


async def test_a_huge_body(homes: dict[str, Home]) -> None:
    """Beyond the bound of a bundle the body is not read."""
    sent = json.dumps({"bundle": bundle("team", padding="x" * 17 * 1024 * 1024)}).encode()
    assert (await raw(homes["team"], sent)).status == 413


@pytest.mark.parametrize("depth", [150, 100_000])
@pytest.mark.parametrize("place", ["members", "retrieval_config", "deep"])
async def test_deep_nesting(homes: dict[str, Home], depth: int, place: str) -> None:
    """Deep lists end as 422, not as a broken process."""
    sent = json.dumps({"bundle": bundle("team", **pipeline(**{place: "@"}), **{place: "@"})})
    body = sent.replace('"@"', "[" * depth + "]" * depth).encode()
    assert (await raw(homes["team"], body)).status == 422


async def test_what_was_sent_is_not_echoed(homes: dict[str, Home]) -> None:
    """A refusal of rows holds none of their contents but names."""
    answer = await homes["team"].send(bundle("team", **base(owner_id="hush-hush")))
    assert answer.status == 422 and b"hush-hush" not in answer.body


async def test_the_sound_one_is_taken(sharing: Running) -> None:
    """The control: without an attack in it the same bundle comes in."""
    for kind in KINDS:
        home = await make_home(sharing, kind)
        assert len((await home.take(bundle(kind)))["created"]) == 2
