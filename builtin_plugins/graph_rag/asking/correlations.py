"""What documents or entities have in common beyond words: scored, with sentences as evidence.

Two documents correlate by the entities that both name: each counts by its rarity among the documents that the
caller sees (the cosine of vectors of inverse document frequencies; Salton and Buckley, 1988). Two entities
correlate by how much of all their relations they have with each other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from kernel.sdk import Caller, off_the_loop

from .. import schemas_insight as schemas
from ..errors import EntityNotFound, GraphNotFound
from ..models import Entity, Graph, Relation
from ..storing.access import GraphSight, sight_of
from . import entities
from .evidence import PassagePlace, first_places, passages_at
from .sentences import around

_MOST_DOCUMENTS = 5_000
_COMMONEST = 30  # documents that may name an entity before it is too common to mean anything
_SHOWN = 3  # shared entities with a sentence as evidence
_NAMED = 20  # shared entities that are listed
_MOST_NEIGHBOURS = 500
# Kinds of entities that texts often share by chance.
_CHANCE = ("DATE", "TIME", "CARDINAL", "ORDINAL", "PERCENT", "QUANTITY", "MONEY")


async def correlate(caller: Caller, request: schemas.CorrelateRequest) -> schemas.Correlations:
    """Correlations of a document, of an entity, or the strongest of all.

    Raises GraphNotFound, EntityNotFound.
    """
    sight = await sight_of(caller)
    correlations = await caller.platform.database.snapshot(_correlate, sight, request)
    return schemas.Correlations(items=correlations, total=len(correlations))


def _correlate(
    session: Session, sight: GraphSight, request: schemas.CorrelateRequest
) -> list[schemas.Correlation]:
    if request.entity is not None:
        return _of_entity(session, sight, request.entity, request)
    graph_ids = None
    if request.document_id is not None:
        named = select(Graph.id).where(sight.condition, Graph.document_id == request.document_id)
        graph_ids = set(session.scalars(named))
        if not graph_ids:
            raise GraphNotFound()
    pairs = _pairs(session, sight, graph_ids)
    best = [pair for pair in pairs if pair.score >= request.min_score][: request.limit]
    return _correlations(session, best)


@dataclass(frozen=True, slots=True)
class _Pair:
    source: int
    target: int
    score: float
    shared: Sequence[str]


def _pairs(session: Session, sight: GraphSight, graph_ids: set[int] | None) -> list[_Pair]:
    """Pairs of documents that share something, the strongest first; of `graph_ids` with others, if given.

    Compares `graph_ids` and the newest documents. This may take seconds, but doesn't block the event loop.
    """
    newest = select(Graph.id).where(sight.condition).order_by(Graph.id.desc()).limit(_MOST_DOCUMENTS)
    graphs = {*session.scalars(newest), *(graph_ids or ())}
    is_telling = Entity.label.not_in(_CHANCE)
    among = or_(Entity.graph_id.in_(newest), Entity.graph_id.in_(graph_ids or ()))
    rows = session.execute(select(Entity.graph_id, Entity.key).where(among, is_telling))
    return off_the_loop(lambda: _scored(_named(graphs, rows), graph_ids))


def _named(graphs: Iterable[int], rows: Iterable[tuple[int, str]]) -> dict[int, set[str]]:
    """The entities that each document names."""
    keys_by_graph: dict[int, set[str]] = {graph: set() for graph in graphs}
    for graph_id, key in rows:
        keys_by_graph.setdefault(graph_id, set()).add(key)
    return keys_by_graph


def _scored(named: Mapping[int, set[str]], graph_ids: set[int] | None) -> list[_Pair]:
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for graph_id in sorted(named):
        for key in named[graph_id]:
            holders[key].append(graph_id)
    total = len(named)
    worth = {key: math.log(1 + total / len(graphs)) ** 2 for key, graphs in holders.items()}
    lengths = {graph: math.fsum(worth[key] for key in sorted(keys)) for graph, keys in named.items()}
    shared: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for key in sorted(holders):
        graphs = holders[key]
        if 2 <= len(graphs) <= max(_COMMONEST, 2):
            for pair in _graph_pairs(graphs, graph_ids):
                shared[pair].append(key)
    pairs = []
    for (source, target), keys in shared.items():
        score = math.fsum(worth[key] for key in keys) / math.sqrt(lengths[source] * lengths[target])
        best = sorted(keys, key=lambda key: (-worth[key], key))
        pairs.append(_Pair(source, target, round(score, 4), best))
    return sorted(pairs, key=lambda pair: (-pair.score, pair.source, pair.target))


def _graph_pairs(graphs: Sequence[int], graph_ids: set[int] | None) -> Iterable[tuple[int, int]]:
    if graph_ids is None:
        return combinations(graphs, 2)
    mine = [graph for graph in graphs if graph in graph_ids]
    return ((one, other) for one in mine for other in graphs if other not in graph_ids)


def _correlations(session: Session, pairs: Sequence[_Pair]) -> list[schemas.Correlation]:
    best = [(graph, key) for pair in pairs for graph in _ends(pair) for key in pair.shared[:_SHOWN]]
    places = first_places(session, best)
    passages = passages_at(session, places.values())
    ids = {graph for pair in pairs for graph in _ends(pair)}
    columns = select(Graph.id, Graph.document_id).where(Graph.id.in_(ids))
    documents = {row.id: row.document_id for row in session.execute(columns)}
    names = _names(session, {(pair.source, key) for pair in pairs for key in pair.shared[:_NAMED]})

    def evidence(graph: int, key: str) -> schemas.Evidence | None:
        passage = passages.get(places[graph, key])
        sentence = passage.sentence(key) if passage else None
        if passage is None or sentence is None:
            return None
        return schemas.Evidence(document_id=passage.document_id, title=passage.title, snippet=sentence)

    correlations = []
    for pair in pairs:
        sentences = (evidence(graph, key) for key in pair.shared[:_SHOWN] for graph in _ends(pair))
        once = {(one.document_id, one.snippet): one for one in sentences if one is not None}
        correlations.append(
            schemas.Correlation(
                source=documents[pair.source],
                target=documents[pair.target],
                score=pair.score,
                evidence=list(once.values()),
                kind="SHARED_ENTITIES",
                shared=[names[pair.source, key] for key in pair.shared[:_NAMED]],
            )
        )
    return correlations


def _ends(pair: _Pair) -> tuple[int, int]:
    return pair.source, pair.target


def _names(session: Session, ends: Iterable[tuple[int, str]]) -> dict[tuple[int, str], str]:
    pairs = set(ends)
    graphs = {graph for graph, _ in pairs}
    query = select(Entity.graph_id, Entity.key, Entity.name).where(Entity.graph_id.in_(graphs))
    rows = session.execute(query)
    return {(row.graph_id, row.key): row.name for row in rows if (row.graph_id, row.key) in pairs}


def _of_entity(
    session: Session, sight: GraphSight, text: str, request: schemas.CorrelateRequest
) -> list[schemas.Correlation]:
    entity = entities.find(session, sight, text)
    if entity is None:
        raise EntityNotFound()
    rows = _around(session, sight, entity.keys)
    first: dict[str, Relation] = {}
    weights: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        other = row.object if row.subject in entity.keys else row.subject
        if other not in entity.keys:
            weights[other] += row.weight
            first.setdefault(other, row)
    totals = _totals(session, sight, weights.keys())
    own = math.fsum(row.weight for row in rows)
    scores = {key: round(min(1.0, weights[key] / math.sqrt(own * totals[key])), 4) for key in weights}
    best = sorted(scores, key=lambda key: (-scores[key], key))
    keys = [key for key in best if scores[key] >= request.min_score][: request.limit]
    by_key = entities.describe(session, sight, keys)
    passages = passages_at(session, [PassagePlace(first[key].graph_id, first[key].position) for key in keys])

    def render(key: str) -> schemas.Correlation:
        row = first[key]
        passage = passages[PassagePlace(row.graph_id, row.position)]
        snippet = around(passage.text, row.start, row.end)
        evidence = schemas.Evidence(document_id=passage.document_id, title=passage.title, snippet=snippet)
        name, score = by_key[key].name, scores[key]
        return schemas.Correlation(
            source=entity.name,
            target=name,
            score=score,
            evidence=[evidence],
            kind="SVO" if row.kind == "SVO" else "CO_OCCURRENCE",
            shared=[],
        )

    return [render(key) for key in keys]


def _around(session: Session, sight: GraphSight, keys: Iterable[str]) -> Sequence[Relation]:
    near = or_(Relation.subject.in_(keys), Relation.object.in_(keys))
    query = select(Relation).where(sight.sees(Relation.graph_id), near)
    ordered = query.order_by(Relation.weight.desc(), Relation.graph_id, Relation.number)
    return session.scalars(ordered.limit(_MOST_NEIGHBOURS)).all()


def _totals(session: Session, sight: GraphSight, keys: Iterable[str]) -> Mapping[str, float]:
    """The total weight of each entity's relations."""
    all_keys = list(keys)
    totals: defaultdict[str, float] = defaultdict(float)
    for side in (Relation.subject, Relation.object):
        query = (
            select(side, func.sum(Relation.weight))
            .where(sight.sees(Relation.graph_id), side.in_(all_keys))
            .group_by(side)
        )
        for key, weight in session.execute(query):
            totals[key] += float(weight)
    return totals
