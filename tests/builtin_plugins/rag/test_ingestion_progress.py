"""How far a document is: counted in pages or passages, with a total, and how long the rest will take."""

from __future__ import annotations

import asyncio
import itertools
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import update

from builtin_plugins.documents.chunking import Chunk
from builtin_plugins.documents.protocol import ParserPosition
from builtin_plugins.documents.runner import ParsedDocument
from builtin_plugins.rag.models import Document
from builtin_plugins.rag.services.ingest import ReadingProgress
from kernel.db.tables import JobRecord
from kernel.sdk import Progress, utc_now
from kernel.testing import Actor, Running, Start
from tests.builtin_plugins.rag.rag_support import make_base, record, somebody, upload
from tests.fakes.gated_embeddings import GatedEmbeddings
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.rows import execute


async def test_a_table_counts_its_passages(start_platform: Start) -> None:
    """While a table is read, its passages are counted, of how many, and it is known how long that takes, by
    their own pace: here after a parse of twenty minutes.
    """
    gate = GatedEmbeddings(4, all_after=True)
    running = await start_platform("rag", gate)
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=200, chunk_overlap=0)
    rows = "\n".join(f"{number},lamp {number},{number % 7} pieces on the shelf" for number in range(2_500))
    document = (await upload(ann, base, "stock.csv", f"id,name,stock\n{rows}")).json()["document_id"]
    seen: list[dict[str, Any]] = []

    async def look() -> None:
        opened = update(JobRecord).where(JobRecord.subject == document, JobRecord.status == "running")
        await execute(running.platform.database, opened.values(started_at=utc_now() - timedelta(minutes=20)))
        job = (await ann.get(f"/v1/jobs?subject={document}")).json()["items"][0]
        state = (await ann.get(f"/v1/rag/knowledge-bases/{base}/ingestion")).json()
        seen.append({**job, "state": state, "document": await record(ann, base, document)})

    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(60):
        while not working.done():
            await look()
            if seen[-1]["progress"]["done"] and seen[-1]["document"]["chunk_count"]:
                gate.go.set()
            await asyncio.sleep(0.02)
        await working
    await look()
    count = seen[-1]["document"]["chunk_count"]
    assert seen[-1]["progress"] == {"done": count, "total": count, "unit": "passages"} and count > 500
    under_way = [one for one in seen if 0 < one["progress"]["done"] < count]
    assert under_way and all(one["progress"]["total"] == count for one in under_way)
    told = [one["progress"]["done"] for one in seen]
    assert told == sorted(told)
    assert under_way[0]["message"] == f"Embedding passage {under_way[0]['progress']['done']} of {count}"
    assert any(0 < one["document"]["chunk_count"] < count for one in under_way)
    assert 0 < under_way[0]["eta_seconds"] < 120 and 0 < under_way[0]["state"]["eta_seconds"] < 120


