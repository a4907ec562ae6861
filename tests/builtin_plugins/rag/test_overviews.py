"""Questions about the documents themselves, and documents that contradict each other, over HTTP."""

from __future__ import annotations

from dataclasses import dataclass

import aiohttp
import pytest
import pytest_asyncio

from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import (
    HANDBOOK,
    ask,
    ingest,
    make_base,
    make_pipeline,
    path_of,
    somebody,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

OLD = "# Rules\n\nA hotel in Oslo may cost up to 185 euro per night. Dogs are welcome.\n"
NEW = "# Rules\n\nA hotel in Oslo may cost up to 210 euro per night. Cats are welcome.\n"


@dataclass
class TwoOfThree:
    """A pipeline over two of three knowledge bases, the third of them somebody else's."""

    ann: Actor
    pipeline: str
    bases: tuple[str, str]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shelf(running: Running) -> TwoOfThree:
    ann, bob = await somebody(running), await somebody(running)
    one, other, hidden = await make_base(ann), await make_base(ann), await make_base(bob)
    for actor, base, name, text in (
        (ann, one, "travel-handbook.md", HANDBOOK),
        (ann, one, "rules-2025.md", OLD),
        (ann, other, "rules-2026.txt", NEW),
        (bob, hidden, "secret-plans.md", "# Plans\n\nThe secret plans of Bob.\n"),
    ):
        assert (await ingest(running, actor, base, name, text))["status"] == "completed"
    return TwoOfThree(ann, await make_pipeline(ann, one, other), (one, other))


async def test_documents_are_counted(shelf: TwoOfThree) -> None:
    answer = await ask(shelf.ann, shelf.pipeline, "How many documents do I have?")
    assert answer["method_details"]["overview"] == "count" and len(answer["sources"]) == 3
    assert "3 (2 md, 1 txt)." in answer["answer"] and answer["model_used"] == "extractive"


async def test_only_filtered_documents_are_counted(shelf: TwoOfThree) -> None:
    answer = await ask(
        shelf.ann,
        shelf.pipeline,
        "Wie viele Dokumente gibt es?",
        metadata_filter={"source": "rules-2026.txt"},
    )
    assert ": 1." in answer["answer"]
    assert [source["source"] for source in answer["sources"]] == ["rules-2026.txt"]
    for asked in ("How many documents do I have?", "What is new here?"):
        none = await ask(shelf.ann, shelf.pipeline, asked, metadata_filter={"source": "gone.txt"})
        assert "filter" in none["answer"] and none["sources"] == []


@pytest.mark.parametrize("method", ["standard", "corrective", "auto"])
async def test_documents_are_listed_with_what_they_begin_with(shelf: TwoOfThree, method: str) -> None:
    answer = await ask(shelf.ann, shelf.pipeline, "What is in here?", method=method)
    assert "secret" not in str(answer)
    lines = answer["answer"].splitlines()[1:]
    assert [line.split(":")[0] for line in lines] == [
        *("- rules-2026.txt", "- rules-2025.md", "- travel-handbook.md")
    ]
    for number, (line, source) in enumerate(zip(lines, answer["sources"], strict=True), 1):
        assert line.endswith(f" [{number}]") and source["source"] in line


async def test_changes_are_listed_with_versions(running: Running, shelf: TwoOfThree) -> None:
    base = await make_base(shelf.ann)
    for text in (OLD, NEW):
        form = aiohttp.FormData()
        form.add_field("file", text.encode(), filename="rules.md")
        path = f"/v1/rag/knowledge-bases/{base}/documents/by-path/rules.md"
        assert (await shelf.ann.put(path, data=form)).status == 202
        await running.run_jobs()
    found = await ask(shelf.ann, await make_pipeline(shelf.ann, base), "What changed?")
    assert "(version 2) [1]" in found["answer"] and len(found["sources"]) == 1


async def test_no_documents_are_none(shelf: TwoOfThree) -> None:
    empty = await make_pipeline(shelf.ann, await make_base(shelf.ann))
    answer = await ask(shelf.ann, empty, "How many documents are here?")
    assert ": 0." in answer["answer"] and answer["sources"] == []


async def test_a_document_is_summarized_by_its_headings(shelf: TwoOfThree) -> None:
    answer = await ask(shelf.ann, shelf.pipeline, "Summarize the travel handbook")
    assert answer["method_details"]["overview"] == "summary"
    assert {source["source"] for source in answer["sources"]} == {"travel-handbook.md"}
    assert "Hotels: A hotel may cost up to 130 EUR a night. [1]" in answer["answer"]


async def test_what_is_no_document_is_searched_for(shelf: TwoOfThree) -> None:
    """Neither something that documents mention, nor a document that only others can see."""
    for subject in ("meals", "the secret plans"):
        answer = await ask(shelf.ann, shelf.pipeline, f"Summarize {subject}")
        assert "overview" not in answer["method_details"]


async def test_documents_that_contradict_each_other_are_both_quoted(shelf: TwoOfThree) -> None:
    """Each with the day from which it applies, or that of its upload."""
    question = "How much may a hotel in Oslo cost per night?"
    answer = await ask(shelf.ann, shelf.pipeline, question)
    assert answer["method_details"]["documents_differ"] is True
    days, place = dict[str, str](), ""
    for base in shelf.bases:
        for one in (await shelf.ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]:
            days[one["filename"]] = one["uploaded_at"][:10]
            if one["filename"] == "rules-2026.txt":
                place = path_of(base, one["document_id"], "/metadata")
    for _ in range(2):
        for name, price in (("rules-2025.md", "185"), ("rules-2026.txt", "210")):
            number = next(at for at, one in enumerate(answer["sources"], 1) if one["source"] == name)
            said = f"{name} ({days[name]}): A hotel in Oslo may cost up to {price} euro per night. [{number}]"
            assert said in answer["answer"]
        days["rules-2026.txt"] = "2026-01-01"
        assert (await shelf.ann.patch(place, json={"valid_from": "2026-01-01"})).status == 200
        answer = await ask(shelf.ann, shelf.pipeline, question)
