"""Building graphs from texts and asking them, over HTTP (wire-facts 14)."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import select

from builtin_plugins.graph_rag.models import Graph, GraphPassage
from kernel.testing import Actor, Running, somebody
from tests.builtin_plugins.graph_rag.graph_support import (
    API,
    INSTITUTE,
    STATION,
    call,
    construct,
    documents,
    names,
    stats,
)
from tests.fakes.deleting import delete_account

pytestmark = pytest.mark.asyncio(loop_scope="session")


class TestExtract:
    async def test_mentions_with_their_places(self, ann: Actor) -> None:
        found = await call(ann, "extract", text=INSTITUTE)
        assert found["success"] and found["entity_count"] == len(found["entities"]) > 3
        for one in found["entities"]:
            assert INSTITUTE[one["start"] : one["end"]] == one["text"]
            assert one["label"] and one["description"]
        assert "Senja Station" in names(found)
        assert (await stats(ann))["documents"] == 0

    async def test_relationships_only_where_asked_for(self, ann: Actor) -> None:
        found = await call(ann, "extract", text=INSTITUTE)
        assert found["relationship_count"] == len(found["relationships"]) > 0
        assert {one["type"] for one in found["relationships"]} == {"CO_OCCURRENCE"}
        assert {one["predicate"] for one in found["relationships"]} == {"CO_OCCURS_WITH"}
        without = await call(ann, "extract", text=INSTITUTE, extract_relationships=False)
        assert without["relationships"] == [] and without["entities"] == found["entities"]


class TestConstruct:
    async def test_replaces_and_keeps(self, ann: Actor) -> None:
        """Sent again, a document has one graph, of the new text; fields that are left out stay."""
        first = await construct(ann, "d1", INSTITUTE, title="Institute", source="mail", kb_id="mine")
        assert first["document_id"] == "d1" and first["entity_count"] > 3 and first["message"]
        second = await construct(ann, "d1", "Orléans is a town.", source="web")
        assert second["message"] == "Graph built: 1 entity, 0 relationships"
        [shown] = (await ann.get(f"{API}/graph/documents")).json()["documents"]
        assert shown.pop("created_at")
        assert shown == {
            "id": "d1",
            "title": "Institute",
            "source": "web",
            "kb_id": "mine",
            "entity_count": second["entity_count"],
        }
        assert names(await call(ann, "graph/search", query="Senja")) == []
        assert names(await call(ann, "graph/search", query="orleans")) == ["Orléans"]

    async def test_same_document_at_the_same_time(self, ann: Actor) -> None:
        await asyncio.gather(*(construct(ann, "d", INSTITUTE) for _ in range(4)))
        assert await documents(ann) == ["d"]

    async def test_newest_first(self, ann: Actor) -> None:
        """Documents are listed by the age of their graphs."""
        for name in ("a", "b", "c"):
            await construct(ann, name, INSTITUTE)
        assert await documents(ann) == ["c", "b", "a"]


class TestWhatNoDatabaseHolds:
    @pytest.mark.parametrize("number", ["1e999", "NaN"])
    async def test_in_free_json(self, ann: Actor, number: str) -> None:
        """A number that is not finite is refused within fields of any JSON, too."""
        body = f'{{"document_id": "a", "text": "Ada", "metadata": {{"c": [{number}]}}}}'
        headers = {"Content-Type": "application/json"}
        refused = await ann.post(f"{API}/construct-graph", data=body, headers=headers)
        assert refused.status == 422, refused.body
        assert refused.detail[0]["loc"] == ["body", "metadata", "c", 0]


class TestAsking:
    async def test_retrieve(self, ann: Actor) -> None:
        """From the query's entities over relations: a step further with depth 2, whatever the case."""
        await construct(ann, "a", "Ada Lindqvist met Jonas Berg.")
        await construct(ann, "b", "Jonas Berg repairs Aurora Sensor.")
        near = await call(ann, "retrieve", query="who is ada lindqvist?", traversal_depth=1)
        assert names(near, "related_entities") == ["Jonas Berg"]
        far = await call(ann, "retrieve", query="who is ada lindqvist?", traversal_depth=2)
        assert names(far, "related_entities") == ["Jonas Berg", "Aurora Sensor"]
        assert far["entity_count"] == 2 and far["retrieval_time_ms"] > 0
        assert {"text", "label", "predicate", "type"} == set(far["related_entities"][0])
        assert (await call(ann, "retrieve", query="who is ada lindqvist?", limit=1))["entity_count"] == 1

    async def test_abbreviations_are_what_they_stand_for(self, ann: Actor) -> None:
        await construct(ann, "a", INSTITUTE)
        await construct(ann, "b", STATION)
        around = names(await call(ann, "retrieve", query="Jonas Berg", traversal_depth=1), "related_entities")
        assert "Nordlys Research Institute" in around and "NRI" not in around
        shown = await call(ann, "entity-context", entity_text="Jonas Berg")
        assert "NRI" not in names(shown, "related_entities")
        await construct(ann, "c", "The North River Inn (NRI) lies in Bergen.")
        around = names(await call(ann, "retrieve", query="Jonas Berg", traversal_depth=1), "related_entities")
        assert "NRI" in around

    async def test_nothing_known(self, ann: Actor) -> None:
        """A query without an entity is an empty success."""
        found = await call(ann, "retrieve", query="what is it?")
        assert (found["success"], found["related_entities"]) == (True, [])

    async def test_context(self, ann: Actor) -> None:
        """Neighbours, documents and passages; names that were merged show the words that say so."""
        await construct(ann, "a", INSTITUTE, title="Institute")
        await construct(ann, "b", STATION)
        found = await call(ann, "entity-context", entity_text="nordlys research institute", context_window=5)
        assert found["entity"]["text"] == "Nordlys Research Institute"
        assert {one["id"]: one["title"] for one in found["documents"]} == {"a": "Institute", "b": None}
        assert "Senja Station" in names(found, "related_entities")
        assert found["context_window"] == 5
        [same] = found["also_called"]
        assert (same["text"], same["reason"], same["document_id"]) == ("NRI", "abbreviation", "a")
        assert same["evidence"].endswith("Nordlys Research Institute (NRI)")
        assert {one["document_id"] for one in found["passages"]} == {"a", "b"}
        alone = await call(ann, "entity-context", entity_text="NRI", include_neighbors=False)
        assert alone["related_entities"] == [] and alone["entity"]["text"] == "Nordlys Research Institute"

    async def test_people_of_one_document(self, ann: Actor) -> None:
        """A surname alone, and one with an initial, are the same person in one document, and in no other."""
        await construct(ann, "a", f"{INSTITUTE} Later A. Lindqvist left.")
        await construct(ann, "b", "Lindqvist is a common name.")
        found = await call(ann, "entity-context", entity_text="Ada Lindqvist")
        assert {one["reason"] for one in found["also_called"]} == {"initials", "surname"}
        assert [one["id"] for one in found["documents"]] == ["a"]

    @pytest.mark.parametrize(
        ("shown", "other"),
        [("185 euro", "185 EURO"), ("14 July 2024", "2024-07-14"), ("$1,200", "$1200"), ("2019", " 2019 ")],
    )
    async def test_dates_and_amounts(self, ann: Actor, shown: str, other: str) -> None:
        """What a picture or a search shows of them leads to them, however they are written."""
        await construct(ann, "a", f"Ada Lindqvist paid for the Aurora Sensor: {shown} in all.")
        drawn = (await ann.get(f"{API}/graph/network")).json()
        assert shown in names(drawn)
        for asked in (shown, other):
            found = await call(ann, "entity-context", entity_text=asked)
            assert found["entity"]["text"] == shown
            assert [one["id"] for one in found["documents"]] == ["a"]
            assert shown in names(await call(ann, "graph/search", query=f"what about {asked}?"))
            related = await call(ann, "retrieve", query=f"Who paid {asked}?")
            assert "Ada Lindqvist" in names(related, "related_entities")
        unknown = await ann.post(f"{API}/entity-context", json={"entity_text": f"{shown} and more"})
        assert unknown.status == 404

    async def test_unknown_entity(self, ann: Actor) -> None:
        refused = await ann.post(f"{API}/entity-context", json={"entity_text": "Nobody"})
        assert (refused.status, refused.json()["code"]) == (404, "entity_not_found")

    async def test_search_order(self, ann: Actor) -> None:
        """Exact names come first, then names that begin so, then names that hold the words."""
        await construct(ann, "a", "Old Senja Station. Senja Station North. Senja Station.")
        found = await call(ann, "graph/search", query="senja station")
        assert names(found) == ["Senja Station", "Senja Station North", "Old Senja Station"]

    async def test_stats(self, ann: Actor) -> None:
        """Entities count once, however many documents name them."""
        await construct(ann, "a", "Ada Lindqvist met Jonas Berg.")
        await construct(ann, "b", "Ada Lindqvist met Jonas Berg.")
        found = await stats(ann)
        assert (found["documents"], found["entities"], found["nodes"]) == (2, 2, 4)
        assert found["relationships"] == 2 and sum(found["entity_types"].values()) >= 2


