"""Trees of summaries: built on upload and afterwards, searched by `raptor` alone, gone with the document."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.documents.chunking import page_at
from builtin_plugins.rag.models import Document
from builtin_plugins.vectors.api import VECTORS
from builtin_plugins.vectors.models import CollectionRecord, PointRecord
from kernel.testing import Actor, Reply, Running, environment, platforms, postgres_database
from tests.builtin_plugins.documents.sample_documents import pdf
from tests.builtin_plugins.rag.rag_support import (
    ask,
    ingest,
    make_base,
    make_pipeline,
    path_of,
    problems,
    somebody,
)
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.model_server import Script, model_server
from tests.fakes.processes import running_process
from tests.fakes.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

BASES = "/v1/rag/knowledge-bases"
TOPICS = {
    "pump": "The pump of the station lifts water. The pump needs oil each month. A worn pump makes noise.",
    "roof": "The roof is made of slate. Storms damage the roof in winter. The roof is checked in spring.",
    "boat": "The boat brings mail twice a week. The boat does not sail in storms. The boat is red.",
}
BOOK = "\n\n".join(
    f"# Chapter {number}\n\n{text} Chapter {number} is about the {topic}."
    for number, (topic, text) in enumerate([*TOPICS.items()] * 4, 1)
)
SHORT = "The lighthouse is white."


@dataclass
class Stage:
    """A platform with quick embeddings and a scripted runtime that is not configured, and an account."""

    running: Running
    ann: Actor

    async def base(self, **fields: object) -> str:
        return await make_base(
            self.ann, embedding_model="all-minilm", chunk_size=130, chunk_overlap=0, **fields
        )

    async def send(self, base: str, name: str, text: str, build_tree: str) -> Reply:
        form = aiohttp.FormData()
        form.add_field("build_tree", build_tree)
        form.add_field("file", io.BytesIO(text.encode()), filename=name)
        return await self.ann.post(f"{BASES}/{base}/upload", data=form)

    async def upload(self, base: str, name: str, text: str, build_tree: str = "true") -> dict[str, Any]:
        answer = await self.send(base, name, text, build_tree)
        assert answer.status == 202, answer.body
        await self.running.run_jobs()
        return dict((await self.ann.get(path_of(base, answer.json()["document_id"]))).json())

    async def build(self, base: str, **body: object) -> dict[str, Any]:
        started = await self.ann.post(f"{BASES}/{base}/trees", json=body)
        assert started.status == 202, started.body
        await self.running.run_jobs()
        return dict((await self.ann.get(f"/v1/jobs/{started.json()['id']}")).json())

    async def nodes(self, base: str) -> int:
        return await self.running.platform.resource(VECTORS).count(f"rag-tree:{base}")


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        start = await stack.enter_async_context(platforms(tmp_path_factory.mktemp("trees")))
        url = stack.enter_context(postgres_database()) if request.param == "postgresql" else None
        running = await start(
            "rag_methods", "extractive_answers", HashEmbeddings(), env={"DATABASE_URL": url}
        )
        yield Stage(running, await somebody(running))


class TestBuilding:
    async def test_on_upload(self, stage: Stage) -> None:
        """The tree follows the document; it has levels over all passages, and is no part of their list."""
        base = await stage.base()
        document = await stage.upload(base, "book.md", BOOK)
        assert document["status"] == "completed"
        assert document["tree_nodes_created"] == await stage.nodes(base) > 2
        assert document["vector_count"] == document["chunk_count"] >= 6
        chunks = (await stage.ann.get(path_of(base, document["document_id"], "/chunks"))).json()
        assert chunks["total"] == document["chunk_count"]
        rows, _ = await stage.running.platform.resource(VECTORS).points(
            f"rag-tree:{base}", document["document_id"], 500, 0
        )
        levels = [row.payload["tree_level"] for row in rows]
        assert 2 <= max(levels) <= 3 and levels == sorted(levels)
        below = {chunk["chunk_id"] for chunk in chunks["items"]} | {row.id for row in rows}
        children = [child for row in rows for child in row.payload["children_ids"]]
        assert len(children) == len(set(children)) and set(children) <= below
        assert {chunk["chunk_id"] for chunk in chunks["items"]} <= set(children)

    async def test_summaries_are_sentences_of_the_document(self, stage: Stage) -> None:
        base = await stage.base()
        document = await stage.upload(base, "book.md", BOOK)
        rows, _ = await stage.running.platform.resource(VECTORS).points(
            f"rag-tree:{base}", document["document_id"], 500, 0
        )
        for row in rows:
            assert 0 < len(row.text) <= 900
            span = BOOK[row.payload["char_start"] : row.payload["char_end"]]
            assert all(f"{part.strip('.')}." in span for part in row.text.split(". "))

    async def test_summaries_know_the_pages_of_their_sentences(self, stage: Stage, tmp_path: Path) -> None:
        """Each sentence is on the page where the document has it, not on the first of the whole summary."""
        base = await stage.base()
        lines = [f"The pump of station {n} lifts water and needs oil each month." for n in range(1, 13)]
        file = pdf(tmp_path / "pumps.pdf", [[line] for line in lines])
        record = await ingest(stage.running, stage.ann, base, file.name, file.read_bytes())
        await stage.build(base)
        rows, _ = await stage.running.platform.resource(VECTORS).points(
            f"rag-tree:{base}", record["document_id"], 500, 0
        )
        quoted = [(row, line) for row in rows for line in lines if line in row.text]
        assert len(quoted) > 6
        for row, line in quoted:
            place = row.text.index(line)
            assert page_at(place, row.payload["page"], row.payload["pages"]) == lines.index(line) + 1

    @pytest.mark.parametrize(
        "text", [SHORT, "\n\n".join(f"Line {n} about the boat." * 6 for n in range(320))]
    )
    async def test_too_small_or_too_large(self, stage: Stage, text: str) -> None:
        base = await stage.base()
        document = await stage.upload(base, "a.md", text)
        assert (document["status"], document["tree_nodes_created"]) == ("completed", 0)
        assert await stage.nodes(base) == 0

    async def test_only_if_wanted(self, stage: Stage) -> None:
        """Without the field there is no tree; a value that is neither true nor false is refused."""
        base = await stage.base()
        assert (await stage.upload(base, "book.md", BOOK, "false"))["tree_nodes_created"] == 0
        refused = await stage.send(base, "b.md", "text", "perhaps")
        assert list(problems(refused)) == ["body.build_tree"]

    async def test_afterwards_and_only_what_is_missing(self, stage: Stage) -> None:
        base = await stage.base()
        first = await stage.upload(base, "first.md", BOOK, "false")
        await ingest(stage.running, stage.ann, base, "short.md", SHORT)
        job = await stage.build(base)
        assert (job["status"], job["progress"]) == ("done", {"done": 1, "total": 1, "unit": "documents"})
        built = await self._built(stage, first)
        second = await stage.upload(base, "second.md", BOOK.replace("pump", "crane"), "false")
        await stage.build(base)
        assert await self._built(stage, first) == built
        assert await self._built(stage, second) is not None
        nodes = await stage.nodes(base)
        await stage.build(base, rebuild=True)
        assert await self._built(stage, first) > built and await stage.nodes(base) == nodes

    async def test_not_in_the_trash(self, stage: Stage) -> None:
        """No model reads what somebody deleted."""
        base = await stage.base()
        book = await stage.upload(base, "book.md", BOOK, "false")
        assert (await stage.ann.delete(path_of(base, book["document_id"], "?trash=true"))).status == 200
        assert (await stage.build(base))["progress"]["total"] == 0
        assert await self._built(stage, book) is None

    @staticmethod
    async def _built(stage: Stage, document: dict[str, Any]) -> Any:
        query = select(Document.tree_built_at).where(Document.id == document["document_id"])
        return await stage.running.platform.database.read(lambda session: session.scalar(query))


class TestSearching:
    async def test_raptor_finds_summaries(self, stage: Stage) -> None:
        """They are sources with their level and place; every other method sees passages alone."""
        base = await stage.base()
        await stage.upload(base, "book.md", BOOK)
        pipeline = await make_pipeline(stage.ann, base)
        question = "What is said of the pump, the roof and the boat?"
        answer = await ask(stage.ann, pipeline, question, method="raptor", top_k=20)
        assert (answer["method"], answer["method_details"]["retrieval"]) == ("raptor", "raptor")
        assert any(source.get("tree_level", 0) >= 1 for source in answer["sources"])
        assert all(source["char_start"] < source["char_end"] for source in answer["sources"])
        for method in ("standard", "corrective", "auto"):
            answer = await ask(stage.ann, pipeline, question, method=method, top_k=20)
            assert not any("tree_level" in source for source in answer["sources"])

    async def test_what_goes_first(self, stage: Stage) -> None:
        """parent_context before hybrid before raptor; whatever is ignored is told."""
        base = await stage.base()
        await stage.upload(base, "book.md", BOOK)
        pipeline = await make_pipeline(stage.ann, base)
        for fields, retrieval in (({"hybrid": True}, "hybrid"), ({"parent_context": True}, "parent_context")):
            answer = await ask(stage.ann, pipeline, "What of the pump?", method="raptor", **fields)
            details = answer["method_details"]
            assert (answer["method"], details["retrieval"]) == ("raptor", retrieval)
            assert any("raptor" in note for note in details["degraded"])
            assert not any("tree_level" in source for source in answer["sources"])

    async def test_a_filter_holds_for_summaries(self, stage: Stage) -> None:
        base = await stage.base()
        await stage.upload(base, "book.md", BOOK)
        await stage.upload(base, "other.md", BOOK.replace("pump", "crane"))
        pipeline = await make_pipeline(stage.ann, base)
        answer = await ask(
            stage.ann,
            pipeline,
            "When do storms damage the roof?",
            method="raptor",
            top_k=50,
            metadata_filter={"source": "other.md"},
        )
        assert {source["source"] for source in answer["sources"]} == {"other.md"}
        assert any("tree_level" in source for source in answer["sources"])

    async def test_without_a_tree(self, stage: Stage) -> None:
        """The passages are searched, and the answer says that there were no summaries."""
        base = await stage.base()
        await ingest(stage.running, stage.ann, base, "short.md", SHORT)
        pipeline = await make_pipeline(stage.ann, base)
        answer = await ask(stage.ann, pipeline, "What colour is the lighthouse?", method="raptor")
        assert answer["sources"] and any("tree" in note for note in answer["method_details"]["degraded"])


class TestDeletion:
    async def test_to_the_last_node(self, stage: Stage) -> None:
        """With the document all of its nodes go at once, with the knowledge base all of all."""
        base = await stage.base()
        first = await stage.upload(base, "first.md", BOOK)
        second = await stage.upload(base, "second.md", BOOK.replace("boat", "ferry"))
        assert (await stage.ann.delete(path_of(base, first["document_id"]))).status == 200
        assert await stage.nodes(base) == second["tree_nodes_created"]
        assert (await stage.ann.delete(f"{BASES}/{base}")).status == 200
        await stage.running.run_jobs()
        assert await stage.running.platform.database.read(rows_of, f"rag-tree:{base}") == 0

    async def test_while_it_is_built(self, stage: Stage) -> None:
        """A document that is deleted before its job runs gets no tree."""
        base = await stage.base()
        document = await stage.upload(base, "book.md", BOOK, "false")
        started = await stage.ann.post(f"{BASES}/{base}/trees")
        assert (await stage.ann.delete(path_of(base, document["document_id"]))).status == 200
        await stage.running.run_jobs()
        assert (await stage.ann.get(f"/v1/jobs/{started.json()['id']}")).json()["status"] == "done"
        assert await stage.nodes(base) == 0


def rows_of(session: Session, collection: str) -> int:
    query = (
        select(func.count())
        .select_from(PointRecord)
        .join(CollectionRecord, CollectionRecord.id == PointRecord.collection_id)
    )
    return session.scalar(query.where(CollectionRecord.name == collection)) or 0


async def test_a_model_writes_the_summaries(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The knowledge base's model is asked for each; one that fails leaves a plain document."""
    async with model_server() as server, platforms(tmp_path_factory.mktemp("written")) as start:
        running = await start(
            "models",
            "rag_methods",
            "extractive_answers",
            HashEmbeddings(),
            env={"OLLAMA_BASE_URL": server.url},
        )
        stage = Stage(running, await somebody(running))
        base = await stage.base(llm_model="small")
        server.script = Script(answer="They keep a pump, a roof and a boat.", models=("small",))
        document = await stage.upload(base, "book.md", BOOK)
        bodies = [one.body for one in server.requests if one.path == "/api/chat"]
        assert len(bodies) == document["tree_nodes_created"] and {b["model"] for b in bodies} == {"small"}
        rows, _ = await running.platform.resource(VECTORS).points(
            f"rag-tree:{base}", document["document_id"], 9, 0
        )
        assert {row.text for row in rows} == {"They keep a pump, a roof and a boat."}
        server.script = Script(answer="x", models=("another",))
        failed = await stage.upload(base, "other.md", BOOK.replace("pump", "crane"))
        assert (failed["status"], failed["tree_nodes_created"]) == ("completed", 0)


