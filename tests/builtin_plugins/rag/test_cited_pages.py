"""Answers from a PDF of short pages, joined into passages: a citation names the page of what it quotes."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kernel.testing import Actor, Running
from tests.builtin_plugins.documents.sample_documents import pdf
from tests.builtin_plugins.rag.rag_support import ask, ingest, make_base, make_pipeline, somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

BASES = "/v1/rag/knowledge-bases"
PAGES = (
    "The reading room of the library opens at nine in the morning.",
    "Members borrow up to twelve books for four weeks.",
    "A lost library card is replaced for a fee of 7 EUR.",
    "The library café sells soup and bread at noon.",
)
TOWN = (
    "The town hall has a garage with forty places for cars.",
    "Buses to the harbour leave every ten minutes on weekdays.",
    "The swimming pool is closed on Mondays for cleaning.",
    "The market on the square sells fish on Fridays.",
)
CARD = "What is the fee for a lost library card?"
BOOKS = "How many books may members borrow?"


@dataclass
class Library:
    """A knowledge base with one PDF, whose pages are one passage, and a pipeline over it."""

    running: Running
    ann: Actor
    base: str
    pipeline: str


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def library(running: Running, tmp_path_factory: pytest.TempPathFactory) -> Library:
    ann = await somebody(running)
    base = await make_base(ann)
    file = pdf(tmp_path_factory.mktemp("library") / "library.pdf", [[line] for line in PAGES])
    found = await ingest(running, ann, base, file.name, file.read_bytes())
    assert (found["status"], found["chunk_count"], found["page_count"]) == ("completed", 1, 4), found
    return Library(running, ann, base, await make_pipeline(ann, base))


async def place(ann: Actor, pipeline: str, question: str, **fields: object) -> list[tuple[Any, Any]]:
    sources = (await ask(ann, pipeline, question, **fields))["sources"]
    return [(source["page"], source.get("last_page")) for source in sources]


async def found(ann: Actor, base: str, **fields: object) -> list[tuple[Any, Any]]:
    answer = await ann.post(f"{BASES}/{base}/search", json={"question": CARD, **fields})
    assert answer.status == 200, answer.body
    return [(item["page"], item.get("last_page")) for item in answer.json()["items"]]


@pytest.mark.parametrize("parent_context", [False, True])
async def test_an_answer_cites_the_page_of_its_quotation(library: Library, parent_context: bool) -> None:
    for question, page in ((CARD, 3), (BOOKS, 2)):
        places = await place(library.ann, library.pipeline, question, parent_context=parent_context)
        assert places == [(page, None)]


async def test_an_answer_names_the_characters_of_its_quotation(library: Library) -> None:
    """They are the quoted sentence's, in the document's text; a search quotes nothing."""
    [source] = (await ask(library.ann, library.pipeline, CARD))["sources"]
    [quote] = source["quotes"]
    begin, end = (quote[edge] - source["char_start"] for edge in ("char_start", "char_end"))
    assert source["text"][begin:end] == PAGES[2]
    answer = await library.ann.post(f"{BASES}/{library.base}/search", json={"question": CARD})
    assert "quotes" not in answer.json()["items"][0]


@pytest.mark.parametrize("parent_context", [False, True])
async def test_a_search_names_the_pages_of_the_whole_passage(library: Library, parent_context: bool) -> None:
    assert await found(library.ann, library.base, parent_context=parent_context) == [(1, 4)]


async def test_neighbours_of_a_passage_add_their_pages(library: Library, tmp_path: Path) -> None:
    """What is shown goes from the first page of one to the last of the other; a quotation has its own."""
    base = await make_base(library.ann, chunk_size=400)
    file = pdf(tmp_path / "library.pdf", [[line] for line in PAGES + TOWN])
    document = await ingest(library.running, library.ann, base, file.name, file.read_bytes())
    assert document["chunk_count"] == 4
    assert await found(library.ann, base, top_k=1) == [(3, 4)]
    assert await found(library.ann, base, top_k=1, parent_context=True) == [(1, 6)]
    pipeline = await make_pipeline(library.ann, base)
    assert await place(library.ann, pipeline, CARD, top_k=1, parent_context=True) == [(3, None)]


async def test_a_new_embedding_leaves_the_pages(library: Library) -> None:
    answer = await library.ann.post(f"{BASES}/{library.base}/reembed", json={"embedding_model": "all-minilm"})
    assert answer.status == 202, answer.body
    await library.running.run_jobs()
    assert await found(library.ann, library.base) == [(1, 4)]
    assert await place(library.ann, library.pipeline, CARD) == [(3, None)]


@pytest.mark.parametrize(
    ("older", "searched", "cited"), [(False, (1, 4), (3, None)), (True, (1, None), (1, None))]
)
async def test_the_pages_come_along_in_a_file(
    library: Library, older: bool, searched: tuple[Any, Any], cited: tuple[Any, Any]
) -> None:
    """A file of an earlier version doesn't know them: then all is said to be where the passage begins."""
    exported = await library.ann.get(f"{BASES}/{library.base}/export")
    file = without_pages(exported.body) if older else exported.body
    answer = await library.ann.upload(f"{BASES}/import", "library.kb.zip", file)
    assert answer.status == 202, answer.body
    await library.running.run_jobs()
    base = answer.json()["knowledge_base_id"]
    assert await found(library.ann, base) == [searched]
    assert await place(library.ann, await make_pipeline(library.ann, base), CARD) == [cited]


def without_pages(file: bytes) -> bytes:
    """The file as it was written before passages knew the pages that begin in them."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file)) as archive, zipfile.ZipFile(target, "w") as older:
        for name in archive.namelist():
            content = archive.read(name)
            if name.startswith("passages/"):
                rows = [json.loads(line) for line in content.splitlines()]
                assert all(row.pop("pages") for row in rows)
                content = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
            older.writestr(name, content)
    return target.getvalue()
