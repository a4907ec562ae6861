"""A long document is found by its words while it is read, with the rights and filters of every search."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import FormData
from sqlalchemy import event
from sqlalchemy.orm import Session

from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.filters.binding import bound
from builtin_plugins.rag.questions.word_hits import MOST_CHARS, MOST_EMBEDDED
from builtin_plugins.rag.services.early_search import bases_with_early_words
from builtin_plugins.rag.services.ingest import BATCH, UNDER_WAY
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import Caller, Principal, Scope, hookimpl
from kernel.testing import Actor, Reply, Running
from tests.builtin_plugins.documents import sample_documents as documents
from tests.builtin_plugins.rag.rag_support import (
    Memberships,
    ask,
    fresh_id,
    make_base,
    make_pipeline,
    member,
    path_of,
    record,
    somebody,
    upload,
)
from tests.conftest import Start
from tests.fakes.gated_embeddings import GatedEmbeddings
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.keeping import Keeper

LONG = "\n".join(
    f"Line {number} of a text that has many passages, all of them different." for number in range(400)
)
SCANNED = 20
needs_tesseract = pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
QUESTION = "Which line is about the walrus in Tromsø?"
ABOUT = f"{LONG}\nThe walrus in Tromsø eats 25 kilos of mussels a day.\n"


class WholeBatchesWait(HashEmbeddings):
    """Embeds no whole batch of passages before it may; `few` is how many passages came in smaller ones."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = asyncio.Semaphore(0)
        self.go = asyncio.Event()
        self.few = 0
        self.longest = 0

    @hookimpl
    async def embed_texts(self, model: str, texts: Sequence[str], purpose: str) -> Embedded | None:
        if purpose == "passage" and len(texts) == BATCH:
            self.waiting.release()
            await self.go.wait()
        elif purpose == "passage":
            self.few += len(texts)
            self.longest = max(self.longest, sum(map(len, texts)))
        return await super().embed_texts(model, texts)


class BeingRead:
    """A knowledge base with a document whose first passage waits for its vector."""

    def __init__(self, running: Running, gate: GatedEmbeddings, ann: Actor, base: str, document: str) -> None:
        self.running, self.gate, self.ann, self.base, self.document = running, gate, ann, base, document

    async def hits(self, reader: Actor | None = None, **sent: object) -> list[dict[str, Any]]:
        body = {"question": QUESTION, "top_k": 5, **sent}
        found = await (reader or self.ann).post(f"/v1/rag/knowledge-bases/{self.base}/search", json=body)
        assert found.status == 200, found.text
        items: list[dict[str, Any]] = found.json()["items"]
        return [one for one in items if one["document_id"] == self.document]

    async def left(self) -> int:
        return await self.running.platform.resource(VECTORS).count(f"rag-reading:{self.base}")


async def put(actor: Actor, base: str, path: str, content: str) -> Reply:
    form = FormData()
    form.add_field("file", content.encode(), filename=path)
    return await actor.put(f"/v1/rag/knowledge-bases/{base}/documents/by-path/{path}", data=form)


@asynccontextmanager
async def being_read(
    start_platform: Start, *plugins: Any, database_url: str | None = None, path: str | None = None
) -> AsyncIterator[BeingRead]:
    gate = GatedEmbeddings()
    env = {"DATABASE_URL": database_url}
    running = await start_platform("rag", "extractive_answers", gate, *plugins, env=env)
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=100, chunk_overlap=0)
    sent = upload(ann, base, "long.txt", ABOUT) if path is None else put(ann, base, path, ABOUT)
    document = (await sent).json()["document_id"]
    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(60):
        await gate.arrived.wait()
        yield BeingRead(running, gate, ann, base, document)
        gate.go.set()
        await working