class Desk:
    """Documents as a worker would have them under way."""

    def __init__(self, running: Running, ann: Actor, base: str) -> None:
        self.running = running
        self.ann = ann
        self.base = base

    async def document(self, name: str, size: int, waited: int, **values: object) -> str:
        document_id = str(
            (await upload(self.ann, self.base, name, f"One text: {name}")).json()["document_id"]
        )
        fresh = {"size_bytes": size, "uploaded_at": utc_now() - timedelta(seconds=waited), **values}
        fresh["content_type"] = f"application/{name.rpartition('.')[2]}"
        await self._change(update(Document).where(Document.id == document_id).values(fresh))
        return document_id

    async def completed(self, name: str, size: int) -> None:
        """A document that was read in the last ten seconds."""
        values = {"status": "completed", "completed_at": utc_now(), "chunk_count": 10}
        await self.document(name, size, waited=10, **values)

    async def read(
        self, document_id: str, done: int, total: int | None, took: int, parse: int = 0, before: int = 0
    ) -> None:
        """`took`, of which `parse`, are seconds; `before` is what was done when the counting began."""
        values = {
            "status": "running",
            "done": done,
            "total": total,
            "started_at": utc_now() - timedelta(seconds=took),
            "progress_at": utc_now(),
            "paced_since": utc_now() - timedelta(seconds=took - parse) if parse else None,
            "paced_from": before,
        }
        await self._change(update(JobRecord).where(JobRecord.subject == document_id).values(values))

    async def simulate(self, document_id: str, plan: Plan, moment: int) -> None:
        """Its state so many seconds after all were uploaded; it is read at an even pace."""
        now = utc_now()

        def at(second: int) -> datetime:
            return now - timedelta(seconds=moment - second)

        if moment < plan.begin:
            document: dict[str, object] = {"status": "processing"}
            job: dict[str, object] = {"status": "queued"}
        elif moment < plan.end:
            done = 100 * (moment - plan.begin) // (plan.end - plan.begin)
            document = {"status": "processing"}
            job = {"status": "running", "started_at": at(plan.begin), "progress_at": now, "done": done}
        else:
            document = {"status": "completed", "completed_at": at(plan.end)}
            job = {"status": "done", "started_at": at(plan.begin), "finished_at": at(plan.end), "done": 100}
        change = update(Document).where(Document.id == document_id)
        await self._change(change.values(uploaded_at=at(0), **document))
        await self._change(
            update(JobRecord).where(JobRecord.subject == document_id).values(total=100, paced_from=0, **job)
        )

    async def state(self) -> dict[str, Any]:
        return dict((await self.ann.get(f"/v1/rag/knowledge-bases/{self.base}/ingestion")).json())

    async def _change(self, statement: Any) -> None:
        await execute(self.running.platform.database, statement)


@pytest.fixture
async def desk(start_platform: Start) -> Desk:
    running = await start_platform("rag", HashEmbeddings())
    ann = await somebody(running)
    return Desk(running, ann, await make_base(ann))


async def test_time_left_of_one_document(desk: Desk) -> None:
    """It follows from the document's own progress, and the hour that it waited counts for nothing."""
    book = await desk.document("book.pdf", 1_000_000, waited=3_600)
    await desk.read(book, 0, None, took=100)
    assert (await desk.state())["eta_seconds"] is None
    await desk.read(book, 25, 100, took=100)
    assert 290 <= (await desk.state())["eta_seconds"] <= 300


async def test_time_left_after_a_long_parse(desk: Desk) -> None:
    """A document goes by the pace since its passages are counted; one that waits will be parsed, too."""
    book = await desk.document("book.pdf", 1_000_000, waited=3_600)
    await desk.read(book, 20, 100, took=1_010, parse=1_000)
    assert 35 <= (await desk.state())["eta_seconds"] <= 45
    await desk.document("waits.pdf", 1_000_000, waited=3_600)
    assert 1_050 <= (await desk.state())["eta_seconds"] <= 1_130


async def test_recognized_pages_say_nothing_about_embedding(desk: Desk) -> None:
    """Only what was done since the passages are counted is a measure of the rest."""
    scan = await desk.document("scan.pdf", 1_000_000, waited=3_600)
    await desk.read(scan, 41, 100, took=1_001, parse=1_000, before=40)
    assert (await desk.state())["eta_seconds"] is None
    await desk.read(scan, 60, 100, took=1_010, parse=1_000, before=40)
    assert 18 <= (await desk.state())["eta_seconds"] <= 22


async def test_time_left_of_several(desk: Desk) -> None:
    """Others of its kind that wait take as long in proportion to their size; the slowest sets the least."""
    book = await desk.document("book.pdf", 1_000_000, waited=3_600)
    await desk.read(book, 50, 100, took=100)
    await desk.document("waits.pdf", 2_000_000, waited=3_600)
    assert 490 <= (await desk.state())["eta_seconds"] <= 510
    for number in range(2):
        await desk.completed(f"{number}.pdf", 30_000_000)
    assert 90 <= (await desk.state())["eta_seconds"] <= 110


