"""Documents over HTTP: every format end to end, passages in their places, deletion without a trace."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import secrets
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from builtin_plugins.documents.blocks import parsed_text
from builtin_plugins.documents.parsers import BUILTIN_PARSERS
from builtin_plugins.documents.protocol import read_blocks
from builtin_plugins.documents.runner import ParseLimits, parse, parser_processes
from builtin_plugins.vectors.api import VECTORS
from kernel.db.tables import JobRecord
from kernel.sdk import Event, Plugin, hookimpl
from kernel.testing import Actor, Running, Start
from tests.builtin_plugins.documents import sample_documents as documents
from tests.builtin_plugins.rag.rag_support import (
    HANDBOOK,
    ask,
    ingest,
    make_base,
    make_pipeline,
    path_of,
    record,
    somebody,
    upload,
)
from tests.fakes.hash_embeddings import HashEmbeddings

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIMITS = ParseLimits(2048, 60, 60, 10_000_000)
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def rows_of_csv() -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows([["part", "price"], *[[f"part {n}", f"{n} EUR"] for n in range(60)]])
    return out.getvalue().encode()


@dataclass(frozen=True)
class Kind:
    """A format: how to make a file of it, and what ingestion should find."""

    name: str
    media_type: str
    make: Callable[[Path], bytes]
    pages: int | None


def read(path: Path) -> bytes:
    return path.read_bytes()


PAGES = [documents.prose(30), documents.prose(5, 100), documents.prose(30, 200)]
KINDS = [
    Kind("a.pdf", "application/pdf", lambda path: read(documents.pdf(path, PAGES)), 3),
    Kind(
        "a.docx",
        WORD,
        lambda path: read(
            documents.word(path, lambda d: [d.add_paragraph(line) for line in documents.prose(40)])
        ),
        None,
    ),
    Kind(
        "a.xlsx",
        SHEET,
        lambda path: read(
            documents.workbook(
                path, {"Parts": [["part", "price"], *[[f"p{n}", n] for n in range(99)]], "B": [["x"], ["y"]]}
            )
        ),
        2,
    ),
    Kind("a.csv", "text/csv", lambda _: rows_of_csv(), None),
]  # fmt: skip


async def parsed(path: Path, media_type: str) -> str:
    parser = next(parser for parser in BUILTIN_PARSERS if media_type in parser.media_types)
    async with aclosing(parser_processes()) as children:
        found = await parse(children, path, parser, LIMITS, path.parent / "sink.jsonl")
    return parsed_text(read_blocks(found.sink))


async def chunks_of(actor: Actor, base: str, document: str) -> list[dict[str, Any]]:
    """All passages, by pages of 7."""
    found: list[dict[str, Any]] = []
    while True:
        answer = await actor.get(path_of(base, document, f"/chunks?limit=7&offset={len(found)}"))
        assert answer.status == 200
        body = answer.json()
        found += body["items"]
        if len(found) >= body["total"]:
            assert len(found) == body["total"]
            return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_every_format(running: Running, ann: Actor, tmp_path: Path, kind: Kind) -> None:
    base = await make_base(ann, chunk_size=300, chunk_overlap=40)
    content = kind.make(tmp_path / "made")
    document = await ingest(running, ann, base, f"misnamed{secrets.token_hex(2)}", content)
    assert (document["status"], document["error"]) == ("completed", None), document
    if kind.media_type == "text/csv":
        assert document["content_type"] in (kind.media_type, "text/plain")
    else:
        assert document["content_type"] == kind.media_type
    assert document["page_count"] == kind.pages
    assert document["completed_at"] >= document["uploaded_at"]
    passages = await chunks_of(ann, base, document["document_id"])
    assert len(passages) == document["chunk_count"] == document["vector_count"] > 0
    (tmp_path / "again").write_bytes(content)
    text = await parsed(tmp_path / "again", document["content_type"])
    for number, passage in enumerate(passages):
        assert passage["chunk_index"] == number
        assert passage["text"] == text[passage["char_start"] : passage["char_end"]] != ""
    pages = {passage["page"] for passage in passages}
    assert pages == (set(range(1, kind.pages + 1)) if kind.pages else {None})
    covered = {at for passage in passages for at in range(passage["char_start"], passage["char_end"])}
    assert not [at for at, char in enumerate(text) if not char.isspace() and at not in covered]
    back = await ann.get(path_of(base, document["document_id"], "/content"))
    assert back.body == content


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: read(documents.pdf(path, PAGES, password="secret")), "password"),
        (lambda path: read(documents.pdf(path, [[], []])), "No text"),
        (lambda path: read(documents.pdf(path, PAGES))[:700], "damaged"),
        (lambda _: b"%PDF-1.7\n%nothing of the kind", "damaged"),
        (lambda _: b" \n\t \n", "No text"),
        (lambda path: read(documents.slides(path, [("", "")])), "No text"),
    ],
)
async def test_what_cannot_become_text_fails_with_its_reason(
    running: Running, ann: Actor, base: str, tmp_path: Path, make: Callable[[Path], bytes], says: str
) -> None:
    document = await ingest(running, ann, base, "a.pdf", make(tmp_path / "made"))
    assert document["status"] == "failed" and document["completed_at"]
    assert says in document["error"] and "Error" not in document["error"]
    assert (document["chunk_count"], document["vector_count"]) == (0, 0)
    assert await running.platform.resource(VECTORS).staged(f"rag:{base}", document["document_id"]) == 0
    shown = (await ann.get(path_of(base, document["document_id"], "/chunks"))).json()
    assert (shown["items"], shown["total"]) == ([], 0)
    assert (await ann.get(path_of(base, document["document_id"], "/content"))).status == 200
    assert (await ann.delete(path_of(base, document["document_id"]))).status == 200


class TestList:
    async def test_all_on_one_page(self, running: Running, ann: Actor, base: str) -> None:
        """Without a limit the page is the whole, oldest first, and says so; with one it is a slice."""
        made = [
            (await upload(ann, base, f"{n}.txt", f"Text number {n} of {base}.")).json()["document_id"]
            for n in range(4)
        ]
        path = f"/v1/rag/knowledge-bases/{base}/documents"
        whole = (await ann.get(path)).json()
        assert [item["document_id"] for item in whole["items"]] == made
        assert (whole["total"], whole["limit"], whole["offset"]) == (4, 4, 0)
        part = (await ann.get(f"{path}?limit=2&offset=1")).json()
        assert [item["document_id"] for item in part["items"]] == made[1:3]
        assert (part["total"], part["limit"], part["offset"]) == (4, 2, 1)
        rest = (await ann.get(f"{path}?offset=3")).json()
        assert [item["document_id"] for item in rest["items"]] == made[3:]
        beyond = (await ann.get(f"{path}?offset={2**53}")).json()
        assert (beyond["items"], beyond["total"]) == ([], 4)
        assert (await (await somebody(running)).get(path)).status == 404
        assert (await ann.get(f"{path}?status=failed")).json()["total"] == 0
        await running.run_jobs()
        assert (await ann.get(f"{path}?status=completed")).json()["total"] == 4


class TestContent:
    async def test_is_a_download(self, running: Running, ann: Actor, base: str) -> None:
        """A page that somebody uploaded is never shown as one of ours."""
        page = b"<!doctype html><html><body><script>alert(1)</script>Words.</body></html>"
        document = (await upload(ann, base, "page.html", page)).json()["document_id"]
        answer = await ann.get(path_of(base, document, "/content"))
        assert answer.body == page
        assert answer.headers["Content-Type"] == "application/octet-stream"
        assert answer.headers["Content-Disposition"].startswith("attachment;")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        head = await ann.request("HEAD", path_of(base, document, "/content"))
        assert (head.status, head.headers["Content-Length"]) == (200, str(len(page)))
        await running.run_jobs()

    async def test_tells_of_nobody_else(self, running: Running) -> None:
        """Equal bytes are one file; whoever has them, too, is not told so, nor since when."""
        content, tags = b"Both of us keep this.", set[str]()
        for _ in range(2):
            actor = await somebody(running)
            base = await make_base(actor)
            path = path_of(base, (await upload(actor, base, "both.txt", content)).json()["document_id"])
            kept = await running.platform.blobs.local(hashlib.sha256(content).hexdigest())
            os.utime(kept, (1_000_000_000, 1_000_000_000))
            answer, document = await actor.get(f"{path}/content"), (await actor.get(path)).json()
            uploaded = datetime.fromisoformat(document["uploaded_at"]).replace(microsecond=0)
            assert parsedate_to_datetime(answer.headers["Last-Modified"]) == uploaded
            assert answer.headers["Cache-Control"] == "private, no-cache"
            tags.add(answer.headers["ETag"])
            for condition in (answer.headers["ETag"], answer.headers["Last-Modified"]):
                wanted = {"Range": "bytes=0-3", "If-Range": condition}
                assert (await actor.get(f"{path}/content", headers=wanted)).body == b"Both"
            since = {"If-Modified-Since": answer.headers["Last-Modified"]}
            assert (await actor.get(f"{path}/content", headers=since)).status == 304
        assert len(tags) == 1
        await running.run_jobs()

    async def test_a_part_of_it(self, running: Running, ann: Actor, base: str) -> None:
        """A viewer may ask for a range; one past the end is refused, saying how long the document is."""
        document = (await upload(ann, base)).json()["document_id"]
        path = path_of(base, document, "/content")
        part = await ann.get(path, headers={"Range": "bytes=2-8"})
        assert (part.status, part.body) == (206, HANDBOOK.encode()[2:9])
        beyond = await ann.get(path, headers={"Range": "bytes=99999-"})
        assert (beyond.status, beyond.json()["code"]) == (416, "range_not_satisfiable")
        assert beyond.headers["Content-Range"] == f"bytes */{len(HANDBOOK.encode())}"
        assert (await ann.get(path, headers={"Range": "lines=0-5"})).body == HANDBOOK.encode()
        await running.run_jobs()

    async def test_answers_are_declared(self, running: Running, ann: Actor, base: str) -> None:
        """Who has it already, or has another, gets a status that the API's document names."""
        document = (await upload(ann, base)).json()["document_id"]
        path = path_of(base, document, "/content")
        tag = (await ann.get(path)).headers["ETag"]
        sent = [{"If-None-Match": tag}, {"If-Match": '"another"'}, {"Range": "bytes=0-1"}]
        found = [(await ann.get(path, headers=headers)).status for headers in sent]
        assert found == [304, 412, 206]
        paths = (await ann.get("/openapi.json")).json()["paths"]
        declared = paths["/v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/content"]["get"]
        assert set(map(str, found)) <= declared["responses"].keys()
        await running.run_jobs()


