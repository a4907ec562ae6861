"""The requirements for every vector store, as tests: a backend's tests subclass `VectorStoreConformance`.

The subclass provides two fixtures: `database`, a new database, and `stores`, two stores opened on it as by
two processes. pytest-asyncio in auto mode runs the tests.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import ColumnElement, literal_column, select

from builtin_plugins.vectors.protocol import (
    WORDS_ONLY,
    EngineMismatch,
    GroupQuery,
    Hit,
    Point,
    Query,
    Vector,
    VectorStore,
    WordQuery,
)
from kernel.sdk import Database, Unit
from kernel.testing import open_unit

DIMENSION = 8
ENGINE = "engine-a"
COLLECTION = "things"

Stores = tuple[VectorStore, VectorStore]


def direction(angle: float) -> Vector:
    """A vector of length 1; the cosine of two of them is that of the angle between them."""
    vector = np.zeros(DIMENSION, np.float32)
    vector[0], vector[1] = math.cos(angle), math.sin(angle)
    return vector


def thing(number: int, group: str = "one", *, angle: float | None = None, text: str = "") -> Point:
    """A point whose angle is a tenth of its number, unless `angle` is given."""
    vector = direction(number / 10 if angle is None else angle)
    return Point(f"{group}-{number}", group, number, text or f"thing {number}", vector, {"number": number})


def ids(hits: Sequence[Hit]) -> list[str]:
    """The ids of hits, in their order."""
    return [hit.point.id for hit in hits]


def _literal(written: str) -> ColumnElement[Any]:
    column: ColumnElement[Any] = literal_column(written)
    return column.label("name")


class VectorStoreConformance:
    """See the module."""

    async def make(
        self, database: Database, store: VectorStore, *points: Point, publish: bool = True
    ) -> None:
        """Write points into the collection, and let searches see their groups."""

        def write(unit: Unit) -> None:
            store.ensure(unit, COLLECTION, DIMENSION, ENGINE)
            store.stage(unit, COLLECTION, points)
            if publish and points:
                store.publish(unit, COLLECTION, *sorted({point.group for point in points}))

        await database.write(write)

    async def near(self, store: VectorStore, angle: float = 0.0, k: int = 10, **limits: object) -> list[Hit]:
        """Search by an angle."""
        return await store.search(COLLECTION, Query(direction(angle), k, **limits))  # type: ignore[arg-type]

    async def test_cosines_to_another_question(self, database: Database, stores: Stores) -> None:
        """Each hit has its own, or none does; the order is that of the search."""
        await self.make(database, stores[0], *(thing(number) for number in range(30)))
        aimed = await self.near(stores[0], 2.0, k=3)
        hits = await self.near(stores[0], 2.0, k=3, question=direction(1.0))
        assert [(h.point.id, h.cosine) for h in hits] == [(h.point.id, h.cosine) for h in aimed]
        cosines = [math.cos(h.point.position / 10 - 1.0) for h in hits]
        assert [h.question_cosine for h in hits] in ([None] * 3, pytest.approx(cosines, abs=2e-3))

    async def test_hits_come_by_cosine_with_all_that_was_stored(
        self, database: Database, stores: Stores
    ) -> None:
        """Best first, no more than asked for, with text, payload and the cosine itself."""
        store = stores[0]
        await self.make(database, store, *(thing(number) for number in range(30)))
        hits = await self.near(store, 2.0, k=3)
        assert hits[0].point.id == "one-20"
        assert set(ids(hits)) == {"one-19", "one-20", "one-21"}
        assert (hits[0].point.text, hits[0].point.payload) == ("thing 20", {"number": 20})
        assert (hits[0].point.group, hits[0].point.position) == ("one", 20)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        far = (await self.near(store, 1.2, k=40))[-1]
        assert far.point.id == "one-29"
        assert far.cosine == far.score == pytest.approx(math.cos(1.7), abs=2e-3)

    async def test_staged_points_are_found_by_nobody(self, database: Database, stores: Stores) -> None:
        """They are counted as staged, but not searched, listed or included in totals."""
        store = stores[0]
        await self.make(database, store, thing(1), thing(2), publish=False)
        assert await store.staged(COLLECTION, "one") == 2
        assert await self.near(store) == [] == await self.near(store, text="thing 1")
        assert await store.points(COLLECTION, "one", 10, 0) == ([], 0)
        assert await store.count(COLLECTION) == 0

    async def test_publishing_shows_a_group_and_no_other(self, database: Database, stores: Stores) -> None:
        """It returns how many points the groups have; what is staged later waits for its own publication."""
        store = stores[0]
        await self.make(database, store, thing(1), thing(2), thing(3, "two"), publish=False)
        assert await database.write(store.publish, COLLECTION, "one") == 2
        assert ids(await self.near(store)) == ["one-1", "one-2"]
        await self.make(database, store, thing(4), thing(5, "three"), publish=False)
        assert ids(await self.near(store)) == ["one-1", "one-2"]
        assert await database.write(store.publish, COLLECTION, "one", "two") == 4
        assert ids(await self.near(store)) == ["one-1", "one-2", "two-3", "one-4"]
        assert await store.count(COLLECTION) == 4

    async def test_retired_points_are_listed_and_found_by_words_alone(
        self, database: Database, stores: Stores
    ) -> None:
        """In both processes; the same group can be written and retired again."""
        store, other = stores
        await self.make(database, store, thing(1), thing(2), thing(3, "two"))
        assert len(await self.near(other, text="thing")) == 3
        for _ in range(2):
            assert await database.write(store.retire, COLLECTION, "one", "earlier") == 2
            assert ids(await self.near(other)) == ids(await self.near(other, text="thing")) == ["two-3"]
            assert await store.points(COLLECTION, "one", 10, 0) == ([], 0)
            assert await store.count(COLLECTION) == 1
            points, total = await other.points("earlier", "one", 10, 0)
            assert ([point.id for point in points], total) == (["one-1", "one-2"], 2)
            assert (points[0].text, points[0].payload) == ("thing 1", {"number": 1})
            hits = await other.search_words("earlier", WordQuery("2", 10))
            assert ([hit.point.id for hit in hits], hits[0].cosine) == (["one-2"], 0.0)
            assert 0.0 < hits[0].score <= 1.0
            assert hits[0].words == hits[0].score
            for groups, count in ((["one"], 2), (["two"], 0), (None, 2)):
                assert len(await store.search_words("earlier", WordQuery("thing", 10, groups))) == count
            await database.write(store.remove_group, "earlier", "one")
            assert await store.staged("earlier", "one") == 0
            assert await other.search_words("earlier", WordQuery("thing", 10)) == []
            await self.make(database, store, thing(1), thing(2))
        assert await database.write(store.retire, "unknown", "one", "earlier") == 0
        assert await store.search_words("unknown", WordQuery("thing", 10)) == []

    async def test_a_collection_without_vectors_is_searched_by_words(
        self, database: Database, stores: Stores
    ) -> None:
        """Its points come and go as others do, in both processes, beside a collection with vectors."""
        store, other = stores
        await self.make(database, store, thing(1))
        bare = [replace(thing(number), vector=np.empty(0, np.float32)) for number in (1, 2)]

        def write(unit: Unit) -> int:
            store.ensure(unit, "words", 0, WORDS_ONLY)
            store.stage(unit, "words", bare)
            return store.publish(unit, "words", "one")

        for _ in range(2):
            assert await database.write(write) == 2
            assert ids(await other.search_words("words", WordQuery("2", 10))) == ["one-2"]
            assert await store.count("words") == 2
            assert len(await self.near(other, text="thing")) == 1
            await database.write(store.remove_group, "words", "one")
            assert await store.search_words("words", WordQuery("thing", 10)) == []

    async def test_a_point_staged_twice_is_one(self, database: Database, stores: Stores) -> None:
        """A job that runs again repeats what it wrote, before and after the publication."""
        store = stores[0]
        await self.make(database, store, thing(1), thing(2))
        await self.make(database, store, thing(1), thing(2), thing(3))
        assert ids(await self.near(store)) == ["one-1", "one-2", "one-3"]

    async def test_points_of_a_group_come_in_pages_by_position(
        self, database: Database, stores: Stores
    ) -> None:
        """Whatever the order in which they were written; the total is that of all pages."""
        store = stores[0]
        await self.make(database, store, *(thing(number) for number in (3, 1, 2)), thing(9, "two"))
        page, total = await store.points(COLLECTION, "one", 2, 1)
        assert ([point.position for point in page], total) == ([2, 3], 3)
        assert await store.points("unheard-of", "one", 2, 0) == ([], 0)

    async def test_vectors_of_a_group_come_in_the_same_pages(
        self, database: Database, stores: Stores
    ) -> None:
        """As they were stored, to a half-precision number, with their engine; past the end there are none."""
        store, things = stores[0], [thing(number, angle=number / 10) for number in (3, 1, 2)]
        await self.make(database, store, *things, thing(9, "two"))
        page = await store.vectors(COLLECTION, "one", 2, 1)
        assert page is not None and page.vectors.dtype == np.float32
        expected = np.stack([direction(0.2), direction(0.3)])
        assert np.allclose(page.vectors, expected, atol=1e-3)
        assert page.engine == ENGINE
        past = await store.vectors(COLLECTION, "one", 2, 3)
        assert past is not None and past.vectors.shape == (0, expected.shape[1])
        assert await store.vectors("unheard-of", "one", 2, 0) is None

    async def test_a_rollback_leaves_nothing(self, database: Database, stores: Stores) -> None:
        """Neither what was written, nor what was removed, nor a collection that was dropped."""
        store = stores[0]
        await self.make(database, store, thing(1))

        def change(unit: Unit) -> None:
            store.stage(unit, COLLECTION, [thing(2), thing(3, "two")])
            store.publish(unit, COLLECTION, "two")
            store.remove_group(unit, COLLECTION, "one")
            raise ZeroDivisionError

        def drop(unit: Unit) -> None:
            store.drop(unit, COLLECTION)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await database.write(change)
        assert ids(await self.near(store)) == ["one-1"]
        assert await store.staged(COLLECTION, "two") == 0
        with pytest.raises(ZeroDivisionError):
            await database.write(drop)
        assert ids(await self.near(store)) == ["one-1"]

    async def test_what_is_not_committed_is_seen_by_nobody_else(
        self, database: Database, stores: Stores
    ) -> None:
        """A publication shows with its commit, all points at once; a removal too."""
        first, second = stores
        await self.make(database, first, thing(1), *(thing(n, "two") for n in range(5)), publish=False)

        def publish(unit: Unit) -> None:
            first.publish(unit, COLLECTION, "one")
            first.publish(unit, COLLECTION, "two")

        async with open_unit(database, publish):
            assert await self.near(second) == []
        assert len(await self.near(second)) == 6
        async with open_unit(database, lambda unit: first.remove_group(unit, COLLECTION, "two")):
            assert len(await self.near(second)) == 6
        assert ids(await self.near(second)) == ["one-1"]

    async def test_a_removed_group_is_gone_at_once_everywhere(
        self, database: Database, stores: Stores
    ) -> None:
        """Also for a store that had found it before, by vector and by word, published or staged."""
        first, second = stores
        await self.make(database, first, thing(1, text="zebra"), thing(2, "two"))
        await self.make(database, first, thing(3), publish=False)
        assert len(await self.near(second, text="zebra")) == 2
        assert await database.write(first.remove_group, COLLECTION, "one") == 2
        for store in stores:
            assert ids(await self.near(store)) == ["two-2"]
            assert ids(await self.near(store, text="zebra")) == ["two-2"]
            assert await self.near(store, groups=["one"]) == []
        assert await second.staged(COLLECTION, "one") == 0

    async def test_a_group_can_be_written_anew(self, database: Database, stores: Stores) -> None:
        """With the same ids, in the transaction that removed it: the new vectors and texts count."""
        first, second = stores
        await self.make(database, first, thing(1, angle=0.0, text="before"))
        assert (await self.near(second))[0].cosine == pytest.approx(1.0, abs=2e-3)

        def write_anew(unit: Unit) -> None:
            first.remove_group(unit, COLLECTION, "one")
            first.stage(unit, COLLECTION, [thing(1, angle=1.0, text="after")])
            first.publish(unit, COLLECTION, "one")

        await database.write(write_anew)
        (hit,) = await self.near(second, text="after")
        assert hit.point.text == "after"
        assert hit.cosine == pytest.approx(math.cos(1.0), abs=2e-3)

    async def test_removing_what_is_not_there_does_nothing(self, database: Database, stores: Stores) -> None:
        """Neither a group nor a collection that nobody made is an error."""
        await self.make(database, stores[0], thing(1))
        assert await database.write(stores[0].remove_group, COLLECTION, "two") == 0
        assert await database.write(stores[0].remove_group, "unheard-of", "one") == 0
        await database.write(stores[0].drop, "unheard-of")
        assert await stores[0].count(COLLECTION) == 1

    async def test_a_filter_works_before_ranking(self, database: Database, stores: Stores) -> None:
        """A group far from the question fills the answer, however many of other groups are nearer."""
        store = stores[0]
        near = [thing(number, "near", angle=number / 1000, text="apple") for number in range(100)]
        await self.make(database, store, *near, *(thing(n, "far", angle=2.0 + n / 10) for n in range(5)))
        hits = await self.near(store, k=5, groups=["far"])
        assert ids(hits) == [f"far-{number}" for number in range(5)]
        assert {hit.point.group for hit in await self.near(store, k=5, text="apple", groups=["far"])} == {
            "far"
        }
        assert len(await self.near(store, k=50, groups=["far", "near"])) == 50
        assert await self.near(store, groups=[]) == [] == await self.near(store, groups=["nobody's"])

    async def test_a_filter_may_be_a_query(self, database: Database, stores: Stores) -> None:
        """It is run again when its version or the collection changes; two keys are two queries."""
        await self.make(database, stores[0], thing(1, "one"), thing(2, "two"))
        both = select(_literal("'one'")).union_all(select(_literal("'new'")))
        one, two = select(both.subquery()), select(_literal("'two'"))

        async def search_stores(groups: GroupQuery, **more: object) -> list[list[str]]:
            return [sorted(ids(await self.near(store, 0.0, 10, groups=groups, **more))) for store in stores]

        first, second = select(_literal("1")), select(_literal("2"))
        searches: list[dict[str, object]] = [{}, {"text": "thing"}]
        for more in searches:
            for _ in range(2):
                assert await search_stores(GroupQuery(one, "key", first), **more) == [["one-1"]] * 2
                assert await search_stores(GroupQuery(two, "other key", first), **more) == [["two-2"]] * 2
            assert await search_stores(GroupQuery(two, "key", second), **more) == [["two-2"]] * 2
            assert await search_stores(GroupQuery(one, "key", first), **more) == [["one-1"]] * 2
        await self.make(database, stores[0], thing(3, "new"))
        assert await search_stores(GroupQuery(one, "key", first)) == [["new-3", "one-1"]] * 2
        await database.write(stores[1].remove_group, COLLECTION, "one")
        assert await search_stores(GroupQuery(one, "key", first)) == [["new-3"]] * 2

    async def test_isolated_groups_are_scored_as_if_there_were_no_others(
        self, database: Database, stores: Stores
    ) -> None:
        """Otherwise, scores would tell which words secret groups have."""
        store = stores[0]
        own = [thing(1, text="red apple"), thing(2, angle=0.3, text="green apple pie")]
        await self.make(database, store, *own)
        names, version = select(select(_literal("'one'")).subquery()), select(_literal("1"))
        groups = GroupQuery(names, "key", version, isolated=True)

        async def scores() -> list[tuple[str, float, float | None]]:
            hits = await self.near(store, k=5, text="red apple merger", groups=groups)
            return [(hit.point.id, round(hit.score, 6), hit.words) for hit in hits]

        before = await scores()
        assert [point for point, *_ in before] == ["one-1", "one-2"]
        secret = [thing(number, "secret", angle=number / 10, text="the red merger") for number in range(40)]
        await self.make(database, store, *secret)
        assert await scores() == before
        await database.write(store.remove_group, COLLECTION, "secret")
        assert await scores() == before

    async def test_hybrid_search_finds_words_and_meaning(self, database: Database, stores: Stores) -> None:
        """A word that only a far point has brings it up; each hit has its cosine; scores are at most 1."""
        store = stores[0]
        others = [thing(number, text=f"plain words {number}") for number in range(60)]
        await self.make(database, store, *others, thing(99, angle=2.5, text="the code is ECONNRESET"))
        hits = await self.near(store, k=10, text="ECONNRESET")
        assert hits[0].point.id == "one-99"
        assert hits[0].cosine == pytest.approx(math.cos(2.5), abs=2e-3)
        assert len(hits) == 10
        assert all(hit.cosine is not None and hit.score <= 1.0 + 1e-6 for hit in hits)
        assert ids(await self.near(store, k=3, text="unheard of")) == ["one-0", "one-1", "one-2"]

    async def test_two_stores_see_each_others_commits(self, database: Database, stores: Stores) -> None:
        """Written by either, found by both, by vector and by word, in whatever order they first search."""
        first, second = stores
        await self.make(database, first, thing(1))
        assert ids(await self.near(second)) == ["one-1"]
        await self.make(database, second, thing(2, "two", text="zebra"))
        await self.make(database, first, thing(3, "three", text="zebra"))
        for store in stores:
            assert set(ids(await self.near(store, text="zebra"))) == {"one-1", "two-2", "three-3"}

    async def test_what_is_added_to_payloads(self, database: Database, stores: Stores) -> None:
        """Every store finds it with the group's points, which keep the rest; another group has none of it."""
        first, second = stores
        await self.make(database, first, thing(1), thing(2, "two"))
        assert len(await self.near(second, text="thing")) == 2
        await database.write(first.annotate, COLLECTION, "one", {"language": "de"})
        await database.write(first.annotate, "nowhere", "one", {"language": "de"})
        for store in stores:
            for text in (None, "thing"):
                best, other = await self.near(store, 0.1, text=text)
                assert (best.point.id, best.point.payload) == ("one-1", {"number": 1, "language": "de"})
                assert best.cosine == pytest.approx(1.0, abs=2e-3)
                assert other.point.payload == {"number": 2}
            assert await store.count(COLLECTION) == 2

    async def test_vectors_of_another_engine_are_refused(self, database: Database, stores: Stores) -> None:
        """On writing and on searching; a query that names no engine trusts its caller."""
        store = stores[0]
        await self.make(database, store, thing(1))
        for dimension, engine in ((DIMENSION, "engine-b"), (DIMENSION + 1, ENGINE)):
            with pytest.raises(EngineMismatch):
                await database.write(store.ensure, COLLECTION, dimension, engine)
        with pytest.raises(EngineMismatch):
            await self.near(store, engine="engine-b")
        assert len(await self.near(store, engine=ENGINE)) == 1 == len(await self.near(store))

    async def test_vectors_that_do_not_fit_are_refused(self, database: Database, stores: Stores) -> None:
        """Of another length, or not finite: nothing of the call is written, and searches still work."""
        store = stores[0]
        await self.make(database, store, thing(1))
        short = Point("bad", "two", 0, "bad", np.ones(DIMENSION - 1, np.float32))
        endless = Point("bad", "two", 0, "bad", np.full(DIMENSION, np.inf, np.float32))
        for bad in (short, endless):
            with pytest.raises(ValueError, match="bad"):
                await self.make(database, store, thing(2, "two"), bad)
        with pytest.raises(ValueError, match=str(DIMENSION)):
            await store.search(COLLECTION, Query(short.vector, 5))
        assert ids(await self.near(store)) == ["one-1"]

    async def test_a_collection_nobody_made_is_empty(self, database: Database, stores: Stores) -> None:
        """To searches; writing into it is a mistake of the caller."""
        assert await self.near(stores[0]) == []
        assert await stores[0].count(COLLECTION) == 0
        with pytest.raises(LookupError):
            await database.write(stores[0].stage, COLLECTION, [thing(1)])

    async def test_a_dropped_collection_can_be_made_anew(self, database: Database, stores: Stores) -> None:
        """With vectors of another engine and length; no store remembers the old points."""
        first, second = stores
        await self.make(database, first, thing(1), thing(2))
        assert len(await self.near(second, text="thing")) == 2
        await database.write(first.drop, COLLECTION)
        for store in stores:
            assert await self.near(store) == []
            assert await store.count(COLLECTION) == 0 == await store.staged(COLLECTION, "one")
        longer = np.eye(1, DIMENSION * 2, dtype=np.float32)[0]

        def make_anew(unit: Unit) -> None:
            second.ensure(unit, COLLECTION, DIMENSION * 2, "engine-b")
            second.stage(unit, COLLECTION, [Point("new", "one", 0, "new thing", longer)])
            second.publish(unit, COLLECTION, "one")

        await database.write(make_anew)
        for store in stores:
            assert ids(await store.search(COLLECTION, Query(longer, 5, text="thing"))) == ["new"]

    async def test_a_collection_takes_the_place_of_another(self, database: Database, stores: Stores) -> None:
        """Dropped and renamed in one unit: every store finds the new points under the old name."""
        first, second = stores
        await self.make(database, first, thing(1))
        assert len(await self.near(second, text="thing")) == 1
        longer = np.eye(1, DIMENSION * 2, dtype=np.float32)[0]

        def replace_it(unit: Unit) -> None:
            first.ensure(unit, "coming", DIMENSION * 2, "engine-b")
            first.stage(unit, "coming", [Point("new", "one", 0, "new thing", longer)])
            first.publish(unit, "coming", "one")
            first.drop(unit, COLLECTION)
            first.rename(unit, "coming", COLLECTION)
            first.rename(unit, "nowhere", "elsewhere")

        await database.write(replace_it)
        for store in stores:
            assert ids(await store.search(COLLECTION, Query(longer, 5, text="thing"))) == ["new"]
            assert await store.count("coming") == 0 and await store.count(COLLECTION) == 1

    async def test_collections_do_not_mix(self, database: Database, stores: Stores) -> None:
        """Points of the same group and id live in two collections; one is dropped, the other stays."""
        store = stores[0]
        await self.make(database, store, thing(1))

        def make_others(unit: Unit) -> None:
            store.ensure(unit, "others", DIMENSION, ENGINE)
            store.stage(unit, "others", [thing(1, text="other")])
            store.publish(unit, "others", "one")

        await database.write(make_others)
        assert [hit.point.text for hit in await self.near(store)] == ["thing 1"]
        await database.write(store.drop, "others")
        assert ids(await self.near(store)) == ["one-1"]

    async def test_writers_beside_one_another_lose_nothing(self, database: Database, stores: Stores) -> None:
        """Groups written, published and removed at a time through both stores, searched meanwhile."""
        await self.make(database, stores[0], thing(0, "first"))

        async def write(number: int) -> None:
            store = stores[number % 2]
            await self.make(database, store, thing(number, f"g{number}", text="zebra"))
            assert f"g{number}-{number}" in ids(await self.near(store, k=50, text="zebra"))
            if number % 3 == 0:
                await database.write(store.remove_group, COLLECTION, f"g{number}")

        await asyncio.gather(*(write(number) for number in range(1, 19)))
        expected = {"first-0"} | {f"g{n}-{n}" for n in range(1, 19) if n % 3}
        for store in stores:
            assert set(ids(await self.near(store, k=50))) == expected
            assert set(ids(await self.near(store, k=50, text="zebra"))) == expected

    @pytest.mark.parametrize("publish_early", [False, True])
    async def test_the_order_of_commits_loses_no_group(
        self, database: Database, stores: Stores, publish_early: bool
    ) -> None:
        """Of two transactions that overlap, the one that began first commits last: both are found."""
        first, second = stores
        await self.make(database, first, thing(0, "zero"))

        def begin(unit: Unit) -> None:
            first.stage(unit, COLLECTION, [thing(1, "slow")])
            if publish_early:
                first.publish(unit, COLLECTION, "slow")

        def end(unit: Unit) -> None:
            if not publish_early:
                first.publish(unit, COLLECTION, "slow")

        async with open_unit(database, begin, end):
            quick = asyncio.create_task(self.make(database, second, thing(2, "quick")))
            await asyncio.wait([quick], timeout=0.5)  # if writers queue up, it waits for the slow one
            for store in stores:
                assert {"zero-0"} <= set(ids(await self.near(store))) <= {"zero-0", "quick-2"}
        await quick
        for store in stores:
            assert set(ids(await self.near(store))) == {"zero-0", "slow-1", "quick-2"}
