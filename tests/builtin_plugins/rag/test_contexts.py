"""Passages are found by what their document is about and by the headings above them, and shown without."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio
from sqlalchemy import text

from builtin_plugins.rag_exchange.plugin import RagExchangePlugin
from kernel.sdk import Unit
from kernel.testing import Actor, platforms
from tests.builtin_plugins.rag.rag_support import ask, ingest, make_base, make_pipeline, somebody
from tests.fakes.hash_embeddings import HashEmbeddings

pytestmark = pytest.mark.asyncio(loop_scope="module")

BASES = "/v1/rag/knowledge-bases"
COMPANIES = ("Halvorsen", "Cordell", "Pelham", "Aurum")
SALES = (
    "Net sales rose by four per cent, as volumes and prices did in every region and in all of its markets."
)
STORED_WITHOUT = """UPDATE vectors_point SET payload = '{"page": null, "char_start": 0, "char_end": 80}'"""


def report(company: str) -> str:
    first = (
        f"{company} Works\n\nAnnual report of {company} Works. The head office has not moved in this year."
    )
    return "\n\n".join(
        [first, f"{company} makes pumps and valves for customers in many of the countries.", SALES]
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ann(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Actor]:
    async with platforms(tmp_path_factory.mktemp("home")) as start:
        running = await start("rag", "extractive_answers", RagExchangePlugin, HashEmbeddings())
        yield await somebody(running)


async def shelf(ann: Actor) -> str:
    base = await make_base(ann, chunk_size=110, chunk_overlap=0)
    for number, company in enumerate(COMPANIES):
        await ingest(ann.running, ann, base, f"{number}.txt", report(company))
    return base


async def best(ann: Actor, base: str, company: str) -> tuple[str, str]:
    """The first passage that a search for a company's sales finds: its document and its text."""
    found = await ann.post(f"{BASES}/{base}/search", json={"question": f"Did net sales of {company} rise?"})
    assert found.status == 200, found.body
    first = found.json()["items"][0]
    return first["source"], first["text"]


async def all_found(ann: Actor, base: str) -> bool:
    """Whether each company's own passage about sales comes first."""
    firsts = [await best(ann, base, company) for company in COMPANIES]
    return firsts == [(f"{number}.txt", SALES) for number in range(len(COMPANIES))]


async def test_the_document_that_a_question_names(ann: Actor) -> None:
    """All four reports have the same passage; only its document's first page says whose it is."""
    assert await all_found(ann, await shelf(ann))


async def test_a_closer_passage_of_a_document_that_is_not_named(ann: Actor) -> None:
    """Another company's passage has more of the question's words, but the question names a company."""
    base = await shelf(ann)
    other = report("Brattland").replace(SALES, f"Did sales? {SALES}")
    await ingest(ann.running, ann, base, "other.txt", other)
    assert await all_found(ann, base)


async def test_passages_from_before(ann: Actor) -> None:
    """Passages stored without their document's subject get it when they are embedded again."""
    base = await shelf(ann)
    await ann.running.platform.database.write(_forget)
    answer = await ann.post(f"{BASES}/{base}/reembed", json={"embedding_model": "all-minilm"})
    assert answer.status == 202, answer.body
    await ann.running.run_jobs()
    assert await all_found(ann, base)


def _forget(unit: Unit) -> None:
    unit.session.execute(text(STORED_WITHOUT))


async def test_an_exported_knowledge_base(ann: Actor) -> None:
    exported = await ann.get(f"{BASES}/{await shelf(ann)}/export")
    answer = await ann.upload(f"{BASES}/import", "shelf.zip", exported.body)
    assert answer.status == 202, answer.body
    await ann.running.run_jobs()
    assert await all_found(ann, str(answer.json()["knowledge_base_id"]))


FEES = (
    "The fee is {} euros a week, and half of that in winter. It is paid at the office of the harbour master."
)
MOORINGS = ("Yachts", "Ferries", "Trawlers", "Barges")
PRICES = "# Moorings\n\n" + "\n\n".join(
    f"## {kind}\n\n{FEES.format(10 + number)}\n\n{FEES.format(number)}"
    for number, kind in enumerate(MOORINGS)
)


async def sections(ann: Actor, base: str, question: str) -> Sequence[tuple[str, str | None]]:
    found = await ann.post(f"{BASES}/{base}/search", json={"question": question})
    assert found.status == 200, found.body
    return [(item["text"], item.get("section")) for item in found.json()["items"]]


async def prices(ann: Actor) -> str:
    base = await make_base(ann, chunk_size=200, chunk_overlap=0)
    await ingest(ann.running, ann, base, "prices.md", PRICES)
    return base


async def test_the_headings_above_a_passage(ann: Actor) -> None:
    """The second paragraph of each part is found by its heading, too, and names it."""
    base = await prices(ann)
    for number, kind in enumerate(MOORINGS):
        found = await sections(ann, base, f"What is the fee for {kind}?")
        assert (FEES.format(number), f"Moorings › {kind}") in found[:2]


async def test_an_answer_names_the_section_of_what_it_quotes(ann: Actor) -> None:
    """Also where a passage begins in another section. A text without headings has none."""
    base = await make_base(ann)
    await ingest(ann.running, ann, base, "prices.md", PRICES)
    await ingest(ann.running, ann, base, "plain.txt", report("Cordell"))
    pipeline = await make_pipeline(ann, base)
    answer = await ask(ann, pipeline, "How many euros a week is the fee for trawlers?", top_k=1)
    assert "12 euros" in answer["answer"], answer
    assert [source["section"] for source in answer["sources"]] == ["Moorings › Trawlers"]
    answer = await ask(ann, pipeline, "What does Cordell make for customers?", top_k=1)
    assert [source.get("section") for source in answer["sources"]] == [None]


async def test_sections_that_are_embedded_again(ann: Actor) -> None:
    base = await prices(ann)
    answer = await ann.post(f"{BASES}/{base}/reembed", json={"embedding_model": "all-minilm"})
    assert answer.status == 202, answer.body
    await ann.running.run_jobs()
    assert (FEES.format(3), "Moorings › Barges") in (await sections(ann, base, "The fee for Barges"))[:2]


async def test_sections_of_an_exported_knowledge_base(ann: Actor) -> None:
    exported = await ann.get(f"{BASES}/{await prices(ann)}/export")
    answer = await ann.upload(f"{BASES}/import", "shelf.zip", exported.body)
    assert answer.status == 202, answer.body
    await ann.running.run_jobs()
    base = str(answer.json()["knowledge_base_id"])
    assert (FEES.format(3), "Moorings › Barges") in (await sections(ann, base, "The fee for Barges"))[:2]


YEARS = (2021, 2022, 2023)


async def test_fiscal_years(ann: Actor) -> None:
    """ "FY2022" asks for 2022, whichever of both the text has."""
    base = await make_base(ann, chunk_size=110, chunk_overlap=0)
    told = [
        f"Dues of the harbour, as they were paid in {year}, rose by four per cent in all." for year in YEARS
    ]
    await ingest(ann.running, ann, base, "dues.txt", "\n\n".join(told))
    fees = [
        f"Fees of the marina for FY{year} fell by a tenth, as the winter was a long one." for year in YEARS
    ]
    await ingest(ann.running, ann, base, "fees.txt", "\n\n".join(fees))
    for year in YEARS:
        for subject, year_said in (("dues of the harbour", f"{year},"), ("fees of the marina", f"FY{year} ")):
            question = f"Which {subject} were there in FY{year}?"
            found = await ann.post(f"{BASES}/{base}/search", json={"question": question})
            assert year_said in found.json()["items"][0]["text"], question
