"""Sharing with people by name or mail: who sees it, how it ends, and what is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from builtin_plugins.accounts.verified_addresses import note_verified
from kernel.sdk import Account, Unit
from kernel.testing import Actor, Running, platforms
from tests.builtin_plugins.rag.rag_support import make_base, make_pipeline, problems
from tests.builtin_plugins.tenancy.tenancy_support import id_of, somebody
from tests.fakes.hash_embeddings import HashEmbeddings

pytestmark = pytest.mark.asyncio(loop_scope="session")

BASES, PIPELINES = "/v1/rag/knowledge-bases", "/v1/rag/pipeline"


def with_people(*people: str) -> dict[str, object]:
    return {"visibility": "team", "people": list(people)}


async def sees(actor: Actor, base: str) -> bool:
    listed = (await actor.get(f"{BASES}?limit=500")).json()["items"]
    status = (await actor.get(f"{BASES}/{base}")).status
    assert (status == 200) == (base in {one["id"] for one in listed})
    return status == 200


async def prove_address(running: Running, actor: Actor) -> None:
    def write(unit: Unit) -> None:
        note_verified(unit, unit.session.get_one(Account, id_of(actor)), "operator")

    await running.platform.database.write(write)


async def test_shared_and_revoked(sharing: Running) -> None:
    """Sessions that are open already see it at once, and no longer once it is taken back."""
    ann, bob, eve, mia = [await somebody(sharing) for _ in range(4)]
    base = await make_base(ann)
    path = f"{BASES}/{base}"
    assert not await sees(bob, base)
    # Whoever registers may enter any address: one counts once it is proven.
    unproven = await ann.patch(path, json=with_people(eve.user["email"]))
    assert problems(unproven).keys() == {"body.people.0"}
    await prove_address(sharing, eve)
    shared = await ann.patch(path, json=with_people(bob.user["username"].upper(), eve.user["email"]))
    assert shared.status == 200, shared.body
    assert [await sees(one, base) for one in (ann, bob, eve, mia)] == [True, True, True, False]
    assert (await bob.patch(path, json={"name": "Mine"})).status == 403
    assert (await ann.patch(path, json=with_people(eve.user["email"]))).status == 200
    assert [await sees(one, base) for one in (ann, bob, eve)] == [True, False, True]
    assert (await ann.patch(path, json={"visibility": "private"})).json()["team_id"] is None
    assert not await sees(eve, base)


async def test_the_team_behind_it(sharing: Running) -> None:
    """The same people are the same team. No list has it, only its members see them, and it never changes."""
    ann, bob, mia = [await somebody(sharing) for _ in range(3)]
    made = (await ann.post(BASES, json={"name": "n", **with_people(bob.user["username"])})).json()
    pipeline = await make_pipeline(ann, made["id"])
    await prove_address(sharing, bob)
    changed = await ann.patch(f"{PIPELINES}/{pipeline}", json=with_people(bob.user["email"].upper()))
    assert changed.json()["team_id"] == made["team_id"]
    team = f"/v1/teams/{made['team_id']}"
    seen = (await bob.get(team)).json()
    assert (seen["unlisted"], {one["user_id"] for one in seen["members"]}) == (True, {id_of(ann), id_of(bob)})
    for query in ("?mine=true", ""):
        listed = (await bob.get(f"/v1/teams{query}")).json()["items"]
        assert made["team_id"] not in {one["id"] for one in listed}
    admin = await sharing.user(role="admin")
    refusals = [
        await mia.get(team),
        await mia.get(f"{team}/members"),
        await admin.post(f"{team}/members", json={"user_id": id_of(mia), "team_role": "member"}),
        await admin.patch(team, json={"name": "Named"}),
        await admin.delete(team),
        await bob.delete(f"{team}/members/{id_of(bob)}"),
    ]
    assert [one.status for one in refusals] == [404] * len(refusals)


async def test_what_is_refused(sharing: Running) -> None:
    ann, bob = await somebody(sharing), await somebody(sharing)
    path = f"{BASES}/{await make_base(ann)}"
    unknown = await ann.patch(path, json=with_people(bob.user["username"], "nobody@example.org"))
    assert (unknown.status, unknown.json()["detail"][0]["loc"]) == (422, ["body", "people", 1])
    alone = await ann.patch(path, json={"visibility": "shared", "people": [bob.user["username"]]})
    assert "body.people" in problems(alone)
    assert not await sees(bob, path.rsplit("/", 1)[1])


async def test_names_are_not_tried_without_end(tmp_path: Path) -> None:
    """The answers say which names have an account, so an account that names people is slowed down; what names
    nobody is not counted.
    """
    plugins = ("tenancy", "rag", "extractive_answers", HashEmbeddings())
    async with platforms(tmp_path) as start:
        running = await start(*plugins, env={"RATE_LIMIT_ENABLED": "true"})
        ann, bob = await somebody(running), await somebody(running)
        base = await make_base(ann)
        tries = [await ann.patch(f"{BASES}/{base}", json=with_people(f"nobody-{n}")) for n in range(11)]
        assert [one.status for one in tries] == [422] * 10 + [429]
        assert "Retry-After" in tries[-1].headers
        pipeline = await make_pipeline(ann, base)
        assert (await ann.patch(f"{PIPELINES}/{pipeline}", json=with_people("nobody"))).status == 429
        assert (await ann.patch(f"{BASES}/{base}", json={"name": "Mine"})).status == 200
        own = await make_base(bob)
        assert (await bob.patch(f"{BASES}/{own}", json=with_people(ann.user["username"]))).status == 200
