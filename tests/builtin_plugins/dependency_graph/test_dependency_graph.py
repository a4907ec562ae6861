"""The graph over HTTP: edges, resolution with its explanations, conflicts, recommendations, health."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kernel.testing import Actor, Reply, Running, eventually, platforms, postgres_database
from tests.builtin_plugins.marketplace.marketplace_support import PLUGINS, bring
from tests.builtin_plugins.tenancy.tenancy_support import fresh, somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

EDGES = "/v1/graph/dependencies"


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=["sqlite", "postgresql"])
async def admin(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Actor]:
    """An administrator of a platform with a catalog and its graph."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database()) if request.param == "postgresql" else None
        async with platforms(tmp_path_factory.mktemp("graph")) as start:
            running = await start("tenancy", "marketplace", "dependency_graph", env={"DATABASE_URL": url})
            yield await somebody(running, role="admin")


async def listed(admin: Actor, name: str, version: str = "1.0") -> str:
    listing = await bring(admin, admin, "approved", name=fresh(name), current_version=version)
    return str(listing["id"])


async def connect(admin: Actor, source: str, target: str, kind: str = "requires", **more: str) -> Reply:
    query = {"plugin_id": source, "depends_on": target, "dependency_type": kind, **more}
    return await admin.post(EDGES, params=query)


async def resolved(admin: Actor, plugin: str) -> Any:
    answer = await admin.get(f"{EDGES}/{plugin}")
    assert answer.status == 200, answer.body
    return answer.json()


async def name_of(admin: Actor, plugin: str) -> str:
    return str((await admin.get(f"{PLUGINS}/{plugin}")).json()["name"])


async def test_a_closure_with_depths(admin: Actor) -> None:
    """Everything that is required, each once, at its least depth; a diamond is no cycle."""
    a, b, c, d = [await listed(admin, name) for name in "abcd"]
    for source, target in ((a, b), (a, c), (b, d), (c, d)):
        answer = await connect(admin, source, target)
        assert answer.status == 200, answer.body
    assert answer.json() == {
        "status": "success",
        "plugin_id": c,
        "depends_on": d,
        "type": "requires",
        "depends_on_type": "plugin",
        "version_constraint": None,
    }
    found = await resolved(admin, a)
    assert {one["plugin_id"]: one["depth"] for one in found["dependencies"]} == {b: 1, c: 1, d: 2}
    assert (found["total_count"], found["resolves"], found["verdict"], found["reason"]) == (
        3,
        True,
        "resolved",
        None,
    )
    assert {one["name"] for one in found["dependencies"]} == {await name_of(admin, one) for one in (b, c, d)}
    assert (await resolved(admin, d))["dependencies"] == []


async def test_cycles_are_refused_and_named(admin: Actor) -> None:
    """Itself, and whatever would close a circle of requirements; a suggestion may."""
    a, b, c = [fresh(name) for name in "abc"]
    assert (await connect(admin, a, a)).status == 400
    await connect(admin, a, b, plugin_name="Anchor", depends_on_name="Buoy")
    await connect(admin, b, c, depends_on_name="Chart")
    closing = await connect(admin, c, a)
    assert closing.status == 400
    assert "Chart → Anchor → Buoy → Chart" in closing.json()["detail"]
    assert (await connect(admin, c, a, "suggests")).status == 200
    assert (await connect(admin, c, a)).status == 400


async def test_two_halves_of_a_cycle_at_once(admin: Actor) -> None:
    """Of two edges that close a circle together, one is refused."""
    for _ in range(5):
        a, b = fresh("a"), fresh("b")
        answers = await asyncio.gather(connect(admin, a, b), connect(admin, b, a))
        assert sorted(answer.status for answer in answers) == [200, 400]


