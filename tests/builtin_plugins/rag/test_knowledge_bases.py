"""Knowledge bases over HTTP: create, list, show, change, delete (wire-facts 11.1)."""

from __future__ import annotations

from typing import Any

import pytest

from builtin_plugins.vectors.api import VECTORS
from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import (
    ask_raw,
    ingest,
    make_base,
    make_pipeline,
    problems,
    record,
    somebody,
    upload,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

BASES = "/v1/rag/knowledge-bases"


async def listed(actor: Actor, query: str = "") -> dict[str, Any]:
    answer = await actor.get(f"{BASES}?limit=500{query}")
    assert answer.status == 200, answer.body
    return dict(answer.json())


class TestCreate:
    async def test_record(self, ann: Actor) -> None:
        """What is left out gets the documented defaults; the creator owns it, alone."""
        made = (await ann.post(BASES, json={"name": "  Handbook "})).json()
        assert made.pop("id") and made.pop("created_at").endswith(("Z", "+00:00"))
        assert made == {
            "name": "Handbook",
            "description": "",
            "embedding_model": "multilingual-e5-small",
            "llm_model": None,
            "chunk_size": 1500,
            "chunk_overlap": 150,
            "graph": False,
            "document_count": 0,
            "vector_count": 0,
            "owner_id": ann.user["id"],
            "visibility": "private",
            "team_id": None,
            "organization_id": None,
            "publishing": "owner",
            "date_field": None,
            "accept_dates": False,
        }

    @pytest.mark.parametrize(
        ("body", "place"),
        [
            ({"name": "   "}, "body.name"),
            ({"name": "a\ud800"}, "body"),
            ({"name": "a\u0000"}, "body"),
            ({"name": "a", "chunk_size": 100, "chunk_overlap": 100}, "body"),
            ({"name": "a", "visibility": "team"}, "body.team_id"),
            ({"name": "a", "visibility": "organization"}, "body.organization_id"),
        ],
    )
    async def test_refusals(self, ann: Actor, body: dict[str, object], place: str) -> None:
        """A field that does not fit is named."""
        found = problems(await ann.post(BASES, json=body))
        assert any(key.startswith(place) for key in found), found
        assert (await listed(ann, f"&owner_id={ann.user['id']}"))["total"] == 0

    async def test_default_overlap_gives_way_to_a_small_size(self, ann: Actor) -> None:
        made = (await ann.post(BASES, json={"name": "a", "chunk_size": 40})).json()
        assert made["chunk_overlap"] < 40

    async def test_unknown_embedding_model_names_those_there_are(self, ann: Actor) -> None:
        found = problems(await ann.post(BASES, json={"name": "a", "embedding_model": "nomic-embed-text"}))
        assert "available: all-minilm, multilingual-e5-small" in found["body.embedding_model"]


class TestList:
    async def test_pages(self, ann: Actor) -> None:
        """`total` counts before slicing; the pages together are the whole, oldest first."""
        made = [await make_base(ann, name=f"n{number}") for number in range(5)]
        mine = f"owner_id={ann.user['id']}"
        pages = [(await ann.get(f"{BASES}?limit=2&offset={at}&{mine}")).json() for at in (0, 2, 4, 6)]
        assert [item["id"] for page in pages for item in page["items"]] == made
        assert [page["total"] for page in pages] == [5] * 4
        assert (pages[1]["limit"], pages[1]["offset"]) == (2, 2)

    async def test_owner_filter_keeps_ownerless_rows(self, running: Running) -> None:
        """`owner_id` answers that account's knowledge bases and those of nobody, and no others."""
        ann, ben = await somebody(running), await somebody(running)
        mine = await make_base(ann)
        other = await make_base(ben, visibility="shared")
        service = Actor(running, running.platform.resource(TOKENS).mint_service("importer", 1))
        nobodys = await make_base(service, visibility="shared")
        ids = {item["id"] for item in (await listed(ann, f"&owner_id={ann.user['id']}"))["items"]}
        assert {mine, nobodys} <= ids and other not in ids
        assert other in {item["id"] for item in (await listed(ann))["items"]}
        assert (await service.delete(f"{BASES}/{nobodys}")).status == 200  # others' tests count theirs


class TestChange:
    async def test_in_place(self, running: Running, ann: Actor) -> None:
        base = await make_base(ann, description="old", llm_model="tiny")
        await ingest(running, ann, base)
        before = (await ann.get(f"{BASES}/{base}")).json()
        after = (await ann.patch(f"{BASES}/{base}", json={"name": "New", "llm_model": None})).json()
        assert after == {**before, "name": "New", "llm_model": None}
        assert after["document_count"] == 1 and after["vector_count"] > 0
        assert (await ann.get(f"{BASES}/{base}")).json() == after


class TestDelete:
    async def test_with_documents(self, running: Running, ann: Actor, base: str) -> None:
        """Documents, passages, vectors and files go with it."""
        document = await ingest(running, ann, base, "own.md", f"# Own text\n\nOnly {base} has this.")
        answer = await ann.delete(f"{BASES}/{base}")
        deleted = answer.json()
        assert deleted.pop("receipt")["document_count"] == 1
        assert deleted["id"] == base
        assert (await ann.get(f"{BASES}/{base}")).status == 404
        assert (await ann.get(f"{BASES}/{base}/documents/{document['document_id']}")).status == 404
        assert await running.platform.resource(VECTORS).count(f"rag:{base}") == 0
        await running.run_jobs()
        assert not (await running.platform.blobs.local(document["sha256"])).exists()
        assert (await ann.delete(f"{BASES}/{base}")).status == 404

    async def test_dependent_pipelines_must_be_confirmed_exactly(self, ann: Actor) -> None:
        """409 names the pipelines; fewer, more or others don't do; the exact set takes them along."""
        base, other = await make_base(ann), await make_base(ann)
        one, two = (
            await make_pipeline(ann, base, name="One"),
            await make_pipeline(ann, other, base, name="Two"),
        )
        apart = await make_pipeline(ann, other)
        refused = await ann.delete(f"{BASES}/{base}")
        assert refused.status == 409 and refused.json()["code"] == "dependent_pipelines"
        assert refused.detail["dependent_pipelines"] == [
            {"pipeline_id": one, "name": "One"},
            {"pipeline_id": two, "name": "Two"},
        ]
        for wrong in ([], [one], [one, two, apart], [one, apart]):
            body = {"confirm_delete_pipeline_ids": wrong}
            assert (await ann.delete(f"{BASES}/{base}", json=body)).status == 409, wrong
        assert (await ann.get(f"{BASES}/{base}")).status == 200
        confirmed = {"confirm_delete_pipeline_ids": [two, one]}
        assert (await ann.delete(f"{BASES}/{base}", json=confirmed)).status == 200
        found = [(await ann.get(f"/v1/rag/pipeline/{each}")).status for each in (one, two, apart)]
        assert found == [404, 404, 200]

    async def test_pipelines_of_others_stay_and_are_not_spoken_of(self, running: Running) -> None:
        """Somebody else's pipeline over a shared knowledge base stops no deletion; the rest answers."""
        await self._delete_what_another_searches(running, await somebody(running))

    async def test_an_administrators_own(self, running: Running) -> None:
        """It is deleted like anyone else's: without the pipelines of others."""
        await self._delete_what_another_searches(running, await somebody(running, role="admin"))

    async def _delete_what_another_searches(self, running: Running, ann: Actor) -> None:
        ben = await somebody(running)
        base, other = await make_base(ann, visibility="shared"), await make_base(ben)
        theirs = await make_pipeline(ben, base, other, visibility="shared")
        assert (await ann.delete(f"{BASES}/{base}")).status == 200
        assert (await ben.get(f"/v1/rag/pipeline/{theirs}")).json()["knowledge_base_ids"] == [other]
        assert (await ask_raw(ben, theirs, "Anything?")).status == 200

    async def test_shared_bytes_stay_for_the_other_knowledge_base(self, running: Running, ann: Actor) -> None:
        first, second = await make_base(ann), await make_base(ann)
        text = f"# Two homes\n\nWritten for {first} alone."
        kept = [await ingest(running, ann, base, "own.md", text) for base in (first, second)]
        assert kept[0]["sha256"] == kept[1]["sha256"]
        assert (await ann.delete(f"{BASES}/{first}")).status == 200
        await running.run_jobs()
        path = f"{BASES}/{second}/documents/{kept[1]['document_id']}/content"
        assert (await ann.get(path)).status == 200
        assert (await ann.delete(f"{BASES}/{second}")).status == 200
        await running.run_jobs()
        assert not (await running.platform.blobs.local(kept[0]["sha256"])).exists()


async def test_gone_base_is_409_for_its_pipeline(running: Running) -> None:
    ann, ben = await somebody(running), await somebody(running)
    base = await make_base(ann, visibility="shared")
    pipeline = await make_pipeline(ben, base)
    assert (await ask_raw(ben, pipeline, "Anything?")).status == 200
    assert (await ann.patch(f"{BASES}/{base}", json={"visibility": "private"})).status == 200
    refused = await ask_raw(ben, pipeline, "Anything?")
    assert refused.status == 409


async def test_counts_are_of_completed_documents(running: Running, ann: Actor, base: str) -> None:
    document = (await upload(ann, base)).json()["document_id"]
    assert (await ann.get(f"{BASES}/{base}")).json()["document_count"] == 0
    await running.run_jobs()
    found = (await ann.get(f"{BASES}/{base}")).json()
    chunks = (await record(ann, base, document))["chunk_count"]
    assert (found["document_count"], found["vector_count"]) == (1, chunks)
