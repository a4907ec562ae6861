"""What a question may wish for its passages: their neighbours, fewer sentences; together with everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from builtin_plugins.rag.passages import Passage
from builtin_plugins.rag.questions.compressing import compressed
from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import ask, ingest, make_base, make_pipeline, path_of, somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEXT = "\n\n".join(
    f"Cabin {n} stands on hill {n}. It has {n + 2} beds and a stove. Its key is kept by warden {n}."
    for n in range(1, 13)
)
QUESTION = "Who keeps the key of cabin 6?"


@dataclass
class Shelf:
    """A knowledge base with a document of small passages, and a pipeline over it."""

    ann: Actor
    base: str
    document: str
    pipeline: str

    async def ask(self, **fields: object) -> dict[str, Any]:
        return await ask(self.ann, self.pipeline, QUESTION, **fields)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shelf(running: Running) -> Shelf:
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=100, chunk_overlap=20)
    document = (await ingest(running, ann, base, "cabins.md", TEXT))["document_id"]
    return Shelf(ann, base, document, await make_pipeline(ann, base))


class TestParentContext:
    async def test_the_neighbours_are_shown(self, shelf: Shelf) -> None:
        """The source is the passage with one neighbour on each side, in the document's own words."""
        chunks = (await shelf.ann.get(path_of(shelf.base, shelf.document, "/chunks?limit=500"))).json()[
            "items"
        ]
        body = {"question": QUESTION, "parent_context": True, "top_k": 1}
        found = await shelf.ann.post(f"/v1/rag/pipeline/{shelf.pipeline}/search", json=body)
        (source,) = found.json()["items"]
        assert source["context_type"] == "parent"
        at = source["child_chunk_index"]
        first, last = chunks[max(at - 1, 0)], chunks[min(at + 1, len(chunks) - 1)]
        assert (source["char_start"], source["char_end"]) == (first["char_start"], last["char_end"])
        span = TEXT[source["char_start"] : source["char_end"]]
        assert source["text"].split() == span.split()
        assert source["chunk_id"] == chunks[at]["chunk_id"]
        answer = await shelf.ask(parent_context=True)
        assert answer["method_details"]["retrieval"] == "parent_context" and "warden 6" in answer["answer"]

    async def test_nothing_is_shown_twice(self, shelf: Shelf) -> None:
        """A passage that a better one shows already is no source of its own."""
        answer = await shelf.ask(parent_context=True, top_k=30)
        spans = [(source["char_start"], source["char_end"]) for source in answer["sources"]]
        assert len(set(spans)) == len(spans)
        plain = await shelf.ask(top_k=30)
        assert len(spans) < len(plain["sources"])
        assert not any("context_type" in source for source in plain["sources"])

    async def test_a_document_of_one_passage(self, running: Running, ann: Actor, base: str) -> None:
        await ingest(running, ann, base, "a.md", "The key of cabin 6 is kept by Liv.")
        answer = await ask(ann, await make_pipeline(ann, base), QUESTION, parent_context=True)
        (source,) = answer["sources"]
        assert source["text"] == "The key of cabin 6 is kept by Liv." and source["child_chunk_index"] == 0


class TestCompress:
    async def test_the_answer_is_the_same_from_less(self, shelf: Shelf) -> None:
        plain = await shelf.ask(top_k=10)
        answer = await shelf.ask(top_k=10, compress=True)
        lengths = answer["method_details"]["compressor"]
        assert lengths["original_length"] == sum(len(source["text"]) for source in answer["sources"])
        assert lengths["compressed_length"] < lengths["original_length"] * 0.7
        assert [s["text"] for s in answer["sources"]] == [s["text"] for s in plain["sources"]]
        assert "warden 6" in answer["answer"]

    async def test_bounds(self) -> None:
        """About 30 % and 8000 characters of much text; the sentences with the question's words stay."""
        filler = "The weather was grey that day. " * 400
        texts = [f"{filler} The key of cabin {n} is kept by warden {n}." for n in range(5)]
        passages = [Passage(text, "a.md", 1.0, str(n), "d") for n, text in enumerate(texts)]
        kept = compressed(QUESTION, passages)
        assert sum(len(one.text) for one in kept) <= 8500
        assert all("key of cabin" in one.text for one in kept)
        assert [one.chunk_id for one in kept] == [one.chunk_id for one in passages]
        assert compressed(QUESTION, []) == []


async def test_all_wishes_together(shelf: Shelf) -> None:
    """They do not stand in each other's way, and a filter holds throughout."""
    wishes = {"rerank": True, "compress": True, "parent_context": True, "explain": True}
    for method in ("standard", "hyde", "self_rag", "corrective", "raptor", "auto"):
        wanted = {"document_id": shelf.document}
        answer = await shelf.ask(method=method, metadata_filter=wanted, **wishes)
        assert "warden 6" in answer["answer"], (method, answer["answer"])
        details = answer["method_details"]
        assert details["retrieval"] == "parent_context"
        assert any(note.startswith("rerank: ") for note in details["degraded"])
        assert details["metadata_filter"] == wanted and "compressor" in details
        assert (answer["model_calls"], answer["tokens_used"]) == (0, None)
        assert {"search", "widen", "compress"} <= {one["step"] for one in answer["explain"]["steps"]}


@pytest.mark.parametrize(
    ("method", "runs", "note"),
    [
        ("standard", "standard", "no model runtime"),
        ("hyde", "standard", "hyde"),
        ("self_rag", "self_rag", "self_rag"),
        ("corrective", "corrective", "corrective"),
        ("raptor", "raptor", "tree"),
        ("auto", "auto", "by rules"),
    ],
)
async def test_every_method_without_a_model(shelf: Shelf, method: str, runs: str, note: str) -> None:
    answer = await shelf.ask(method=method.upper())
    assert answer["method"] == runs and "warden 6" in answer["answer"] and answer["model_calls"] == 0
    details = answer["method_details"]
    assert any(note in one for one in details["degraded"])
    if method == "self_rag":
        assert (details["self_rag"]["evaluated"], details["self_rag"]["threshold_met"]) == (False, None)
    if method == "corrective":
        assert details["corrective"]["grade"] in ("correct", "ambiguous")
    assert "decision" in details if method == "auto" else "decision" not in details
