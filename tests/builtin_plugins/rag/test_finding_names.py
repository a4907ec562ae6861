"""Finding documents by their names in all knowledge bases, and what could be asked about the latest ones."""

from __future__ import annotations

import unicodedata

import pytest

from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import fresh_id, ingest, make_base, somebody
from tests.fakes.keeping import Keeper

pytestmark = pytest.mark.asyncio(loop_scope="session")

POLICY = (
    "# Travel policy\n\nIt applies to everybody.\n\n## Hotels in Oslo\n\nA room costs at most 185 euro.\n\n"
    "## Who approves a journey?\n\nThe head of the department.\n"
)


async def named(actor: Actor, text: str) -> set[str]:
    answer = await actor.get("/v1/rag/documents", params={"q": text, "limit": "50"})
    assert answer.status == 200, answer.body
    return {one["filename"] for one in answer.json()["items"]}


async def test_by_name_in_all_that_one_sees(running: Running) -> None:
    """In one request, whatever the number of knowledge bases; nothing of what is private to others."""
    ann, bob = await somebody(running), await somebody(running)
    mark = f"n{fresh_id()}"
    for number in range(8):
        base = await make_base(ann, visibility="shared" if number % 2 else "private")
        await ingest(running, ann, base, f"{mark}-Report-{number}.md", f"Report {number}.")
    everything = {f"{mark}-Report-{number}.md" for number in range(8)}
    assert await named(ann, f"report {mark.upper()}") == everything
    assert await named(bob, f"report {mark}") == {f"{mark}-Report-{number}.md" for number in (1, 3, 5, 7)}
    assert await named(ann, f"report {mark} absent") == set()
    assert await named(ann, f"{mark}%") == set()
    await Keeper(running.platform, base).put(f"{mark}-Übersicht.md", "Overview.", None)
    for text in ("übersicht", "ÜBERSICHT", unicodedata.normalize("NFD", "Übersicht")):
        assert await named(ann, f"{text} {mark}") == {f"{mark}-Übersicht.md"}


async def test_topics(running: Running) -> None:
    """Headings before the title; only of what the caller may read; none without headings."""
    ann, bob = await somebody(running), await somebody(running)
    base = await make_base(ann)
    path = f"/v1/rag/knowledge-bases/{base}/topics"
    assert (await ann.get(path)).json() == {"items": []}
    await ingest(running, ann, base, "travel.md", POLICY)
    topics = (await ann.get(path)).json()["items"]
    assert [(one["heading"], one["is_title"], one["is_question"]) for one in topics] == [
        ("Hotels in Oslo", False, False),
        ("Who approves a journey?", False, True),
        ("Travel policy", True, False),
    ]
    assert (await bob.get(path)).status == 404


INVOICE = (
    "Hydra Pumps Ltd.\n\nInvoice 2026-114\n\nPayable within 14 days\n\nPump, 2 pieces: 480.00 euro\n\n"
    "Terms of delivery\n\nThe goods remain ours until they are paid for in full.\n\n"
    "Kind regards\n\nEva Holm\n\neva@hydra.example\n"
)


async def test_topics_of_a_letter(running: Running) -> None:
    """A short line is a topic only if it names what the prose below says."""
    ann = await somebody(running)
    base = await make_base(ann)
    await ingest(running, ann, base, "invoice.txt", INVOICE)
    topics = (await ann.get(f"/v1/rag/knowledge-bases/{base}/topics")).json()["items"]
    assert [(one["heading"], one["is_title"]) for one in topics] == [("Terms of delivery", False)]