async def test_found_while_it_is_read_and_once_afterwards(
    start_platform: Start, database_url: str | None
) -> None:
    async with being_read(start_platform, database_url=database_url) as site:
        first, *_ = await site.hits()
        assert "mussels" in first["text"] and first["being_read"]
        shown = await record(site.ann, site.base, site.document)
        assert (shown["status"], shown["chunk_count"]) == ("processing", 0)
        assert shown["searchable_count"] > 200
        chunks = (await site.ann.get(path_of(site.base, site.document, "/chunks?limit=1"))).json()
        assert chunks["total"] == shown["searchable_count"]
        pipeline = await make_pipeline(site.ann, site.base)
        for hybrid in (True, False):
            answer = await ask(site.ann, pipeline, QUESTION, hybrid=hybrid)
            assert answer["sources"][0]["being_read"] and "mussels" in answer["sources"][0]["text"]
    after = await site.hits()
    assert [one["chunk_id"] for one in after].count(first["chunk_id"]) == 1
    assert not any("being_read" in one for one in after)
    shown = await record(site.ann, site.base, site.document)
    assert shown["searchable_count"] == shown["chunk_count"] > 200
    assert await site.left() == 0


async def test_all_that_wait_are_found_before_one_is_embedded(
    start_platform: Start, database_url: str | None
) -> None:
    """However large, and of one account: each is read and found by its words before the first is embedded."""
    gate = GatedEmbeddings()
    env = {"DATABASE_URL": database_url, "PLATFORM_RAG_LARGE_DOCUMENT_MB": "0.001"}
    running = await start_platform("rag", gate, env=env)
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=100, chunk_overlap=0)
    ids = [
        (await upload(ann, base, f"{number}.txt", f"{ABOUT}{number}")).json()["document_id"]
        for number in range(3)
    ]
    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(60):
        await gate.arrived.wait()
        shown = [await record(ann, base, one) for one in ids]
        assert [(one["status"], one["searchable_count"] > 200) for one in shown] == [("processing", True)] * 3
        gate.go.set()
        await working
    assert [(await record(ann, base, one))["status"] for one in ids] == ["completed"] * 3


async def test_found_by_meaning_as_its_vectors_come(start_platform: Start) -> None:
    async with being_read(start_platform) as site:
        vectors = site.running.platform.resource(VECTORS)
        assert await vectors.count(f"rag:{site.base}") == 0
        first, site.gate.go = site.gate.go, asyncio.Event()
        site.gate.stop_before, site.gate.all_after = site.gate.batches + 1, True
        first.set()  # the first two batches go on, the third waits
        async with asyncio.timeout(30):
            while not await vectors.count(f"rag:{site.base}"):  # noqa: ASYNC110  # no notice of it is sent
                await asyncio.sleep(0.02)
        found = await site.hits(question="Line 3 of a text that has many passages", top_k=50, hybrid=False)
        assert len({one["chunk_id"] for one in found}) == len(found) > 10
        assert all(one["being_read"] for one in found)
        assert (await site.ann.delete(path_of(site.base, site.document))).status == 200
        assert await site.hits() == []
        assert await vectors.count(f"rag:{site.base}") == 0


async def test_a_passage_around_it_is_read_with_it(start_platform: Start) -> None:
    async with being_read(start_platform) as site:
        pipeline = await make_pipeline(site.ann, site.base)
        answer = await ask(site.ann, pipeline, QUESTION, parent_context=True)
        assert "Line 399" in answer["sources"][0]["text"] and "mussels" in answer["sources"][0]["text"]


@pytest.mark.parametrize("end", ["cancel", "delete", "trash"])
async def test_nothing_is_left_of_one_that_ends(start_platform: Start, end: str) -> None:
    async with being_read(start_platform) as site:
        if end == "cancel":
            path = f"/v1/rag/knowledge-bases/{site.base}/ingestion/cancel"
            assert (await site.ann.post(path)).status == 200
        else:
            path = path_of(site.base, site.document, "?trash=true" if end == "trash" else "")
            assert (await site.ann.delete(path)).status in (200, 204)
        assert await site.hits() == []
    assert await site.hits() == []
    assert await site.left() == 0