@pytest.mark.long
async def test_killed_in_the_middle(tmp_path: Path) -> None:
    """A worker killed over the second document: the next one builds that, and leaves the first as it is."""
    async with platforms(tmp_path) as start:
        running = await start("rag_methods", "extractive_answers", HashEmbeddings())
        await kill_and_go_on(Stage(running, await somebody(running)), tmp_path)


async def kill_and_go_on(stage: Stage, tmp_path: Path) -> None:
    base = await stage.base()
    documents = [
        await stage.upload(base, f"{topic}.md", BOOK.replace("boat", topic), "false")
        for topic in ("ferry", "canoe")
    ]
    expected = await plain_counts(stage, documents)
    started = await stage.ann.post(f"{BASES}/{base}/trees")
    env = environment(tmp_path, {"HANGS_AT": "9", "HANGING": str(tmp_path / "hanging")})
    command = ("-m", "tests.builtin_plugins.rag.tree_worker")
    async with running_process(*command, env=env, log=tmp_path / "first.log") as worker:
        await eventually(lambda: (tmp_path / "hanging").exists(), 60)
        await worker.kill()
    before = await plain_counts(stage, documents)
    assert sorted(count > 0 for _, count in before) == [False, True], before
    async with running_process(*command, env={**env, "HANGS_AT": "0"}, log=tmp_path / "second.log"):

        async def done() -> bool:
            job = (await stage.ann.get(f"/v1/jobs/{started.json()['id']}")).json()
            return bool(job["status"] == "done")

        await eventually(done, 60)
    after = await plain_counts(stage, documents)
    assert all(count > 0 for _, count in after) and [name for name, _ in after] == [n for n, _ in expected]
    assert await stage.nodes(base) == sum(count for _, count in after)
    assert {one for one in before if one[1]} <= set(after)


async def plain_counts(stage: Stage, documents: list[dict[str, Any]]) -> list[tuple[str, int]]:
    ids = [one["document_id"] for one in documents]
    query = select(Document.id, Document.tree_nodes).where(Document.id.in_(ids)).order_by(Document.id)
    rows = await stage.running.platform.database.read(lambda session: session.execute(query).all())
    return [(row[0], row[1]) for row in rows]