class TestDelete:
    async def test_counts(self, ann: Actor) -> None:
        await construct(ann, "a", "Ada Lindqvist met Jonas Berg.")
        await construct(ann, "b", "Jonas Berg repairs Aurora Sensor.")
        gone = await ann.delete(f"{API}/graph/document/a")
        assert gone.status == 200
        assert gone.json() == {
            "success": True,
            "document_id": "a",
            "document_deleted": 1,
            "relationships_deleted": 1,
            "orphan_entities_deleted": 1,
        }
        assert names(await call(ann, "graph/search", query="Ada Lindqvist")) == []
        again = (await ann.delete(f"{API}/graph/document/a")).json()
        assert [value for key, value in again.items() if key.endswith("deleted")] == [0, 0, 0]

    async def test_at_the_same_time(self, ann: Actor) -> None:
        """Of several deletions one counts the graph, and what was in it."""
        for _ in range(3):
            made = await construct(ann, "a", INSTITUTE)
            answers = await asyncio.gather(*(ann.delete(f"{API}/graph/document/a") for _ in range(12)))
            counts = [answer.json() for answer in answers]
            for field, whole in (
                ("document_deleted", 1),
                ("relationships_deleted", made["relationship_count"]),
                ("orphan_entities_deleted", made["entity_count"]),
            ):
                assert sum(one[field] for one in counts) == whole, field

    async def test_several_that_name_the_same(self, ann: Actor) -> None:
        """Documents that go at once leave no entity behind uncounted: whichever goes last counts it."""
        for _ in range(3):
            for number in range(8):
                await construct(ann, f"d{number}", INSTITUTE)
            before = (await stats(ann))["entities"]
            deleting = (ann.delete(f"{API}/graph/document/d{number}") for number in range(8))
            answers = [answer.json() for answer in await asyncio.gather(*deleting)]
            assert [one["document_deleted"] for one in answers] == [1] * 8
            assert sum(one["orphan_entities_deleted"] for one in answers) == before
            assert (await stats(ann))["entities"] == 0

    async def test_while_it_is_written(self, ann: Actor) -> None:
        """Writing and deleting one graph at once: each is done whole, before or after the other."""
        text = " ".join(INSTITUTE.replace("Senja", f"Senja {chr(65 + n)}x") for n in range(26))
        for _ in range(5):
            await construct(ann, "a", INSTITUTE)
            body = {"document_id": "a", "text": text}
            writing = (ann.post(f"{API}/construct-graph", json=body) for _ in range(6))
            deleting = (ann.delete(f"{API}/graph/document/a") for _ in range(6))
            answers = await asyncio.gather(
                *(one for pair in zip(writing, deleting, strict=True) for one in pair)
            )
            assert {answer.status for answer in answers} == {200}, [answer.body for answer in answers]
            await ann.delete(f"{API}/graph/document/a")
            assert await documents(ann) == []

    async def test_ids_of_every_form(self, ann: Actor) -> None:
        """A document's id is the client's own: slashes and quotes are part of it."""
        name = 'https://example.org/a b?"c"'
        await construct(ann, name, INSTITUTE)
        gone = await ann.delete(f"{API}/graph/document/https%3A%2F%2Fexample.org%2Fa%20b%3F%22c%22")
        assert gone.json()["document_deleted"] == 1


