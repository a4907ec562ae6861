"""Four times the graphs cost about four times as much to ask, not sixteen times."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from builtin_plugins.graph_rag.models import Entity, Graph, GraphPassage, Relation
from kernel.sdk import Unit
from kernel.testing import Actor, somebody
from tests.builtin_plugins.graph_rag.graph_support import API, construct
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.kept import Kept
from tests.fakes.statements import sqlite_steps

pytestmark = pytest.mark.asyncio(loop_scope="session")

_FEW, _MANY = 100, 400


def _add(unit: Unit, numbers: range) -> None:
    """Graphs of whoever made the graph `growth`: each names a person of its own, and one town."""
    maker = unit.session.scalar(select(Graph.maker).where(Graph.document_id == "growth"))
    for number in numbers:
        graph = Graph(
            maker=maker,
            document_id=f"d{number}",
            details={},
            engine="rules",
            relationships=True,
            entity_count=2,
            relation_count=1,
            stamp="",
        )
        unit.session.add(graph)
        unit.session.flush()
        person, at = f"person{number}", {"graph_id": graph.id, "position": 0}
        text = {"passage_id": person, "char_start": 0, "char_end": 20, "text": person, "mentions": []}
        ends = {"subject": person, "object": "oslo", "start": 0, "end": 5}
        unit.session.add_all(
            (
                GraphPassage(**at, **text),
                Entity(**at, key=person, name=person, label="PERSON", mentions=1),
                Entity(**at, key="oslo", name="Oslo", label="PLACE", mentions=1),
                Relation(**at, **ends, number=0, predicate="near", kind="CO_OCCURRENCE", weight=1.0),
            )
        )


_ASKED: dict[str, dict[str, Any]] = {
    "graph/search": {"query": "person"},
    "retrieve": {"query": "Who lives in Oslo?", "limit": 50},
    "entity-context": {"entity_text": "Oslo"},
    "overview": {},
    "graph/correlate": {"entity": "Oslo"},
}


async def _steps(ann: Actor) -> dict[str, int]:
    found = {}
    for path, body in _ASKED.items():
        with sqlite_steps() as steps:
            answer = await ann.post(f"{API}/{path}", json=body)
        assert answer.status == 200, answer.body
        found[path] = steps[0]
    return found


async def test_the_cost_is_linear(kept: Kept) -> None:
    running = await kept.platform(
        "graph_rag", "sqlite", "rag", "extractive_answers", "graph_rag", HashEmbeddings()
    )
    ann = await somebody(running)
    await construct(ann, "growth", "Ada Lindqvist met Jonas Berg.")
    await running.platform.database.write(_add, range(_FEW))
    few = await _steps(ann)
    await running.platform.database.write(_add, range(_FEW, _MANY))
    times = {path: steps / few[path] for path, steps in (await _steps(ann)).items()}
    assert {path: ratio for path, ratio in times.items() if not 1 < ratio < 8} == {}
