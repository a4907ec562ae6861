"""Correlations and overviews: scored, shown by sentences, the same every time, and blind to hidden graphs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import pytest

from builtin_plugins.graph_rag.asking import correlations
from kernel.testing import Actor, Running, platforms, somebody
from tests.builtin_plugins.graph_rag.graph_support import API, call, construct

pytestmark = pytest.mark.asyncio(loop_scope="session")

HARBOUR = "Captain Ilse Brandt anchors the Polar Star in Hammerfest. The Polar Star carries copper ore."
MUSEUM = "The Arctic Museum shows a model of the Polar Star. Ilse Brandt opened the Arctic Museum."
HANDBOOK = (
    "A hotel in Oslo may cost up to 185 euro per night.\n\n"
    "Ada Lindqvist leads the Senja Station. Jonas Berg repairs the Aurora Sensor there.\n\n"
    "The Senja Station sends its measurements to Tromsø. Ada Lindqvist checks them.\n"
)
BAKERY = "Emil Dahl bakes bread in Bergen. The Dahl Bakery opens at six."


async def items(actor: Actor, **body: object) -> list[dict[str, Any]]:
    found = await call(actor, "graph/correlate", **body)
    assert found["total"] == len(found["items"])
    return list(found["items"])


async def make(actor: Actor) -> None:
    for name, text in (("harbour", HARBOUR), ("museum", MUSEUM), ("bakery", BAKERY)):
        await construct(actor, name, text, title=name.title())


class TestCorrelate:
    async def test_of_a_document(self, ann: Actor) -> None:
        """Documents that name the same rare things, with a sentence from each for each of these."""
        await make(ann)
        [one] = await items(ann, document_id="museum")
        assert (one["source"], one["target"], one["kind"]) == ("museum", "harbour", "SHARED_ENTITIES")
        assert 0 < one["score"] < 1
        assert set(one["shared"]) == {"Polar Star", "Ilse Brandt"}
        told = {(each["document_id"], each["title"], each["snippet"]) for each in one["evidence"]}
        assert ("museum", "Museum", "Ilse Brandt opened the Arctic Museum.") in told
        assert any(document == "harbour" and "Polar Star" in snippet for document, _, snippet in told)

    async def test_a_sentence_is_told_once(self, ann: Actor) -> None:
        """One that names several of the things that two documents have in common is one piece of evidence."""
        await construct(ann, "life", "Marie Curie met Pierre Curie in Warsaw.")
        await construct(ann, "letters", "Pierre Curie wrote to Marie Curie in Warsaw.")
        [one] = await items(ann)
        assert len(one["shared"]) == 3
        assert sorted(each["snippet"] for each in one["evidence"]) == [
            "Marie Curie met Pierre Curie in Warsaw.",
            "Pierre Curie wrote to Marie Curie in Warsaw.",
        ]

    async def test_of_an_entity(self, ann: Actor) -> None:
        """Entities that are related to it, the closest first, and where one can see that."""
        await make(ann)
        found = await items(ann, entity="dahl bakery")
        assert {one["target"] for one in found} == {"Bergen", "Emil Dahl"}
        best = found[0]
        assert best["source"] == "Dahl Bakery" and best["kind"] == "CO_OCCURRENCE"
        assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)
        assert best["evidence"][0]["document_id"] == "bakery" and "Bakery" in best["evidence"][0]["snippet"]

    async def test_strongest_of_all(self, ann: Actor) -> None:
        """Without a document or an entity: all pairs, by GET and POST alike."""
        await make(ann)
        [one] = await items(ann)
        assert {one["source"], one["target"]} == {"harbour", "museum"}
        got = (await ann.get(f"{API}/graph/correlations?limit=5")).json()
        assert got["items"] == [one]
        assert await items(ann, min_score=1) == []

    async def test_beside_the_event_loop(self, ann: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
        """Scoring thousands of documents takes seconds, in which others are served."""
        await make(ann)
        threads: set[threading.Thread] = set()

        def noted(graphs: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
            threads.add(threading.current_thread())
            return combinations(graphs, size)

        monkeypatch.setattr(correlations, "combinations", noted)
        assert len(await items(ann)) == 1
        assert threads and threading.current_thread() not in threads

    async def test_same_every_time(self, running: Running) -> None:
        """Equal graphs give equal answers, whatever the order in which they came."""
        ann, bob = await somebody(running), await somebody(running)
        texts = {f"d{number}": f"Ship {number} meets the Polar Star in Bergen." for number in range(6)}
        for name in texts:
            await construct(ann, name, texts[name])
        for name in reversed(texts):
            await construct(bob, name, texts[name])

        def plain(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
            return sorted((*sorted((one["source"], one["target"])), one["score"]) for one in found)

        first = await items(ann, limit=100)
        assert first == await items(ann, limit=100)
        assert plain(first) == plain(await items(bob, limit=100))

    async def test_unknown(self, running: Running) -> None:
        """404, for what is hidden as for what there is not."""
        ann, bob = await somebody(running), await somebody(running)
        await make(ann)
        for body, code in (
            ({"document_id": "museum"}, "graph_not_found"),
            ({"entity": "Polar Star"}, "entity_not_found"),
        ):
            refused = await bob.post(f"{API}/graph/correlate", json=body)
            assert (refused.status, refused.json()["code"]) == (404, code)

    async def test_hidden_documents_weigh_nothing(self, running: Running) -> None:
        """Scores count only what the caller sees: others' documents make nothing more common."""
        ann, bob = await somebody(running), await somebody(running)
        await make(ann)
        before = await items(ann)
        for number in range(5):
            await construct(bob, f"b{number}", HARBOUR)
        assert await items(ann) == before


