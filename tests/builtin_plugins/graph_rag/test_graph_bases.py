"""Graphs of knowledge bases: switched on and off, grown and shrunk with the documents, seen with them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from builtin_plugins.graph_rag.models import Base
from kernel.testing import Actor, Running, platforms, somebody
from tests.builtin_plugins.graph_rag.graph_support import (
    API,
    INSTITUTE,
    STATION,
    call,
    documents,
    ingest,
    make_base,
    names,
    stats,
    switch,
)
from tests.fakes.hash_embeddings import HashEmbeddings

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def rows(running: Running, base: str) -> dict[str, int]:
    def count(session: Any) -> dict[str, int]:
        graphs = Base.metadata.tables["graph_rag_graph"]
        mine = select(graphs.c.id).where(graphs.c.knowledge_base_id == base)
        found = {}
        for name, table in Base.metadata.tables.items():
            column = table.c.id if name == "graph_rag_graph" else table.c.graph_id
            query = select(func.count()).select_from(table).where(column.in_(mine))
            found[name] = session.scalar(query)
        return found

    return await running.platform.database.read(count)


async def jobs_of(actor: Actor) -> list[dict[str, Any]]:
    """The jobs about graphs that the actor can follow, newest first."""
    listed = (await actor.get("/v1/jobs?limit=500")).json()["items"]
    return [job for job in listed if job["kind"].startswith("graph_rag.")]


class TestSwitch:
    async def test_from_the_start(self, running: Running, ann: Actor) -> None:
        plain, graph = await make_base(ann), await make_base(ann, graph=True)
        assert (await ann.get(f"/v1/rag/knowledge-bases/{graph}")).json()["graph"] is True
        await ingest(running, ann, plain, "a.txt", INSTITUTE)
        document = await ingest(running, ann, graph, "b.txt", INSTITUTE)
        assert await documents(ann) == [document]
        [shown] = (await ann.get(f"{API}/graph/documents?kb_id={graph}")).json()["documents"]
        assert (shown["title"], shown["kb_id"]) == ("b.txt", graph)
        assert (await ann.get(f"{API}/graph/documents?kb_id={plain}")).json()["count"] == 0

    async def test_on_builds_what_is_there(self, running: Running, ann: Actor, base: str) -> None:
        """In a job that its owner can follow; sent again it builds what is missing, here nothing."""
        first = await ingest(running, ann, base, "a.txt", INSTITUTE)
        second = await ingest(running, ann, base, "b.txt", STATION)
        assert (await switch(ann, base, True)).json()["graph"] is True
        [job] = await jobs_of(ann)
        assert job["status"] == "queued"
        await running.run_jobs()
        [job] = await jobs_of(ann)
        assert job["status"] == "done"
        assert job["progress"] == {"done": 2, "total": 2, "unit": "documents"}
        assert set(await documents(ann)) == {first, second}
        before = await rows(running, base)
        await switch(ann, base, True)
        await running.run_jobs()
        assert await rows(running, base) == before

    async def test_off_hides_at_once_and_drops(self, running: Running, ann: Actor) -> None:
        base = await make_base(ann, graph=True)
        await ingest(running, ann, base, "a.txt", INSTITUTE)
        await switch(ann, base, False)
        assert await documents(ann) == []
        assert (await stats(ann))["nodes"] == 0
        assert names(await call(ann, "graph/search", query="Senja")) == []
        await running.run_jobs()
        assert set((await rows(running, base)).values()) == {0}

    async def test_back_from_the_trash(self, running: Running, ann: Actor, base: str) -> None:
        """A build that finds nothing in the trash is made good when the knowledge base is back."""
        trash = "/v1/rag/knowledge-bases/trash"
        document = await ingest(running, ann, base, "a.txt", INSTITUTE)
        await switch(ann, base, True)
        assert (await ann.post(trash, json={"knowledge_base_id": base})).status == 200
        await running.run_jobs()
        assert await documents(ann) == []
        assert (await ann.post(f"{trash}/{base}/restore")).status == 200
        await running.run_jobs()
        assert await documents(ann) == [document]

    async def test_off_before_the_build(self, running: Running, ann: Actor, base: str) -> None:
        await ingest(running, ann, base, "a.txt", INSTITUTE)
        await switch(ann, base, True)
        await switch(ann, base, False)
        await running.run_jobs()
        assert set((await rows(running, base)).values()) == {0}

    async def test_cancel(self, running: Running) -> None:
        """A build that is cancelled before a worker takes it builds nothing; asked again it does."""
        ann, bob = await somebody(running), await somebody(running)
        base = await make_base(ann)
        document = await ingest(running, ann, base, "a.txt", INSTITUTE)
        await switch(ann, base, True)
        [job] = await jobs_of(ann)
        assert await jobs_of(bob) == []
        assert (await bob.post(f"/v1/jobs/{job['id']}/cancel")).status == 404
        assert (await ann.post(f"/v1/jobs/{job['id']}/cancel")).status == 202
        await running.run_jobs()
        assert await documents(ann) == []
        await switch(ann, base, True)
        await running.run_jobs()
        assert await documents(ann) == [document]

    async def test_without_the_plugin(self, tmp_path: Path) -> None:
        """A graph that nobody would build is refused, with the remedy."""
        async with platforms(tmp_path) as start:
            await self._refused(await start("rag", "extractive_answers", HashEmbeddings()))

    async def _refused(self, running: Running) -> None:
        ann = await running.user()
        base = await make_base(ann)
        for refused in (
            await switch(ann, base, True),
            await ann.post("/v1/rag/knowledge-bases", json={"name": "a", "graph": True}),
        ):
            assert refused.status == 422
            assert refused.detail[0]["loc"] == ["body", "graph"]
            assert "enable graph_rag" in refused.detail[0]["msg"]
        assert (await switch(ann, base, False)).status == 200


class TestDeletion:
    async def test_document(self, running: Running, ann: Actor) -> None:
        """Gone from every answer with the document; what the other documents say stays."""
        base = await make_base(ann, graph=True)
        first = await ingest(running, ann, base, "a.txt", INSTITUTE)
        second = await ingest(running, ann, base, "b.txt", STATION)
        assert (await ann.delete(f"/v1/rag/knowledge-bases/{base}/documents/{first}")).status < 300
        assert await documents(ann) == [second]
        assert names(await call(ann, "graph/search", query="Lindqvist")) == []
        found = await call(ann, "entity-context", entity_text="NRI")
        assert found["also_called"] == [] and [one["id"] for one in found["documents"]] == [second]
        await running.run_jobs()
        assert (await rows(running, base))["graph_rag_graph"] == 1

    async def test_documents_at_the_same_time(self, running: Running, ann: Actor) -> None:
        base = await make_base(ann, graph=True)
        ids = [await ingest(running, ann, base, f"{n}.txt", f"{INSTITUTE} Part {n}.") for n in range(6)]
        before = (await stats(ann))["entities"]
        deleting = (ann.delete(f"/v1/rag/knowledge-bases/{base}/documents/{one}") for one in ids)
        receipts = [answer.json() for answer in await asyncio.gather(*deleting)]
        parts = [part for one in receipts for part in one["receipt"]["removed"]]
        assert sum(part["count"] for part in parts if part["place"] == "graph_entities") == before
        await running.run_jobs()
        assert set((await rows(running, base)).values()) == {0}

    async def test_document_before_its_graph(self, running: Running, ann: Actor, base: str) -> None:
        """A document that goes before the worker builds its graph gets none."""
        document = await ingest(running, ann, base, "a.txt", INSTITUTE)
        await switch(ann, base, True)
        await ann.delete(f"/v1/rag/knowledge-bases/{base}/documents/{document}")
        await running.run_jobs()
        assert set((await rows(running, base)).values()) == {0}

    async def test_knowledge_base(self, running: Running, ann: Actor) -> None:
        """Nothing is found with the answer, and the rows follow."""
        base = await make_base(ann, graph=True)
        await ingest(running, ann, base, "a.txt", INSTITUTE)
        assert (await ann.delete(f"/v1/rag/knowledge-bases/{base}")).status == 200
        assert await documents(ann) == []
        await running.run_jobs()
        assert set((await rows(running, base)).values()) == {0}

    async def test_not_by_the_graph_routes(self, running: Running) -> None:
        ann, bob = await somebody(running), await somebody(running)
        base = await make_base(ann, graph=True)
        document = await ingest(running, ann, base, "a.txt", INSTITUTE)
        refused = await ann.delete(f"{API}/graph/document/{document}")
        assert (refused.status, refused.json()["code"]) == (409, "document_of_knowledge_base")
        hidden = await bob.delete(f"{API}/graph/document/{document}")
        assert (hidden.status, hidden.json()["document_deleted"]) == (200, 0)
        assert await documents(ann) == [document]


class TestAccess:
    async def test_seen_with_the_knowledge_base(self, running: Running) -> None:
        """Whoever sees the knowledge base sees its graph, from the change on and until it is taken back."""
        ann, bob = await somebody(running), await somebody(running)
        base = await make_base(ann, graph=True)
        document = await ingest(running, ann, base, "a.txt", INSTITUTE)
        nothing = {"nodes": 0, "relationships": 0, "documents": 0, "entities": 0, "entity_types": {}}
        assert await documents(bob) == []
        assert await stats(bob) == {"success": True, **nothing}
        await ann.patch(f"/v1/rag/knowledge-bases/{base}", json={"visibility": "shared"})
        assert document in await documents(bob)
        assert "Senja Station" in names(await call(bob, "graph/search", query="Senja"))
        await ann.patch(f"/v1/rag/knowledge-bases/{base}", json={"visibility": "private"})
        assert await documents(bob) == []
        assert names(await call(bob, "retrieve", query="Senja Station"), "related_entities") == []
