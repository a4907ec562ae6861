"""A question about a name that no document has is refused without a model, and the answer says which."""

from __future__ import annotations

import pytest
import pytest_asyncio

from builtin_plugins.rag.answering.refusal_texts import REFUSALS
from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import ask, ingest, make_base, make_pipeline, somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Reports:
    """Two companies' reports and a brochure, whose name alone has the third company's."""

    def __init__(self, ann: Actor, pipeline: str) -> None:
        self.ann, self.pipeline = ann, pipeline

    async def unknown(self, question: str, **fields: object) -> str | None:
        """The name for which a question is refused."""
        found = await ask(self.ann, self.pipeline, question, **fields)
        name: str | None = found["method_details"].get("unknown_name")
        assert name is None or (found["answer"].startswith(REFUSALS) and name in found["answer"])
        assert name is None or (found["sources"] == [] and found["confidence"] == 0.0)
        return name


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reports(running: Running) -> Reports:
    ann = await somebody(running)
    base = await make_base(ann)
    for name in ("Halvorsen", "Cordell"):
        text = f"# Annual report of {name}\n\nThe revenue of {name} was 120 million in 2022."
        await ingest(running, ann, base, f"{name}_report.md", text)
    await ingest(running, ann, base, "Brightwater_prices.md", "# Prices\n\nA bottle of water is 2 euros.")
    return Reports(ann, await make_pipeline(ann, base))


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What was the revenue of Tesla in 2022?", "Tesla"),
        ("What was Tesla's revenue in 2022?", "Tesla"),
        ("What was the revenue of Halvorsen in 2022?", None),
        ("What was CORDELL's revenue in 2022?", None),
        ("What does a bottle of water by Brightwater cost?", None),
    ],
)
async def test_a_name_that_no_document_has(reports: Reports, question: str, name: str | None) -> None:
    """Also those of documents whose passages were not found, or whose name alone has it."""
    assert await reports.unknown(question, top_k=1) == name


async def test_a_name_that_only_other_documents_have(reports: Reports) -> None:
    """What the filter leaves out, as what somebody may not read, has no name."""
    question = "What was the revenue of Cordell in 2022?"
    assert await reports.unknown(question, metadata_filter={"source": "Halvorsen_report.md"}) == "Cordell"
    assert await reports.unknown(question, metadata_filter={"source": "Cordell_report.md"}) is None


async def test_an_answer_says_whose_report_it_quotes(reports: Reports) -> None:
    """Where documents of one kind are asked about; a name's number and ending make no kind."""
    found = await ask(reports.ann, reports.pipeline, "What was the revenue of Cordell in 2022?")
    assert found["answer"].startswith("Cordell_report.md: ")
    other = await ask(reports.ann, reports.pipeline, "What does a bottle of water cost?")
    assert other["sources"][0]["source"] == "Brightwater_prices.md"
    assert not other["answer"].startswith("Brightwater_prices.md")