class TestOverview:
    async def test_topics(self, ann: Actor) -> None:
        """Related entities form a topic, summarized by sentences of its documents."""
        await make(ann)
        found = await call(ann, "overview")
        assert (found["documents"], found["success"]) == (3, True)
        ship = next(topic for topic in found["topics"] if "Polar Star" in topic["entities"])
        bread = next(topic for topic in found["topics"] if "Emil Dahl" in topic["entities"])
        assert ship is not bread
        assert set(bread["documents"]) == {"bakery"} and "Emil Dahl bakes bread" in bread["summary"]
        assert ship["title"] and "Polar Star" in ship["summary"]
        again = await call(ann, "overview")
        assert again["topics"] == found["topics"]
        assert len((await call(ann, "overview", limit=1))["topics"]) == 1

    async def test_two_topics_of_one_document(self, ann: Actor) -> None:
        await construct(ann, "handbook", HANDBOOK)
        topics = (await call(ann, "overview"))["topics"]
        oslo = next(topic for topic in topics if "Oslo" in topic["entities"])
        assert "Senja Station" not in oslo["entities"]
        assert oslo["summary"] == "A hotel in Oslo may cost up to 185 euro per night."

    async def test_nothing(self, ann: Actor) -> None:
        """Without graphs there are no topics; a knowledge base without a visible graph is 404."""
        found = await call(ann, "overview")
        assert (found["documents"], found["entities"], found["topics"]) == (0, 0, [])
        refused = await ann.post(f"{API}/overview", json={"kb_id": "somewhere"})
        assert (refused.status, refused.json()["code"]) == (404, "graph_not_found")


async def test_action(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Programs and models find correlations by the tool of this name, as whoever calls."""
    async with platforms(tmp_path_factory.mktemp("action")) as start:
        running = await start("graph_rag", "plugin_registry", "orchestrator")
        ann, bob = await somebody(running), await somebody(running)
        await make(ann)
        path = "/v1/plugins/graph_rag/actions/find_correlations"
        found = await ann.post(path, json={"document_id": "museum"})
        assert found.status == 200, found.body
        assert "harbour" in found.body.decode()
        assert (await bob.post(path, json={"document_id": "museum"})).status == 404
        called = await ann.post("/v1/ai/functions/find_correlations", json={"document_id": "museum"})
        assert called.status == 200 and "harbour" in called.body.decode(), called.body


class TestNetwork:
    async def test_entities_and_connections(self, running: Running) -> None:
        """The most named come first; connections name their ends by place, each pair once for a direction."""
        ann, bob = await somebody(running), await somebody(running)
        await make(ann)
        found = (await ann.get(f"{API}/graph/network")).json()
        texts = [one["text"] for one in found["entities"]]
        assert {text.removeprefix("Captain ") for text in texts[:2]} == {"Polar Star", "Ilse Brandt"}
        assert [one["documents"] for one in found["entities"][:3]] == [2, 2, 1]
        pairs = [(texts[one["source"]], texts[one["target"]]) for one in found["connections"]]
        assert len(set(pairs)) == len(pairs) and any({"Emil Dahl", "Bergen"} == set(pair) for pair in pairs)
        assert (await bob.get(f"{API}/graph/network")).json() == {"entities": [], "connections": []}

    async def test_only_the_most_named(self, ann: Actor) -> None:
        await make(ann)
        found = (await ann.get(f"{API}/graph/network?limit=2")).json()
        assert len(found["entities"]) == 2 and found["connections"]
        assert {end for one in found["connections"] for end in (one["source"], one["target"])} <= {0, 1}
        assert (await ann.get(f"{API}/graph/network?limit=2001")).status == 422