async def test_one_that_was_cancelled_is_found_when_it_is_tried_again(start_platform: Start) -> None:
    async with being_read(start_platform) as site:
        path = f"/v1/rag/knowledge-bases/{site.base}/ingestion"
        assert (await site.ann.post(f"{path}/cancel")).status == 200
    site.gate.arrived.clear()
    site.gate.go.clear()
    site.gate.stop_before = site.gate.batches + 1
    assert (await site.ann.post(f"{path}/retry")).status == 200
    working = asyncio.create_task(site.running.run_jobs())
    async with asyncio.timeout(60):
        await site.gate.arrived.wait()
        assert (await site.hits())[0]["being_read"]
        site.gate.go.set()
        await working
    assert await site.left() == 0


async def test_the_version_before_answers_until_the_next_is_complete(start_platform: Start) -> None:
    async with being_read(start_platform, path="seals.txt") as site:
        site.gate.go.set()
    site.gate.arrived.clear()
    site.gate.go.clear()
    site.gate.stop_before = site.gate.batches + 1
    changed = ABOUT.replace("25 kilos", "30 kilos").replace("Line 1 ", "Row 1 ")
    again = (await put(site.ann, site.base, "seals.txt", changed)).json()
    working = asyncio.create_task(site.running.run_jobs())
    async with asyncio.timeout(60):
        await site.gate.arrived.wait()
        texts = {one["text"] for one in await site.hits()}
        assert any("25 kilos" in one for one in texts) and not any("30 kilos" in one for one in texts)
        assert (await record(site.ann, site.base, again["document_id"]))["searchable_count"] == 0
        site.gate.go.set()
        await working


async def test_filters_and_knowledge_bases_of_others_hide_it(start_platform: Start) -> None:
    members = Memberships()
    async with being_read(start_platform, members) as site:
        values = f"/v1/rag/knowledge-bases/{site.base}/documents/{site.document}"
        hidden = {"source": "other.txt"}
        assert await site.hits(metadata_filter=hidden) == []
        assert await site.hits(metadata_filter={"source": "long.txt"}) != []
        bob = await member(site.running, members, [fresh_id()])
        path = f"/v1/rag/knowledge-bases/{site.base}/search"
        assert (await bob.post(path, json={"question": QUESTION})).status == 404
        assert (await bob.get(values)).status == 404
        then = {"as_of": "2020-01-01"}
        assert await site.hits(**then) == []


async def test_it_changes_nothing_for_those_who_may_not_read_it(start_platform: Start) -> None:
    """Nobody learns from an answer that a document of others is being read."""
    gate = GatedEmbeddings()
    running = await start_platform("rag", gate)
    ann, bob = await somebody(running), await somebody(running)
    base = await make_base(ann, visibility="shared", chunk_size=100, chunk_overlap=0)
    keeper = Keeper(running.platform, base)
    await keeper.put("long.txt", ABOUT, keeper.readers("staff"))
    await keeper.members(staff=[int(bob.user["id"])])
    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(60):
        await gate.arrived.wait()
        callers = (Caller(running.platform, Principal("user", "", int(one.user["id"]))) for one in (ann, bob))
        assert [set((await bound(one, [base])).early) for one in callers] == [set(), {base}]
        gate.go.set()
        await working


async def test_a_name_that_only_it_has_is_not_refused(start_platform: Start) -> None:
    async with being_read(start_platform) as site:
        pipeline = await make_pipeline(site.ann, site.base)
        answer = await ask(site.ann, pipeline, "How much does the walrus in Tromsø eat a day?")
        assert "25 kilos" in answer["answer"]


async def test_a_question_to_many_knowledge_bases_embeds_no_more_for_it(start_platform: Start) -> None:
    """The best of each is among them."""
    waits = WholeBatchesWait()
    running = await start_platform("rag", "extractive_answers", waits)
    ann = await somebody(running)
    bases = [await make_base(ann, chunk_size=100, chunk_overlap=0) for _ in range(3)]
    for number, base in enumerate(bases, start=1):
        text = ABOUT if number == len(bases) else LONG.replace("Line", f"Walrus {number}, line")
        assert (await upload(ann, base, f"{number}.txt", text)).status == 202
    working = asyncio.gather(*(running.run_jobs() for _ in bases))
    pipeline = await make_pipeline(ann, *bases)
    async with asyncio.timeout(30):
        for _ in range(UNDER_WAY * len(bases)):
            await waits.waiting.acquire()
        answer = await ask(ann, pipeline, QUESTION, top_k=MOST_EMBEDDED)
        assert 0 < waits.few <= MOST_EMBEDDED
        assert any("mussels" in one["text"] for one in answer["sources"])
        waits.go.set()
        await working