async def test_versions_are_explained_by_the_shortest_chain(admin: Actor) -> None:
    """What is required, what there is, and who else requires it."""
    a, m, b, c = [await listed(admin, name, version) for name, version in zip("ambc", "2112", strict=True)]
    names = {one: await name_of(admin, one) for one in (a, m, b, c)}
    await connect(admin, a, m)
    await connect(admin, m, b, version_constraint=">=3")
    await connect(admin, a, c)
    await connect(admin, c, b, version_constraint="<3")
    found = await resolved(admin, a)
    assert (found["resolves"], found["verdict"]) == (False, "version_mismatch")
    parts = (f"{names[a]} 2 ", f" {names[m]}, ", f" {names[b]} >=3, ", f" {names[b]} 1, ", f" {names[c]} <3")
    places = [found["reason"].index(part) for part in parts]
    assert places == sorted(places)
    assert found["resolve_failures"] == [found["reason"]]
    await admin.put(f"{PLUGINS}/{b}", json={"current_version": "3.1"})
    again = await resolved(admin, a)
    assert names[c] in again["reason"]
    await connect(admin, c, b, version_constraint="<4")
    assert (await resolved(admin, a))["resolves"] is True


async def test_what_is_missing(admin: Actor) -> None:
    """A plugin that the catalog does not have is named; once it is there, all is well."""
    a = await listed(admin, "a")
    await connect(admin, a, fresh("nowhere"), depends_on_name="Lost")
    found = await resolved(admin, a)
    assert (found["verdict"], found["resolves"]) == ("missing", False)
    assert " Lost," in found["reason"]


async def test_conflicts_count_in_both_directions(admin: Actor) -> None:
    """Whoever declares it; inside a closure the verdict is a conflict, unless the versions fit."""
    a, b, c = [await listed(admin, name, "2.0") for name in "abc"]
    await connect(admin, a, b)
    await connect(admin, a, c)
    await connect(admin, b, c, "conflicts_with", version_constraint="<2")
    for one, other in ((b, c), (c, b)):
        found = (await admin.get(f"/v1/graph/conflicts/{one}")).json()
        assert (found["conflict_count"], found["conflicts"][0]["plugin_id"]) == (1, other)
        assert "conflicts with" in found["conflicts"][0]["reason"]
    assert (await resolved(admin, a))["resolves"] is True
    await connect(admin, b, c, "conflicts_with")
    found = await resolved(admin, a)
    assert (found["verdict"], found["resolves"]) == ("conflict", False)


async def test_bundles_and_suggestions(admin: Actor) -> None:
    """A required bundle is a node with those who need it; a suggestion is a node, but no dependency."""
    a, b = await listed(admin, "a"), await listed(admin, "b")
    bundle = fresh("bundle")
    assert (await connect(admin, a, bundle, depends_on_type="bundle")).status == 200
    await connect(admin, a, b, "suggests")
    found = await resolved(admin, a)
    assert (found["dependencies"], found["resolves"]) == ([], True)
    assert {(one["type"], one["dependency_type"]) for one in found["nodes"]} == {
        ("bundle", "requires"),
        ("plugin", "suggests"),
    }
    told = (await admin.get(f"/v1/graph/bundles/{bundle}/required")).json()
    assert (told["confirmed"], told["required"]) == (True, True)
    assert told["requiring_plugins"] == [await name_of(admin, a)]
    free = (await admin.get("/v1/graph/bundles/none/required")).json()
    assert (free["required"], free["requiring_plugins"]) == (False, [])


@pytest.mark.parametrize(
    "query",
    [
        {"dependency_type": "needs"},
        {"depends_on_type": "service"},
        {"version_constraint": "about 3"},
        {"plugin_id": ""},
    ],
)
async def test_wrong_edges(admin: Actor, query: dict[str, str]) -> None:
    """Unknown kinds, ranges that are none and empty ids are 422."""
    values = {"plugin_id": "a", "depends_on": "b", **query}
    assert (await admin.post(EDGES, params=values)).status == 422