async def test_time_left_goes_by_kinds(desk: Desk) -> None:
    """A file says nothing about one of another kind: a scan takes more by the byte than a table. Of several
    kinds, each by its own pace, the slowest counts; while one is unknown, nothing is said.
    """
    await desk.completed("small.pdf", 1_000)
    scan = await desk.document("scan.tiff", 7_000_000, waited=10)
    await desk.read(scan, 0, 20, took=5)
    assert (await desk.state())["eta_seconds"] is None
    await desk.document("report.pdf", 30_000_000, waited=10)
    await desk.completed("large.tiff", 7_000_000)
    await desk.completed("large.pdf", 9_999_000)
    assert 25 <= (await desk.state())["eta_seconds"] <= 35
    await desk.document("letter.docx", 10_000, waited=10)
    assert (await desk.state())["eta_seconds"] is None


async def test_a_little_says_nothing_about_much(desk: Desk) -> None:
    """A small file says nothing about one of a hundred times its size, nor a first page about many: both said
    hours where it took seconds. What says enough is used, also for the others of its kind.
    """
    await desk.completed("note.pdf", 1_000)
    report = await desk.document("report.pdf", 180_000, waited=300)
    assert (await desk.state())["eta_seconds"] is None
    await desk.read(report, 1, 72, took=300)
    assert (await desk.state())["eta_seconds"] is None
    await desk.read(report, 18, 72, took=10)
    assert 25 <= (await desk.state())["eta_seconds"] <= 35
    await desk.document("second.pdf", 180_000, waited=300)
    assert 60 <= (await desk.state())["eta_seconds"] <= 80
    await desk.document("archive.pdf", 18_000_000, waited=300)
    assert (await desk.state())["eta_seconds"] is None


async def test_time_left_is_never_none_at_all(desk: Desk) -> None:
    await desk.completed("large.tiff", 900_000_000)
    await desk.document("small.tiff", 10, waited=10)
    assert (await desk.state())["eta_seconds"] == 1


async def test_passages_of_the_last_minutes(desk: Desk) -> None:
    """Of a document that has been read for an hour, those of the last five minutes count for the rate."""
    book = await desk.document("book.pdf", 1_000_000, waited=3_600, chunk_count=36_000)
    await desk.read(book, 50, 100, took=3_600)
    assert 9.5 <= (await desk.state())["passages_per_second"] <= 10.5


