"""Dates in questions: what they limit, that they give way, and when what a text says about them counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from builtin_plugins.rag import api as rag
from kernel.sdk import BadRequest, utc_now
from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import (
    ask,
    make_base,
    make_pipeline,
    path_of,
    problems,
    somebody,
)
from tests.builtin_plugins.rag.test_pipeline_tools import caller
from tests.builtin_plugins.rag.test_versions import form_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

BASES = "/v1/rag/knowledge-bases"
YEAR = utc_now().year
SUBJECTS = {
    "hotel": (
        "A hotel in Bergen may cost up to {} euro a night.",
        "How much may a hotel in Bergen cost a night?",
    ),
    "meal": ("A meal with customers may cost up to {} euro.", "How much may a meal with customers cost?"),
    "lamp": ("The desk lamp Solvik has a price of {} euro.", "What is the price of the desk lamp Solvik?"),
}
OLD, NEW = 185, 210


async def send(running: Running, actor: Actor, base: str, text: str, name: str, **values: Any) -> str:
    """Upload a text with values of its fields; returns the document's id."""
    form = form_of(f"# {name}\n\n{text}\n", f"{name}.md", metadata=json.dumps(values))
    reply = await actor.post(f"{BASES}/{base}/upload", data=form)
    assert reply.status == 202, reply.body
    await running.run_jobs()
    return str(reply.json()["document_id"])


async def amounts_in(actor: Actor, pipeline: str, question: str, **fields: Any) -> list[int]:
    """The amounts that an answer names."""
    answer = (await ask(actor, pipeline, question, **fields))["answer"]
    return [amount for amount in (OLD, NEW) if str(amount) in answer]


async def old_and_new(running: Running, actor: Actor, base: str, subject: str) -> None:
    """A text that applied last year, and one of this year."""
    sentence, _ = SUBJECTS[subject]
    dates = {"valid_from": f"{YEAR - 1}-01-01", "valid_until": f"{YEAR - 1}-12-31"}
    await send(running, actor, base, sentence.format(OLD), f"{subject} old", **dates)
    await send(running, actor, base, sentence.format(NEW), f"{subject} new", valid_from=f"{YEAR}-01-01")


async def test_a_period_limits_a_question(running: Running, ann: Actor, base: str) -> None:
    await old_and_new(running, ann, base, "hotel")
    pipeline, question = await make_pipeline(ann, base), SUBJECTS["hotel"][1]
    assert await amounts_in(ann, pipeline, question) == [NEW]
    assert await amounts_in(ann, pipeline, question, use_period=False) == [OLD, NEW]
    answer = await ask(ann, pipeline, f"{question[:-1]} last year?")
    assert str(OLD) in answer["answer"] and str(NEW) not in answer["answer"]
    shown = answer["method_details"]["period"]
    expected = (f"documents of {YEAR - 1}", "last year", True)
    assert (shown["label"], shown["words"], shown["applied"]) == expected
    sent = {"metadata_filter": shown["filter"], "use_period": False}
    assert await amounts_in(ann, pipeline, question, **sent) == [OLD]


async def test_passages_for_tools_have_a_period(running: Running, ann: Actor, base: str) -> None:
    """And a time: what was current then is found, and nothing else."""
    await old_and_new(running, ann, base, "hotel")
    question = SUBJECTS["hotel"][1]

    async def found(wanted: str = question, **times: Any) -> list[int]:
        passages = await running.platform.hooks.ask(
            rag.search_passages,
            caller=caller(running, ann),
            question=wanted,
            top_k=5,
            knowledge_base_ids=[base],
            **times,
        )
        texts = " ".join(one.text for one in passages or ())
        return [amount for amount in (OLD, NEW) if str(amount) in texts]

    assert await found() == [NEW]
    assert await found(use_period=False) == [OLD, NEW]
    assert await found(f"{question[:-1]} last year?") == [OLD]
    assert await found(as_of="2020-01-01") == []
    with pytest.raises(BadRequest):
        await found(as_of="soon")


@pytest.mark.long
async def test_an_old_answer_is_not_given_as_current(running: Running, ann: Actor, base: str) -> None:
    """Questions about three subjects at once, in six forms each."""
    for subject in SUBJECTS:
        await old_and_new(running, ann, base, subject)
    pipeline = await make_pipeline(ann, base)
    for _, question in SUBJECTS.values():
        stem = question[:-1]
        for now in (question, f"{stem} today?", f"{stem} since January?"):
            assert await amounts_in(ann, pipeline, now) == [NEW], now
        for then in ("last year", f"before {YEAR}", f"in {YEAR - 1}"):
            assert await amounts_in(ann, pipeline, f"{stem} {then}?") == [OLD], then