async def test_recommendations(admin: Actor) -> None:
    """What others have beside it, by their share; suggestions add to it; conflicts are left out."""
    base, often, seldom, barred = [await listed(admin, one) for one in ("base", "often", "seldom", "barred")]
    for at in range(4):
        ann = await somebody(admin.running)
        for plugin in (base, often, barred, *([seldom] if at == 0 else [])):
            assert (await ann.post(f"{PLUGINS}/{plugin}/install")).status == 200
    await connect(admin, base, barred, "conflicts_with")
    path = "/v1/graph/recommendations"
    first = (await ann.post(path, json=[base])).json()
    assert first["installed_plugins"] == [base]
    assert [(one["plugin_id"], one["score"]) for one in first["recommendations"]] == [
        (often, 1.0),
        (seldom, 0.25),
    ]
    assert first["recommendations"][0]["reason"].startswith("4 of 4 ")
    await connect(admin, base, seldom, "suggests")
    assert (await ann.post(path, json=[base])).json()["recommendations"][1]["score"] == 0.75
    assert (await ann.post(f"{path}?limit=1", json=[base])).json()["count"] == 1
    assert (await ann.post(path, json={"ids": []})).status == 422


async def test_installs_know_dependencies(admin: Actor) -> None:
    """The marketplace asks the graph: what is missing is named, also through another plugin."""
    a, b, c = [await listed(admin, name) for name in "abc"]
    await connect(admin, a, b)
    await connect(admin, b, c)
    ann = await somebody(admin.running)
    answer = await ann.post(f"{PLUGINS}/{a}/install")
    assert answer.status == 409
    assert await name_of(admin, c) in answer.json()["detail"]
    for plugin in (c, b, a):
        await ann.post(f"{PLUGINS}/{plugin}/install")
    await ann.post(f"{PLUGINS}/{a}/enable")
    assert (await ann.delete(f"{PLUGINS}/{c}/uninstall")).status == 409


async def test_removing_an_edge(admin: Actor) -> None:
    a, b = await listed(admin, "a"), await listed(admin, "b")
    await connect(admin, a, b)
    query = {"plugin_id": a, "depends_on": b}
    assert [(await admin.delete(EDGES, params=query)).status for _ in range(2)] == [204, 404]
    assert (await resolved(admin, a))["total_count"] == 0


async def test_health_while_the_database_is_out_of_service(tmp_path: Path) -> None:
    """503 with the same body, which the API's document says, too."""
    async with platforms(tmp_path) as start:
        running: Running = await start("tenancy", "dependency_graph", "api_docs")
        document = (await running.anonymous.get("/openapi.json")).json()
        told = document["paths"]["/v1/graph/health"]["get"]["responses"]
        schemas = {
            status: told[status]["content"]["application/json"]["schema"]["$ref"] for status in ("200", "503")
        }
        assert set(schemas.values()) == {"#/components/schemas/GraphHealthResponse"}
        with sqlite3.connect(tmp_path / "platform.db") as rows:
            rows.execute("ALTER TABLE dependency_graph_edge RENAME TO away")
        answer = await running.anonymous.get("/v1/graph/health")
        assert (answer.status, answer.json()["status"]) == (503, "unhealthy")
        assert (answer.json()["database"], set(answer.json()["checks"])) == ("rdf", {"rdf"})
        with sqlite3.connect(tmp_path / "platform.db") as rows:
            rows.execute("ALTER TABLE away RENAME TO dependency_graph_edge")
        assert (await running.anonymous.get("/v1/graph/health")).status == 200


async def start_again(start: Any) -> Running:
    running: Running = await start("tenancy", "dependency_graph")
    return running


async def test_a_start_knows_the_edges(tmp_path: Path) -> None:
    async with platforms(tmp_path) as start:
        admin = await somebody(await start_again(start), role="admin")
        await connect(admin, "a", "b")
    async with platforms(tmp_path) as start:
        admin = await somebody(await start_again(start), role="admin")
        assert (await resolved(admin, "a"))["total_count"] == 1


async def test_two_processes_answer_alike(tmp_path: Path) -> None:
    async with platforms(tmp_path) as start:
        one = await somebody(await start_again(start), role="admin")
        other = Actor(await start_again(start), one.token, one.user)
        await connect(one, "a", "b")
        await connect(other, "b", "c")

        async def agree() -> bool:
            return [(await resolved(actor, "a"))["total_count"] for actor in (one, other)] == [2, 2]

        await eventually(agree)
