"""Questions of two hops over HTTP: what the walk finds, says of it, and must never reach."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.testing import Actor, Running, somebody
from tests.builtin_plugins.graph_rag.graph_support import construct, ingest, make_base, switch

QUESTION = "Where was the director of the film Silent Harbor born?"
FILM = "Silent Harbor is a film of 1951. The director of the film Silent Harbor was Tilda Vanqvist."
DIRECTOR = "Tilda Vanqvist, born in Greyhaven, studied law and kept bees."
OTHERS = [
    f"{name} is a film of 19{at + 20}, by a director who was born at sea."
    for at, name in enumerate(
        (
            "Golden Road",
            "Paper Tower",
            "Winter Clock",
            "Last Garden",
            "Broken Map",
            "Iron Feast",
            "Second Shore",
        )
    )
]


async def _filled(running: Running, actor: Actor, **fields: object) -> tuple[str, dict[str, str]]:
    """A knowledge base with the film, its director and other films; returns its id and its documents'."""
    base = await make_base(actor, **fields)
    texts = {"film.txt": FILM, "director.txt": DIRECTOR}
    texts |= {f"other{at}.txt": text for at, text in enumerate(OTHERS)}
    return base, {name: await ingest(running, actor, base, name, text) for name, text in texts.items()}


async def _search(actor: Actor, base: str, **fields: object) -> dict[str, Any]:
    body = {"question": QUESTION, "top_k": 3, **fields}
    answer = await actor.post(f"/v1/rag/knowledge-bases/{base}/search", json=body)
    assert answer.status == 200, answer.body
    return dict(answer.json())


def _sources(answer: dict[str, Any]) -> list[str]:
    return [str(item["source"]) for item in answer["items"]]


@pytest.mark.asyncio(loop_scope="session")
async def test_a_second_hop_is_found_by_the_graph_alone(running: Running) -> None:
    """The director's article shares one word with the question, others share more; the film's names it."""
    actor = await somebody(running)
    base, _ = await _filled(running, actor, graph=True)
    plain = await _search(actor, base)
    walked = await _search(actor, base, graph=True)
    assert "director.txt" not in _sources(plain)
    assert "director.txt" in _sources(walked)
    assert _sources(walked)[:2] == _sources(plain)[:2]
    added = next(item for item in walked["items"] if item["source"] == "director.txt")
    assert added["scores"]["graph"] == added["score"]
    assert added["path"] == ["film.txt —mentions→ Tilda Vanqvist", "Tilda Vanqvist —names→ director.txt"]
    assert "degraded" not in walked


@pytest.mark.asyncio(loop_scope="session")
async def test_what_is_deleted_is_never_reached(running: Running) -> None:
    """Neither a deleted passage, nor one behind a deleted one; what comes back is found again."""
    actor = await somebody(running)
    base, documents = await _filled(running, actor, graph=True)
    assert "director.txt" in _sources(await _search(actor, base, graph=True))
    path = f"/v1/rag/knowledge-bases/{base}/documents"
    assert (await actor.delete(f"{path}/{documents['director.txt']}")).status == 200
    assert "director.txt" not in _sources(await _search(actor, base, graph=True))
    await ingest(running, actor, base, "director.txt", DIRECTOR)
    assert "director.txt" in _sources(await _search(actor, base, graph=True))
    assert (await actor.delete(f"{path}/{documents['film.txt']}")).status == 200
    assert "director.txt" not in _sources(await _search(actor, base, graph=True))


@pytest.mark.asyncio(loop_scope="session")
async def test_nobody_elses_document_is_a_bridge(running: Running) -> None:
    actor, other = await somebody(running), await somebody(running)
    base = await make_base(actor, graph=True)
    for at, text in enumerate([*OTHERS, FILM.replace("Tilda Vanqvist", "an unknown")]):
        await ingest(running, actor, base, f"{at}.txt", text)
    await ingest(running, actor, base, "director.txt", DIRECTOR)
    await _filled(running, other, graph=True)
    await construct(other, "bridge", f"{FILM} {QUESTION}", kb_id=base)
    answer = await _search(actor, base, graph=True)
    assert "director.txt" not in _sources(answer)
    assert all("path" not in item for item in answer["items"])


@pytest.mark.asyncio(loop_scope="session")
async def test_the_walk_stays_among_the_documents_of_the_filter(running: Running) -> None:
    actor = await somebody(running)
    base, _ = await _filled(running, actor, graph=True)
    answer = await _search(actor, base, graph=True, metadata_filter={"source": "film.txt"})
    assert _sources(answer) == ["film.txt"]


@pytest.mark.asyncio(loop_scope="session")
async def test_switching_the_graph_on_and_off(running: Running) -> None:
    actor = await somebody(running)
    base, _ = await _filled(running, actor)
    assert "director.txt" not in _sources(await _search(actor, base, graph=True))
    assert (await switch(actor, base, True)).status == 200
    await running.run_jobs()
    assert "director.txt" in _sources(await _search(actor, base, graph=True))
    assert (await switch(actor, base, False)).status == 200
    await running.run_jobs()
    assert "director.txt" not in _sources(await _search(actor, base, graph=True))


@pytest.mark.asyncio(loop_scope="session")
async def test_a_query_cites_what_the_walk_added(running: Running) -> None:
    actor = await somebody(running)
    base, _ = await _filled(running, actor, graph=True)
    made = await actor.post("/v1/rag/pipeline", json={"name": "films", "knowledge_base_ids": [base]})
    pipeline = made.json()["pipeline_id"]
    body = {"question": QUESTION, "top_k": 3, "graph": True, "explain": True}
    answer = await actor.post(f"/v1/rag/pipeline/{pipeline}/query", json=body)
    assert answer.status == 200, answer.body
    added = [source for source in answer.json()["sources"] if source["source"] == "director.txt"]
    assert added[0]["path"][0] == "film.txt —mentions→ Tilda Vanqvist"
    assert added[0]["scores"]["graph"] > 0
