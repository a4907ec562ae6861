"""The report of contradictions: what it finds, for whom, and how precise it is on a labelled set."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.contradiction_set import KNOWN, UNSEEN, pairs
from tests.builtin_plugins.rag.rag_support import path_of, somebody
from tests.builtin_plugins.rag.test_readers import Desk
from tests.builtin_plugins.rag.test_readers import desk as desk
from tests.builtin_plugins.rag.test_versions import BASES, NEW, OLD, placed, put

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def report(running: Running, owner: Actor, base: str, reader: Actor | None = None) -> dict[str, Any]:
    """The report after documents were compared, as somebody reads it."""
    begun = await owner.post(f"{BASES}/{base}/contradictions")
    assert begun.status == 202, begun.body
    await running.run_jobs()
    return await read(reader or owner, base)


async def read(reader: Actor, base: str, rest: str = "") -> dict[str, Any]:
    answer = await reader.get(f"{BASES}/{base}/contradictions{rest}")
    assert answer.status == 200, answer.body
    return dict(answer.json())


async def test_current_documents_that_differ(running: Running, ann: Actor, base: str) -> None:
    """With their places; no longer once one is replaced, and nothing of documents that don't apply."""
    assert (await read(ann, base))["made_at"] is None
    older = await placed(running, await put(ann, base, "travel-2025.md", OLD))
    newer = await placed(running, await put(ann, base, "travel-2026.md", NEW))
    found = await report(running, ann, base)
    assert (found["total"], found["is_complete"], found["made_at"] is not None) == (1, True, True)
    [item] = found["items"]
    for side, document, text in (("older", older, OLD), ("newer", newer, NEW)):
        one = item[side]
        assert one["document_id"] == document["document_id"]
        assert one["text"] == text[one["char_start"] : one["char_end"]] == text.split("\n")[2]
    assert (await read(ann, base, "?offset=1"))["items"] == []
    dates = path_of(base, older["document_id"], "/metadata")
    assert (await ann.patch(dates, json={"valid_until": "2025-12-31"})).status == 200
    assert (await report(running, ann, base))["total"] == 0
    assert (await ann.patch(dates, json={"valid_until": None})).status == 200
    assert (await report(running, ann, base))["total"] == 1
    await placed(running, await put(ann, base, "travel-2025.md", NEW + "\nMore.\n"))
    assert (await read(ann, base))["total"] == 0
    assert (await report(running, ann, base))["total"] == 0


async def test_whoever_may_not_change_it_reads_only(running: Running, ann: Actor, base: str) -> None:
    stranger = await somebody(running)
    for send in (stranger.get, stranger.post):
        assert (await send(f"{BASES}/{base}/contradictions")).status == 404
    shared = await ann.patch(f"{BASES}/{base}", json={"visibility": "shared"})
    assert shared.status == 200
    assert (await stranger.get(f"{BASES}/{base}/contradictions")).status == 200
    assert (await stranger.post(f"{BASES}/{base}/contradictions")).status == 403


async def test_a_pair_is_shown_to_who_may_read_both(desk: Desk) -> None:
    """Neither its sentences nor its number tell others of a document that they may not read."""
    keeper = desk.keeper
    await keeper.put("travel-1.md", OLD, None)
    await keeper.put("travel-2.md", NEW, None)
    await keeper.put("travel-2026.md", NEW, keeper.readers("staff"))
    await keeper.put("travel-2025.md", OLD, keeper.readers("staff"))
    await desk.running.run_jobs()
    assert (await report(desk.running, desk.ann, desk.base))["total"] == 0
    seen = await read(desk.bob, desk.base)
    assert (seen["total"], len(seen["items"])) == (1, 1)
    await keeper.grant({"travel-2025.md": None})
    assert (await read(desk.ann, desk.base))["total"] == 0
    await keeper.grant({"travel-2026.md": None})
    assert (await read(desk.ann, desk.base))["total"] == 1


async def test_nothing_is_left_of_a_deleted_document(running: Running, ann: Actor, base: str) -> None:
    older = await placed(running, await put(ann, base, "travel-2025.md", OLD))
    await placed(running, await put(ann, base, "travel-2026.md", NEW))
    assert (await report(running, ann, base))["total"] == 1
    assert (await ann.delete(path_of(base, older["document_id"]))).status == 200
    assert (await read(ann, base))["total"] == 0


@pytest.mark.long
async def test_the_precision_on_the_labelled_set(running: Running, ann: Actor, base: str) -> None:
    """At least 0.8 of what is reported contradicts each other, and at least half of what does is reported."""
    reported, right, labelled = 0, 0, 0
    for at, pair in enumerate(pairs(KNOWN) + pairs(UNSEEN)):
        for name, sentences in zip(pair.names, pair.sentences, strict=True):
            await put(ann, base, f"case{at}/{name}", "\n\n".join(sentences))
        labelled += len(pair.contradicting)
    await running.run_jobs()
    await report(running, ann, base)
    wanted = {frozenset(one) for pair in pairs(KNOWN) + pairs(UNSEEN) for one in pair.contradicting}
    found = (await read(ann, base, "?limit=500"))["items"]
    for item in found:
        reported += 1
        right += frozenset((item["newer"]["text"], item["older"]["text"])) in wanted
    assert right / reported >= 0.8, f"{right} of {reported}"
    assert right / labelled >= 0.5, f"{right} of {labelled}"