class TestDelete:
    async def test_counts_and_answers(self, running: Running, ann: Actor, base: str) -> None:
        """The counts drop, no answer shows it, deleting it again is 404; the others stay as they were."""
        gone = await ingest(running, ann, base)
        kept = await ingest(running, ann, base, "kept.md", "# Parking\n\nParking costs 5 EUR a day.")
        pipeline = await make_pipeline(ann, base)
        path = path_of(base, gone["document_id"])
        deleted = (await ann.delete(path)).json()
        assert deleted.pop("receipt")["digest"] == gone["sha256"]
        assert deleted == {"message": "Document deleted", "id": gone["document_id"], "trashed": False}
        assert (await ann.delete(path)).status == 404
        shown = (await ann.get(f"/v1/rag/knowledge-bases/{base}")).json()
        assert (shown["document_count"], shown["vector_count"]) == (1, kept["chunk_count"])
        for hybrid in (False, True):
            answer = await ask(ann, pipeline, "What may a hotel cost?", hybrid=hybrid, top_k=50)
            assert gone["document_id"] not in {source["document_id"] for source in answer["sources"]}
            answer = await ask(ann, pipeline, "What does parking cost?", hybrid=hybrid)
            assert "5 EUR" in answer["answer"]

    async def test_uploading_it_again_starts_anew(self, running: Running, ann: Actor, base: str) -> None:
        first = await ingest(running, ann, base)
        assert (await ann.delete(path_of(base, first["document_id"]))).status == 200
        second = await ingest(running, ann, base)
        assert second["document_id"] != first["document_id"]
        assert (await record(ann, base, second["document_id"]))["status"] == "completed"