class TestAccess:
    async def test_own_graphs_only(self, running: Running) -> None:
        """What somebody constructed is seen by nobody else, not even an administrator."""
        ann, bob, root = (
            await somebody(running),
            await somebody(running),
            await somebody(running, role="admin"),
        )
        await construct(ann, "own", "Ada Lindqvist leads the Own Secret Station.")
        for other in (bob, root):
            assert "own" not in await documents(other)
            assert names(await call(other, "graph/search", query="Own Secret Station")) == []
            assert names(await call(other, "retrieve", query="Own Secret Station"), "related_entities") == []
            assert (await other.delete(f"{API}/graph/document/own")).json()["document_deleted"] == 0
        assert await documents(ann) == ["own"]
        assert (await stats(bob))["nodes"] == 0

    async def test_abbreviations_of_others(self, running: Running) -> None:
        """What an abbreviation means in a hidden document changes nothing here."""
        ann, bob = await somebody(running), await somebody(running)
        await construct(ann, "a", INSTITUTE)
        await construct(bob, "b", STATION)
        found = await call(bob, "entity-context", entity_text="NRI")
        assert found["entity"]["text"] == "NRI" and found["also_called"] == []


async def test_the_account_is_deleted(running: Running) -> None:
    """The graphs that it made are gone with all their rows; another account's, of the same text, stay."""
    ann, bob = await somebody(running), await somebody(running)
    for one in (ann, bob):
        await construct(one, f"of-{one.user['id']}", INSTITUTE)
    before = await stats(bob)
    await delete_account(running, ann)
    makers = select(Graph.maker).join(GraphPassage, GraphPassage.graph_id == Graph.id)
    left = await running.platform.database.read(lambda session: set(session.scalars(makers)))
    assert str(ann.user["id"]) not in left and str(bob.user["id"]) in left
    assert await stats(bob) == before and await documents(bob) == [f"of-{bob.user['id']}"]