async def test_the_newest_of_several_that_apply(running: Running, ann: Actor, base: str) -> None:
    """By the date field that the knowledge base names; a document without a date stays."""
    sentence, question = SUBJECTS["lamp"]
    declared = await ann.put(f"{BASES}/{base}/fields/printed", json={"kind": "date"})
    assert declared.status == 200
    refused = await ann.patch(f"{BASES}/{base}", json={"date_field": "tags"})
    assert list(problems(refused)) == ["body.date_field"]
    changed = await ann.patch(f"{BASES}/{base}", json={"date_field": "printed"})
    assert changed.json()["date_field"] == "printed"
    await send(running, ann, base, sentence.format(OLD), "list a", printed="2023-05-01")
    await send(running, ann, base, sentence.format(NEW), "list b", printed="2025-05-01")
    await send(running, ann, base, "The lamp Solvik is made of oak.", "wood")
    pipeline = await make_pipeline(ann, base)
    assert await amounts_in(ann, pipeline, "What is the newest price of the desk lamp Solvik?") == [NEW]
    assert await amounts_in(ann, pipeline, f"{question[:-1]} before 2024?") == [OLD]
    assert await amounts_in(ann, pipeline, question) == [OLD, NEW]
    oak = await ask(ann, pipeline, "What is the newest lamp Solvik made of?")
    assert "oak" in oak["answer"]
    gone = await ann.delete(f"{BASES}/{base}/fields/printed")
    assert gone.status == 200, gone.body
    assert (await ann.get(f"{BASES}/{base}")).json()["date_field"] is None
    undated = await ask(ann, pipeline, f"{question[:-1]} before 2024?")
    assert "period" not in undated["method_details"]


async def test_a_period_without_an_answer_gives_way(running: Running, ann: Actor, base: str) -> None:
    sentence, question = SUBJECTS["hotel"]
    dates = {"valid_from": "2023-01-01", "valid_until": "2023-12-31"}
    await send(running, ann, base, sentence.format(OLD), "old", **dates)
    await send(running, ann, base, "Roses are pruned in March.", "garden", valid_from="2024-01-01")
    pipeline = await make_pipeline(ann, base)
    for asked, words in ((question, None), (f"{question[:-1]} in 2024?", "2024")):
        answer = await ask(ann, pipeline, asked)
        assert str(OLD) in answer["answer"] and answer["answer"].startswith("No document")
        details = answer["method_details"]
        assert (details["period"]["applied"], details["period"]["words"]) == (False, words)
        assert any(note.startswith("period: ") for note in details["degraded"])
        found = (await ann.post(f"{BASES}/{base}/search", json={"question": asked})).json()
        assert found["period"]["applied"] is False and found["items"][0]["source"] == "old.md"
    refused = await ask(ann, pipeline, "Who repairs the pump in 2024?")
    assert refused["sources"] == [] and refused["method_details"]["period"]["applied"] is True


async def test_what_a_text_says_counts_once_it_is_accepted(running: Running, ann: Actor, base: str) -> None:
    """By a person for one document, or by the knowledge base for all; before that it is only proposed."""
    sentence, question = SUBJECTS["hotel"]
    text = f"{sentence.format(OLD)}\n\nThis policy is valid from 1 January 2023 until 31 December 2024."
    old = await send(running, ann, base, text, "old")
    await send(running, ann, base, f"{sentence.format(NEW)}\n\nApplies from 1 January 2025.", "new")
    pipeline = await make_pipeline(ann, base)
    place = path_of(base, old, "/metadata")
    shown = (await ann.get(place)).json()
    said = {"valid_from": "2023-01-01", "valid_until": "2024-12-31"}
    assert shown["proposals"] == said and "valid_until" not in shown["metadata"]
    assert await amounts_in(ann, pipeline, question) == [OLD, NEW]
    accepted = (await ann.patch(place, json={"valid_until": said["valid_until"]})).json()
    assert accepted["proposals"] == {"valid_from": "2023-01-01"}
    assert accepted["origins"]["valid_until"] == "hand"
    assert await amounts_in(ann, pipeline, question) == [NEW]
    rejected = (await ann.patch(place, json={"valid_until": None, "valid_from": None})).json()
    assert (rejected["proposals"], rejected["metadata"].get("valid_until")) == ({}, None)
    assert await amounts_in(ann, pipeline, question) == [OLD, NEW]
    for counts, amounts in ((True, [OLD, NEW]), (False, [OLD, NEW])):
        reply = await ann.patch(f"{BASES}/{base}", json={"accept_dates": counts})
        assert reply.json()["accept_dates"] is counts
        await running.run_jobs()
        assert await amounts_in(ann, pipeline, question) == amounts  # what a person rejected stays so
    third = await make_base(ann, accept_dates=True)
    document = await send(running, ann, third, text, "old")
    own = (await ann.get(path_of(third, document, "/metadata"))).json()
    assert own["metadata"] | said == own["metadata"] and own["origins"]["valid_from"] == "text"


async def test_periods_show_nothing_of_others(running: Running, ann: Actor, base: str) -> None:
    """A knowledge base that a caller may not see does not decide whether a period counts."""
    sentence, question = SUBJECTS["hotel"]
    await send(running, ann, base, sentence.format(OLD), "hers", valid_until="2024-12-31")
    other = await somebody(running)
    own = await make_base(other)
    await send(running, other, own, sentence.format(NEW), "his")
    found = (await other.post(f"{BASES}/{own}/search", json={"question": question})).json()
    assert "period" not in found and len(found["items"]) == 1