@pytest.mark.asyncio(loop_scope="function")
async def test_which_documents_wait_with_the_large_ones(start_platform: Start) -> None:
    """Those of more than the megabytes that the operator set, to the byte; others pass them."""
    running = await start_platform(
        "rag", "extractive_answers", HashEmbeddings(), env={"PLATFORM_RAG_LARGE_DOCUMENT_MB": "0.03125"}
    )
    ann = await somebody(running)
    base = await make_base(ann)
    lanes: dict[int, str] = {}
    for size in (32 * 1024, 32 * 1024 + 1):
        made = (await upload(ann, base, f"{size}.txt", b"a" * size)).json()
        lane = select(JobRecord.lane).where(JobRecord.subject == made["document_id"])
        lanes[size] = await running.platform.database.read(Session.scalar, lane)
    assert lanes == {32 * 1024: "standard", 32 * 1024 + 1: "large"}


class Listener(Plugin):
    """Hears of documents, so that their events are stored."""

    name = "listener"

    def __init__(self) -> None:
        self.heard: list[str] = []

    @hookimpl
    def on_event(self, event: Event) -> None:
        self.heard.append(event.event_name)


def places_of(home: Path, *phrases: bytes) -> list[str]:
    files = [path for path in home.rglob("*") if path.is_file()]
    return [str(path.relative_to(home)) for path in files if any(p in path.read_bytes() for p in phrases)]


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize("whole_base", [False, True])
async def test_nothing_is_left_on_the_disk(start_platform: Start, whole_base: bool) -> None:
    """After the answer, no byte of text or name is in any file of the home: rows, log, blobs, scratch.

    Only the receipt in the audit log keeps the digest of the content.
    """
    listener = Listener()
    running = await start_platform("rag", "extractive_answers", HashEmbeddings(), listener)
    home = running.platform.settings.home
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=200)
    phrase, name = f"zyx{secrets.token_hex(8)}", f"nym{secrets.token_hex(8)}.txt"
    text = "\n".join(f"{line} {phrase} {at}" for at, line in enumerate(documents.prose(300)))
    document = await ingest(running, ann, base, name, text)
    assert document["chunk_count"] > 100
    pipeline = await make_pipeline(ann, base)
    answer = await ask(ann, pipeline, text.splitlines()[0], hybrid=True)
    assert answer["sources"]
    sought = phrase.encode(), name.encode()
    assert len(places_of(home, *sought)) >= 2
    failed = await ingest(running, ann, base, f"broken-{name}", f"%PDF-1.4 {phrase}")
    assert failed["status"] == "failed"
    assert (await ann.delete(f"/v1/rag/pipeline/{pipeline}")).status == 200
    if whole_base:
        assert (await ann.delete(f"/v1/rag/knowledge-bases/{base}")).status == 200
    else:
        for one in (document, failed):
            assert (await ann.delete(path_of(base, one["document_id"]))).status == 200
    await running.run_jobs()
    assert listener.heard.count("rag.document_ingested") == 1
    assert listener.heard.count("rag.document_deleted") == 2
    assert places_of(home, *sought) == []
    assert not [path for path in (home / "blobs").rglob("*") if path.is_file()]


async def test_lists_are_read_in_order(running: Running) -> None:
    if running.platform.database.is_sqlite:
        documents = "SELECT * FROM rag_document WHERE knowledge_base_id = '1' ORDER BY uploaded_at, id"
        for query in (documents, "SELECT * FROM rag_knowledge_base ORDER BY created_at, id"):
            explain = text(f"EXPLAIN QUERY PLAN {query}")
            plan = await running.platform.database.read(lambda session, q=explain: session.execute(q).all())
            assert [("in_order" in step.detail, "TEMP" in step.detail) for step in plan] == [(True, False)]
