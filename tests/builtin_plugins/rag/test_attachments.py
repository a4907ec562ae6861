"""Documents attached to a question: asked alone or beside a pipeline's, by those who may read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import (
    HANDBOOK,
    NOWHERE,
    ask,
    ask_raw,
    ingest,
    make_base,
    make_pipeline,
    path_of,
    problems,
    somebody,
)
from tests.builtin_plugins.rag.test_versions import form_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

INVOICE = "# Invoice 77\n\nHotel Lindholm, Oslo. The total of this invoice is 268 EUR for two nights.\n"
OTHER = "# Invoice 12\n\nHotel Fjord, Bergen. The total of this invoice is 99 EUR for one night.\n"
TOTAL = "What is the total of this invoice?"
TRAINS = "In which class do employees book trains?"
HOTEL = "How much may a hotel cost per night?"


@dataclass
class Desk:
    """A pipeline over a handbook, and two files in a private knowledge base."""

    ann: Actor
    pipeline: str
    handbook: str
    files: str
    invoice: str
    other: str

    async def sources(self, question: str, **sent: Any) -> list[str]:
        answer = await ask(self.ann, self.pipeline, question, **sent)
        return [source["document_id"] for source in answer["sources"]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def desk(running: Running) -> Desk:
    ann = await somebody(running)
    base, files = await make_base(ann), await make_base(ann, name="Files")
    many = "\n\n".join(f"{HANDBOOK}\nHotels of class {n} cost up to {n + 100} EUR." for n in range(12))
    handbook = await ingest(running, ann, base, "handbook.md", many)
    invoice = await ingest(running, ann, files, "invoice-77.md", INVOICE)
    other = await ingest(running, ann, files, "invoice-12.md", OTHER)
    pipeline = await make_pipeline(ann, base)
    ids = [record["document_id"] for record in (handbook, invoice, other)]
    return Desk(ann, pipeline, ids[0], files, ids[1], ids[2])


async def test_only_attachments(desk: Desk) -> None:
    """Nothing else is asked, not even of the same knowledge base."""
    answer = await ask(desk.ann, desk.pipeline, TOTAL, attachments=[desk.invoice], only_attachments=True)
    assert "268 EUR" in answer["answer"]
    assert {source["document_id"] for source in answer["sources"]} == {desk.invoice}
    refused = await ask(desk.ann, desk.pipeline, HOTEL, attachments=[desk.other], only_attachments=True)
    assert desk.handbook not in {source["document_id"] for source in refused["sources"]}


@pytest.mark.parametrize("hybrid", [True, False])
async def test_beside_a_pipeline(desk: Desk, hybrid: bool) -> None:
    """What answers is found in both, and half of the passages are for what is attached."""
    sent = {"attachments": [desk.invoice], "hybrid": hybrid}
    assert desk.invoice in await desk.sources(TOTAL, **sent)
    assert await desk.sources(TRAINS, top_k=2, **sent) == [desk.handbook, desk.invoice]
    assert await desk.sources(TRAINS, top_k=2, hybrid=hybrid) == [desk.handbook] * 2


async def test_filters(desk: Desk, running: Running) -> None:
    """A filter, a question's or a pipeline's, is for what isn't attached; alone, for what is."""
    narrow = {"filename": "nothing.md"}
    both = await desk.sources(TOTAL, attachments=[desk.invoice], metadata_filter=narrow)
    assert set(both) == {desk.invoice}
    alone = {"attachments": [desk.invoice], "only_attachments": True}
    assert await desk.sources(TOTAL, **alone, metadata_filter=narrow) == []
    assert await desk.sources(TOTAL, **alone, metadata_filter={"filename": "invoice-77.md"})
    bound = await make_pipeline(desk.ann, desk.files, retrieval_config={"metadata_filter": narrow})
    answer = await ask(desk.ann, bound, TOTAL, **alone)
    assert {source["document_id"] for source in answer["sources"]} == {desk.invoice}


async def test_of_others(desk: Desk, running: Running) -> None:
    """Whether a document is somebody else's, in the trash, or nowhere, can't be told."""
    ben = await somebody(running)
    pipeline = await make_pipeline(ben, await make_base(ben))
    answers = [await ask_raw(ben, pipeline, TOTAL, attachments=[one]) for one in (desk.invoice, NOWHERE)]
    gone = (await ingest(running, desk.ann, desk.files, "gone.md", "# Gone\n\nIt is gone.\n"))["document_id"]
    assert (await desk.ann.delete(f"{path_of(desk.files, gone)}?trash=true")).json()["trashed"]
    answers.append(await ask_raw(desk.ann, desk.pipeline, TOTAL, attachments=[desk.invoice, gone]))
    assert {(answer.status, answer.json()["code"], answer.detail) for answer in answers} == {
        (404, "document_not_found", answers[0].detail)
    }