@pytest.mark.parametrize(
    ("pages", "recognized", "chars", "unit", "total"),
    [
        (300, 0, 600_000, "pages", 300),
        (300, 300, 600_000, "pages", 300),
        (300, 40, 600_000, "pages", 300),
        (1, 1, 3_000, "pages", 1),
        (None, 0, 600_000, "passages", 600),
        (3, 0, 600_000, "passages", 600),  # sheets
    ],
)
def test_progress_grows_to_its_total(
    pages: int | None, recognized: int, chars: int, unit: str, total: int
) -> None:
    """What is done never becomes less, is never more than there is, and is all of it at last."""
    progress, told = Progress(), list[tuple[int, int | None]]()
    shown = ReadingProgress(progress)
    shown.begin()
    for page in range(1, (pages or 0) + 1):
        shown.reading(
            ParserPosition(page, pages if unit == "pages" and pages else 0, min(page - 1, recognized))
        )
        told.append((progress.done, progress.total))
    shown.count(ParsedDocument(chars, pages, Path("sink"), 0, recognized), 600, 0)
    told.append((progress.done, progress.total))
    for index in range(95, 600, 96):
        page = None if pages is None else max(1, pages * index // 600)
        shown.embedded(Chunk(index, "", page, 0, 0))
        told.append((progress.done, progress.total))
    shown.complete()
    counted = [done for done, _ in told]
    assert told[pages or 0][1] == total  # before the first is embedded, which may take long
    assert counted == sorted(counted) and all(0 <= done <= total for done in counted)
    assert {among for _, among in told} <= {None, total}
    assert (progress.done, progress.total, progress.unit) == (total, total, unit)


def test_scans_are_done_as_they_are_recognized() -> None:
    """Recognizing is most of the work on a scan, so its pages count then, and what is left is embedding."""
    progress = Progress()
    shown = ReadingProgress(progress)
    shown.reading(ParserPosition(3, 12, 2))
    assert (progress.done, progress.total, progress.unit) == (2, 12, "pages")
    assert progress.message == "Reading page 3 of 12"
    shown.reading(ParserPosition(1_000, 1_200, 999))
    assert progress.message == "Reading page 1,000 of 1,200" and 890 <= progress.done <= 910


def test_a_second_run_begins_where_it_was() -> None:
    """After a crash what is told goes on; a job of an earlier release counted characters, which are left."""
    progress = Progress(50, 100, "pages")
    shown = ReadingProgress(progress)
    shown.reading(ParserPosition(2, 100, 1))
    assert progress.done == 50
    old = Progress(70_000, 200_000, "characters")
    shown = ReadingProgress(old)
    shown.count(ParsedDocument(200_000, None, Path("sink")), 200, 0)
    shown.embedded(Chunk(95, "", None, 0, 0))
    assert (old.done, old.total, old.unit) == (96, 200, "passages")


def test_a_second_run_tells_the_next_passage() -> None:
    progress = Progress()
    shown = ReadingProgress(progress)
    shown.count(ParsedDocument(900_000, None, Path("sink")), 1_174, 480)
    assert (progress.message, progress.done) == ("Embedding passage 481 of 1,174", 480)
    shown.count(ParsedDocument(900_000, None, Path("sink")), 1_174, 1_174)
    assert progress.message == "Embedding passage 1,174 of 1,174"


def test_a_page_that_is_not_one_of_many() -> None:
    progress = Progress()
    for page in itertools.islice(itertools.count(1), 3):
        ReadingProgress(progress).reading(ParserPosition(page))
    assert (progress.message, progress.total) == ("Reading page 3", None)


class Plan(NamedTuple):
    """A document of a simulated ingestion: from when to when it is read, in seconds, and its bytes."""

    name: str
    begin: int
    end: int
    size: int


def _in_turn(kind: str, seconds: int, count: int, since: int = 0, lane: int = 0) -> list[Plan]:
    """Documents that one worker reads one after the other, at 1,000 bytes a second."""
    return [
        Plan(
            f"{lane}-{number}.{kind}",
            since + number * seconds,
            since + (number + 1) * seconds,
            seconds * 1_000,
        )
        for number in range(count)
    ]


@pytest.mark.parametrize(
    "plans",
    [
        _in_turn("pdf", 1_200, 6),
        [*_in_turn("pdf", 1_200, 4), *_in_turn("pdf", 1_200, 4, lane=1)],
        [*_in_turn("pdf", 900, 4), *_in_turn("pdf", 400, 9, lane=1)],
        [*_in_turn("pdf", 20, 12), *_in_turn("tiff", 700, 4, since=240)],
        [*_in_turn("tiff", 700, 3), *_in_turn("pdf", 60, 20, since=2_100)],
        _in_turn("pdf", 20, 20),
    ],
    ids=["long", "two workers", "uneven", "short, then long", "long, then short", "short"],
)
async def test_estimates_are_within_a_factor_of_two(desk: Desk, plans: list[Plan]) -> None:
    """Whenever somebody looks, the time left is near the truth, or isn't told."""
    end = max(plan.end for plan in plans)
    documents = [await desk.document(plan.name, plan.size, waited=0) for plan in plans]
    told = []
    for moment in range(end // 40, end, end // 13):
        for document, plan in zip(documents, plans, strict=True):
            await desk.simulate(document, plan, moment)
        eta = (await desk.state())["eta_seconds"]
        told.append((moment, eta, end - moment))
    wrong = [one for one in told if one[1] is not None and not one[2] / 2 <= one[1] <= one[2] * 2]
    known = [one for one in told if one[1] is not None]
    assert not wrong and len(known) >= len(told) / 4, told