async def test_the_part_of_a_long_passage_that_fits_is_embedded(start_platform: Start) -> None:
    """So that a question costs the same however long passages are."""
    waits = WholeBatchesWait()
    running = await start_platform("rag", "extractive_answers", waits)
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=1500, chunk_overlap=0)
    filler = " ".join(f"Whales and seals swim {number} miles in the cold sea." for number in range(14_000))
    place = filler.index("Whales", 9_000)
    text = f"{filler[:place]}The walrus in Tromsø eats 25 kilos of mussels a day. {filler[place:]}"
    assert (await upload(ann, base, "sea.txt", text)).status == 202
    working = asyncio.create_task(running.run_jobs())
    question = "How many miles do whales and seals swim, and what does the walrus in Tromsø eat?"
    async with asyncio.timeout(60):
        for _ in range(UNDER_WAY):
            await waits.waiting.acquire()
        path = f"/v1/rag/knowledge-bases/{base}/search"
        found = (await ann.post(path, json={"question": question})).json()["items"]
        assert len(found[0]["text"]) > 1000 and "mussels" in found[0]["text"]
        assert waits.few == MOST_EMBEDDED and waits.longest <= MOST_CHARS
        waits.go.set()
        await working


async def test_what_has_its_vector_is_not_embedded_for_a_question(start_platform: Start) -> None:
    async with being_read(start_platform) as site:
        vectors, gate = site.running.platform.resource(VECTORS), site.gate
        async with asyncio.timeout(30):
            while gate.batches < UNDER_WAY:  # noqa: ASYNC110  # no notice of it is sent
                await asyncio.sleep(0.02)
            first, gate.go = gate.go, asyncio.Event()
            gate.stop_before, gate.all_after = gate.batches + 1, True
            first.set()
            seen = gate.batches * BATCH
            while gate.batches < 2 * UNDER_WAY or await vectors.count(f"rag:{site.base}") < seen:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            found = await site.hits(
                question="Line 3 of a text", hybrid=False
            )  # embedding a passage would wait
        assert len(found) == 5 and gate.batches == 2 * UNDER_WAY


async def test_a_search_finds_by_an_index_that_nothing_is_read(start_platform: Start) -> None:
    """However many documents its knowledge base has."""
    running = await start_platform("rag", HashEmbeddings())

    def plan(session: Session) -> list[str]:
        connection, sent = session.connection(), list[tuple[str, Any]]()
        event.listen(connection, "before_cursor_execute", lambda *given: sent.append((given[2], given[3])))
        assert bases_with_early_words(session, ["1", "2"], Scope(1)) == frozenset()
        statement, values = sent[0]
        return [step.detail for step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)]

    steps = await running.platform.database.read(plan)
    assert [one for one in steps if "rag_document" in one] == [
        "SEARCH rag_document USING INDEX ix_rag_document_early (knowledge_base_id=?)"
    ]


async def test_a_version_that_was_never_complete_leaves_no_passages(start_platform: Start) -> None:
    """Its next version is complete first, while some of it is found by meaning already."""
    async with being_read(start_platform, path="seals.txt") as site:
        vectors = site.running.platform.resource(VECTORS)
        first, site.gate.go = site.gate.go, asyncio.Event()
        site.gate.stop_before = site.gate.batches + 1
        first.set()
        async with asyncio.timeout(30):
            while not await vectors.count(f"rag:{site.base}"):  # noqa: ASYNC110  # no notice of it is sent
                await asyncio.sleep(0.02)
        site.gate.all_after = False
        next_one = await put(site.ann, site.base, "seals.txt", "The seals of Tromsø sleep.\n")
        await site.running.run_jobs()
        shown = await record(site.ann, site.base, next_one.json()["document_id"])
        assert shown["status"] == "completed"
        chunks = (await site.ann.get(path_of(site.base, site.document, "/chunks"))).json()
        assert chunks["total"] == 0
        assert await vectors.count(f"rag-earlier:{site.base}") == 0
        assert await site.left() == 0