async def test_refusals(desk: Desk) -> None:
    for sent, place in (
        ({"only_attachments": True}, "body"),
        ({"attachments": [NOWHERE] * 21}, "body.attachments"),
        ({"attachments": ["x" * 65]}, "body.attachments.0"),
    ):
        assert place in problems(await ask_raw(desk.ann, desk.pipeline, TOTAL, **sent))


async def test_filters_of_the_same_knowledge_base(desk: Desk, running: Running) -> None:
    """Filters don't apply to what is attached, wherever it is; nor do attachments to the next question."""
    base = await make_base(desk.ann)
    invoice = (await ingest(running, desk.ann, base, "one.md", INVOICE))["document_id"]
    other = (await ingest(running, desk.ann, base, "two.md", OTHER))["document_id"]
    narrow = {"filename": "two.md"}
    for settings in ({}, {"retrieval_config": {"metadata_filter": narrow}}):
        pipeline = await make_pipeline(desk.ann, base, **settings)
        sent = {} if settings else {"metadata_filter": narrow}
        answer = await ask(desk.ann, pipeline, TOTAL, attachments=[invoice], **sent)
        assert {source["document_id"] for source in answer["sources"]} == {invoice, other}
        answer = await ask(desk.ann, pipeline, TOTAL, **sent)
        assert {source["document_id"] for source in answer["sources"]} == {other}


async def test_a_filter_like_an_attachment(desk: Desk, running: Running) -> None:
    """A filter by the same ids is not mixed up with them."""
    base = await make_base(desk.ann)
    one = (await ingest(running, desk.ann, base, "one.md", INVOICE))["document_id"]
    two = (await ingest(running, desk.ann, base, "two.md", OTHER))["document_id"]
    pipeline = await make_pipeline(desk.ann, base)
    beside = await ask(desk.ann, pipeline, TOTAL, attachments=[one])
    assert {source["document_id"] for source in beside["sources"]} == {one, two}
    by_id = {"type": "in", "key": "document_id", "value": [one]}
    answer = await ask(desk.ann, pipeline, TOTAL, metadata_filter=by_id)
    assert {source["document_id"] for source in answer["sources"]} == {one}


async def test_unusual_ids(desk: Desk) -> None:
    """An empty id, or one that no database takes, is one that is nowhere; the same twice is one."""
    for odd in ("", " ", "%", "' OR 1=1"):
        answer = await ask_raw(desk.ann, desk.pipeline, TOTAL, attachments=[odd])
        assert (answer.status, answer.json()["code"]) == (404, "document_not_found")
    assert "body.attachments.0" in problems(
        await ask_raw(desk.ann, desk.pipeline, TOTAL, attachments=["a\x00b"])
    )
    sent = {"attachments": [desk.invoice] * 20, "only_attachments": True}
    assert await desk.sources(TOTAL, **sent) == [desk.invoice]
    for top_k in (1, 2, 3):
        beside = await desk.sources(TRAINS, top_k=top_k, attachments=[desk.invoice, desk.other])
        assert len(beside) == top_k


async def test_as_of(desk: Desk) -> None:
    """A file is attached today; what it is asked beside is as it was then."""
    sent = {"attachments": [desk.invoice], "as_of": "2020-01-01"}
    assert await desk.sources(TOTAL, **sent) == [desk.invoice]
    assert await desk.sources(TOTAL, **sent, only_attachments=True) == [desk.invoice]


async def test_a_replaced_version(desk: Desk, running: Running) -> None:
    """It is refused, as nothing of it would be found."""
    base = await make_base(desk.ann)
    path = f"/v1/rag/knowledge-bases/{base}/documents/by-path/invoice.md"
    versions = []
    for content in (INVOICE, OTHER):
        answer = await desk.ann.put(path, data=form_of(content))
        assert answer.status == 202, answer.body
        await running.run_jobs()
        versions.append(answer.json()["document_id"])
    refused = await ask_raw(desk.ann, desk.pipeline, TOTAL, attachments=[versions[0]])
    assert (refused.status, refused.json()["code"]) == (404, "document_not_found")
    assert "replaced" in refused.detail
    alone = {"attachments": [versions[1]], "only_attachments": True}
    assert await desk.sources(TOTAL, **alone) == [versions[1]]
