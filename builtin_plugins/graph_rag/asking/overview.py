"""What a collection is about: communities of entities, described by sentences from its documents.

Communities are found by Louvain's method (Blondel and others, 2008) over the weighted relations, with a fixed
seed and sorted nodes, so that the same graphs give the same answer.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import Session

from kernel.sdk import Caller

from .. import schemas_insight as schemas
from ..errors import GraphNotFound
from ..models import Entity, Graph, Relation
from ..storing.access import GraphSight, sight_of
from .entities import describe
from .evidence import PassagePlace, TitledPassage, passages_at
from .sentences import all_of

_MOST_RELATIONS = 20_000
_TITLE = 3  # entities in a title
_NAMED = 12  # entities that are listed
_READ = 8  # passages that a summary is taken from
_SENTENCES = 2
_SEED = 1

Edge = tuple[str, str, float]


@dataclass(frozen=True, slots=True)
class _Community:
    weights: Mapping[str, float]  # by member, the most central first

    @property
    def members(self) -> Sequence[str]:
        return list(self.weights)


async def overview(caller: Caller, request: schemas.OverviewRequest) -> schemas.Overview:
    """The topics of what the caller sees. Raises GraphNotFound for a knowledge base without a graph."""
    started = time.perf_counter()
    database, sight = caller.platform.database, await sight_of(caller)
    documents, edges = await database.snapshot(_edges, sight, request.kb_id)
    communities = await asyncio.to_thread(_communities, edges)
    topics = await database.snapshot(_topics, sight, request, communities[: request.limit])
    return schemas.Overview(
        documents=documents,
        entities=len({key for edge in edges for key in edge[:2]}),
        topics=topics,
        took_ms=round((time.perf_counter() - started) * 1000, 2),
    )


def _edges(session: Session, sight: GraphSight, kb_id: str | None) -> tuple[int, list[Edge]]:
    """The number of documents, and the heaviest relations of all."""
    where = sight.condition if kb_id is None else sight.condition & (Graph.knowledge_base_id == kb_id)
    documents = session.scalar(select(func.count()).select_from(Graph).where(where)) or 0
    if kb_id is not None and not documents:
        raise GraphNotFound()
    weight = func.sum(Relation.weight).label("weight")
    query = (
        select(Relation.subject, Relation.object, weight)
        .where(Relation.graph_id.in_(select(Graph.id).where(where)))
        .group_by(Relation.subject, Relation.object)
        .order_by(weight.desc(), Relation.subject, Relation.object)
        .limit(_MOST_RELATIONS)
    )
    return documents, [(row.subject, row.object, float(row.weight)) for row in session.execute(query)]


def _communities(edges: Sequence[Edge]) -> list[_Community]:
    """The communities, largest first; their entities by the weight of their relations."""
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(sorted({key for edge in edges for key in edge[:2]}))
    for subject, target, weight in edges:
        before = graph.get_edge_data(subject, target, {"weight": 0.0})["weight"]
        graph.add_edge(subject, target, weight=before + weight)
    weights = {key: float(weight) for key, weight in graph.degree(weight="weight")}
    groups = networkx.community.louvain_communities(graph, seed=_SEED) if edges else []
    ranked = [sorted(group, key=lambda key: (-weights[key], key)) for group in groups]
    ranked.sort(key=lambda group: (-sum(weights[key] for key in group), group[0]))
    return [_Community({key: weights[key] for key in group}) for group in ranked]


def _topics(
    session: Session, sight: GraphSight, request: schemas.OverviewRequest, communities: Sequence[_Community]
) -> list[schemas.Topic]:
    where = sight.condition
    if request.kb_id is not None:
        where &= Graph.knowledge_base_id == request.kb_id
    by_key = describe(session, sight, {key for group in communities for key in group.members[:_NAMED]})
    topics = []
    for group in communities:
        named = group.members[:_NAMED]
        places = _places(session, where, named)
        passages = passages_at(session, places)
        names = [by_key[key].name for key in named if key in by_key]
        topics.append(
            schemas.Topic(
                title=", ".join(names[:_TITLE]),
                summary=_summary([passages[place] for place in places if place in passages], group.weights),
                entities=names,
                documents=list(dict.fromkeys(passages[place].document_id for place in places)),
                size=len(group.members),
            )
        )
    return topics


def _places(session: Session, where: ColumnElement[bool], keys: Collection[str]) -> list[PassagePlace]:
    """The passages that introduce the most of these entities."""
    query = (
        select(Entity.graph_id, Entity.position, func.count().label("named"))
        .where(exists().where(Graph.id == Entity.graph_id, where), Entity.key.in_(keys))
        .group_by(Entity.graph_id, Entity.position)
        .order_by(func.count().desc(), Entity.graph_id, Entity.position)
        .limit(_READ)
    )
    return [PassagePlace(row.graph_id, row.position) for row in session.execute(query)]


def _summary(passages: Sequence[TitledPassage], weights: Mapping[str, float]) -> str:
    """The sentences that name the most central of these entities, in passage order; each must name a new one.
    Other entities in a sentence don't count.
    """
    worth: list[tuple[float, int, int, str, frozenset[str]]] = []
    for number, passage in enumerate(passages):
        for start, end in all_of(passage.text):
            named = {str(key) for at, _, key, _ in passage.mentions if start <= int(str(at)) < end}
            keys = frozenset(named & weights.keys())
            score = sum(weights[key] for key in keys)
            worth.append((-score, number, start, " ".join(passage.text[start:end].split()), keys))
    chosen: list[tuple[int, int, str]] = []
    counts: defaultdict[str, int] = defaultdict(int)
    for score, number, start, text, keys in sorted(worth):
        if score < 0 and any(not counts[key] for key in keys) and len(chosen) < _SENTENCES:
            chosen.append((number, start, text))
            for key in keys:
                counts[key] += 1
    return " ".join(text for _, _, text in sorted(chosen))
