"""Pipelines for other plugins: as tools of their owner, listed, and asked piece by piece."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, NotFound, Principal
from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import ingest, make_base, make_pipeline, somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOTEL = "How much may a hotel cost per night?"


def caller(running: Running, actor: Actor, role: str = "user") -> Caller:
    """The account as other plugins hand it on."""
    name = actor.user["username"]
    return Caller(running.platform, Principal("user", str(actor.user["id"]), actor.user["id"], name, role))


async def asked(running: Running, who: Caller, pipeline: str) -> tuple[str, rag.PipelineAnswer]:
    events = await running.platform.hooks.ask(
        rag.ask_pipeline, caller=who, pipeline_id=pipeline, question=HOTEL, history=(), options={}
    )
    assert events is not None
    pieces: list[str] = []
    async with aclosing(events):
        async for event in events:
            if isinstance(event, rag.PipelineAnswer):
                return "".join(pieces), event
            pieces.append(event)
    raise AssertionError("no end")


async def test_listed(running: Running) -> None:
    """Everybody's own and shared ones, told apart; nobody else's."""
    ann, ben = await somebody(running), await somebody(running)
    base = await make_base(ann, visibility="shared")
    mine = await make_pipeline(ann, base, name="Mine")
    shared = await make_pipeline(ann, base, name="Ours", visibility="shared")
    found = {
        who: {
            entry.id: entry.own
            for entry in await running.platform.hooks.ask(rag.list_pipelines, caller=caller(running, who_is))
            or ()
        }
        for who, who_is in (("ann", ann), ("ben", ben))
    }
    assert found["ann"][mine] and found["ann"][shared]
    assert mine not in found["ben"] and found["ben"][shared] is False


async def test_asked(running: Running) -> None:
    """An answer in pieces, then the whole with its passages and where they are."""
    ann, ben = await somebody(running), await somebody(running)
    base = await make_base(ann)
    document = await ingest(running, ann, base)
    pipeline = await make_pipeline(ann, base)
    text, answer = await asked(running, caller(running, ann), pipeline)
    assert text == answer.text and "130 EUR" in text
    assert answer.model == "extractive"
    assert answer.passages[0].document_id == document["document_id"]
    assert answer.passages[0].knowledge_base_id == base
    with pytest.raises(NotFound):
        await asked(running, caller(running, ben), pipeline)
