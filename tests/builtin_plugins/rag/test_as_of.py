"""Searches and questions as of an earlier time: the versions that were current then, and no others."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from pydantic import TypeAdapter

from builtin_plugins.rag.schemas_time import AsOf
from kernel.sdk import utc_now
from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import ask, make_pipeline, path_of, problems, record, somebody
from tests.builtin_plugins.rag.test_versions import BASES, NEW, OLD, QUESTION, placed, put

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def amounts_at(actor: Actor, base: str, moment: object, **fields: object) -> list[str]:
    """The amounts in the passages that a search finds as of a time."""
    body = {"question": QUESTION, "top_k": 10, "as_of": moment, **fields}
    found = await actor.post(f"{BASES}/{base}/search", json=body)
    assert found.status == 200, found.body
    return [word for one in found.json()["items"] for word in ("185", "210", "240") if word in one["text"]]


async def test_the_version_that_was_current_then(running: Running, ann: Actor, base: str) -> None:
    times = list[str]()
    for text in (OLD, NEW, NEW.replace("210", "240")):
        made = await placed(running, await put(ann, base, "travel.md", text))
        times.append((await record(ann, base, made["document_id"]))["completed_at"])
    other = await placed(running, await put(ann, base, "meals.md", "# Meals\n\nA meal costs 30 euro.\n"))
    before = (datetime.fromisoformat(times[0]) - timedelta(seconds=1)).isoformat()
    assert [await amounts_at(ann, base, one) for one in (before, *times)] == [[], ["185"], ["210"], ["240"]]
    assert await amounts_at(ann, base, utc_now().date().isoformat()) == ["240"]
    assert await amounts_at(ann, base, times[1], hybrid=False) == ["210"]
    assert await amounts_at(ann, base, times[1], metadata_filter={"version": 1}) == []
    assert await amounts_at(ann, base, times[1], metadata_filter={"version": 2}) == ["210"]
    pipeline = await make_pipeline(ann, base)
    answer = await ask(ann, pipeline, QUESTION, as_of=times[0])
    assert "185" in answer["answer"] and "210" not in answer["answer"]
    assert answer["method_details"]["as_of"].startswith(times[0][:19])
    cited = answer["sources"][0]
    opened = await ann.get(path_of(base, cited["document_id"], "/chunks"))
    assert "185" in opened.json()["items"][0]["text"]
    wide = await ask(ann, pipeline, QUESTION, as_of=times[0], parent_context=True)
    assert "185" in wide["answer"]
    assert (await ann.delete(path_of(base, cited["document_id"]))).status == 200
    found = await ann.post(f"{BASES}/{base}/search", json={"question": QUESTION, "as_of": times[0]})
    assert not any("185" in one["text"] for one in found.json()["items"])
    assert any(note.startswith("as_of: ") for note in found.json()["degraded"])
    assert other["document_id"] not in {one["document_id"] for one in found.json()["items"]}


async def test_a_day_ends_before_the_next_one() -> None:
    """What is valid until that day still counts, and what is valid from the next one does not."""
    read = TypeAdapter(AsOf).validate_python
    assert str(read("2026-06-30").date()) == "2026-06-30"
    assert read((utc_now() + timedelta(hours=13)).date().isoformat()) <= utc_now()  # today in New Zealand


async def test_what_as_of_refuses(running: Running, ann: Actor, base: str) -> None:
    for moment in ("2999-01-01", "soon", 5):
        refused = await ann.post(f"{BASES}/{base}/search", json={"question": QUESTION, "as_of": moment})
        assert [one.split(".")[:2] for one in problems(refused)] == [["body", "as_of"]]
    other = await somebody(running)
    hidden = await other.post(f"{BASES}/{base}/search", json={"question": QUESTION, "as_of": "2026-01-01"})
    assert hidden.status == 404
