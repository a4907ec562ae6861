"""Random adding, replacing and deleting of documents leaves exactly what a fresh build of the rest gives.

`pytest tests/builtin_plugins/graph_rag/test_graph_walks.py --graph-steps 10000` is the long run.
"""

from __future__ import annotations

import random
from typing import Any
from urllib.parse import quote

import pyoxigraph as ox
import pytest
from sqlalchemy import func, select

from builtin_plugins.graph_rag.models import Alias, Entity, Graph, GraphPassage, Relation
from kernel.testing import Actor, Running, Start, somebody
from tests.builtin_plugins.graph_rag.graph_support import API, construct, stats

NAMES = (
    "Ada Lindqvist",
    "Lindqvist",
    "A. Lindqvist",
    "Nordlys Research Institute (NRI)",
    "NRI",
    "Polar Star",
    "Orléans",
    "ORLEANS",
    "Project Aurora (PA)",
    "PA",
)
VERBS = ("meets", "leads", "leaves")


async def quads(actor: Actor) -> set[str]:
    """All statements of somebody's graphs, with the maker's name taken out."""
    answer = await actor.get(f"{API}/graph/export?format=n-quads")
    if answer.status == 404:
        return set()
    assert answer.status == 200
    maker = f":{quote(str(actor.user['id']))}:"
    return {
        str(quad).replace(maker, ":maker:") for quad in ox.parse(answer.body, format=ox.RdfFormat.N_QUADS)
    }


def text_of(chance: random.Random) -> str:
    sentences = chance.randint(1, 4)
    return " ".join(
        f"{chance.choice(NAMES)} {chance.choice(VERBS)} {chance.choice(NAMES)}." for _ in range(sentences)
    )


async def rows(running: Running, maker: str) -> dict[str, int]:
    def count(session: Any) -> dict[str, int]:
        mine = select(Graph.id).where(Graph.maker == maker)
        return {
            table.__tablename__: session.scalar(
                select(func.count()).select_from(table).where(table.graph_id.in_(mine))
            )
            for table in (GraphPassage, Entity, Alias, Relation)
        }

    return await running.platform.database.read(count)


@pytest.mark.parametrize("seed", [7])
async def test_random_walk(start_platform: Start, request: pytest.FixtureRequest, seed: int) -> None:
    """After each stretch the graph, its counts and its rows are those of a fresh build of what is left."""
    steps = int(request.config.getoption("--graph-steps"))
    running = await start_platform("graph_rag", env={"JWT_EXPIRATION_MINUTES": "1440"})
    walker, chance = await somebody(running), random.Random(seed)
    left: dict[str, tuple[str, dict[str, Any]]] = {}
    for step in range(1, steps + 1):
        name = f"d{chance.randrange(40)}"
        if chance.random() < 0.45:
            gone = await walker.delete(f"{API}/graph/document/{name}")
            assert gone.status == 200, gone.body
            assert gone.json()["document_deleted"] == (name in left)
            left.pop(name, None)
        else:
            text = text_of(chance)
            fields = {"title": f"t{step}", "extract_relationships": chance.random() < 0.8}
            await construct(walker, name, text, **fields)
            left[name] = (text, fields)
        if step % max(steps // 3, 100) == 0:
            fresh = await somebody(running)
            for document, (text, fields) in sorted(left.items()):
                await construct(fresh, document, text, **fields)
            assert await quads(walker) == await quads(fresh)
            assert await stats(walker) == await stats(fresh)
            assert await rows(running, str(walker.user["id"])) == await rows(running, str(fresh.user["id"]))
    for document in sorted(left):
        await walker.delete(f"{API}/graph/document/{document}")
    assert await quads(walker) == set()
    assert set((await rows(running, str(walker.user["id"]))).values()) == {0}