@asynccontextmanager
async def scan_being_read(
    start_platform: Start, folder: Path, most_chars: int = 100_000
) -> AsyncIterator[BeingRead]:
    """Its first pages are found, later ones are still recognized; each is a passage of some 70 characters."""
    pages = [
        [f"The walrus of page {number} has eaten", f"{number + 20} kilos of mussels in Tromso."]
        for number in range(1, SCANNED + 1)
    ]
    file = documents.scan(folder / "scan.pdf", pages)
    gate = GatedEmbeddings(0)
    env = {"PLATFORM_RAG_MAX_TEXT_CHARS": str(most_chars)}
    running = await start_platform("rag", "extractive_answers", gate, env=env)
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=100, chunk_overlap=0)
    document = (await upload(ann, base, "scan.pdf", file.read_bytes())).json()["document_id"]
    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(120):
        while not (await record(ann, base, document))["searchable_count"]:  # noqa: ASYNC110  # no notice of it
            await asyncio.sleep(0.02)
        yield BeingRead(running, gate, ann, base, document)
        await working


@needs_tesseract
async def test_a_scan_is_found_page_by_page(start_platform: Start, tmp_path: Path) -> None:
    async with scan_being_read(start_platform, tmp_path) as site:
        shown = await record(site.ann, site.base, site.document)
        assert shown["status"] == "processing" and 0 < shown["searchable_count"] < SCANNED
        first, *_ = await site.hits(question="What has the walrus of page 1 eaten?")
        assert (first["page"], first["being_read"]) == (1, True) and "21 kilos" in first["text"]
    shown = await record(site.ann, site.base, site.document)
    assert (shown["status"], shown["searchable_count"]) == ("completed", SCANNED)
    found = await site.hits(question="What has the walrus of page 1 eaten?", top_k=50)
    assert len({one["chunk_id"] for one in found}) == len(found) == SCANNED
    assert await site.left() == 0


@needs_tesseract
async def test_the_first_pages_of_all_scans_are_found_before_the_last_of_one(
    start_platform: Start, tmp_path: Path
) -> None:
    """Also of one account; each is recognized to its end afterwards."""
    running = await start_platform("rag", HashEmbeddings(), env={"PLATFORM_RAG_LARGE_DOCUMENT_MB": "0.001"})
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=100, chunk_overlap=0)
    ids = list[str]()
    for name in ("first", "second", "third"):
        lines = [[f"The {name} walrus of page {page}", "eats mussels in Tromso."] for page in range(SCANNED)]
        data = documents.scan(tmp_path / f"{name}.pdf", lines).read_bytes()
        ids.append((await upload(ann, base, f"{name}.pdf", data)).json()["document_id"])
    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(120):
        shown = [await record(ann, base, one) for one in ids]
        while not all(one["searchable_count"] for one in shown):
            await asyncio.sleep(0.02)
            shown = [await record(ann, base, one) for one in ids]
        assert all(0 < one["searchable_count"] < SCANNED for one in shown)
        await working
    shown = [await record(ann, base, one) for one in ids]
    assert [(one["status"], one["chunk_count"]) for one in shown] == [("completed", SCANNED)] * 3


@needs_tesseract
@pytest.mark.parametrize("end", ["fail", "cancel", "delete"])
async def test_nothing_is_left_of_a_scan_that_ends(start_platform: Start, tmp_path: Path, end: str) -> None:
    """Failing: there is more text than one document may have, which its last pages show."""
    async with scan_being_read(start_platform, tmp_path, 60 * SCANNED if end == "fail" else 100_000) as site:
        if end == "cancel":
            path = f"/v1/rag/knowledge-bases/{site.base}/ingestion/cancel"
            assert (await site.ann.post(path)).status == 200
        elif end == "delete":
            assert (await site.ann.delete(path_of(site.base, site.document))).status in (200, 204)
    if end != "delete":
        shown = await record(site.ann, site.base, site.document)
        assert (shown["status"], shown["searchable_count"]) == ("failed", 0)
    assert await site.hits() == []
    assert await site.left() == 0
