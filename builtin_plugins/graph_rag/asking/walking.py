"""Walks from entities to related ones, step by step over the relations of visible graphs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from ..models import Relation
from ..storing.access import GraphSight
from .entities import stood_for

_WIDEST = 100  # entities that each step starts from
_MOST_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Reached:
    """A reached entity, with the relation that led to it and the number of steps."""

    key: str
    predicate: str
    kind: str
    weight: float
    depth: int


def reach(
    session: Session, sight: GraphSight, keys: Collection[str], depth: int, limit: int
) -> list[Reached]:
    """The entities around `keys`, nearest first, then the most closely related.

    An unambiguous abbreviation counts as what it stands for, as in queries.
    """
    visited, frontier, results = set(keys), set(keys), []
    for step in range(1, depth + 1):
        reached = _step(session, sight, frontier, step)
        meant = stood_for(session, sight, {candidate.key for candidate in reached})
        best: dict[str, Reached] = {}
        for candidate in reached:
            key = meant.get(candidate.key, candidate.key)
            if key not in visited and (key not in best or candidate.weight > best[key].weight):
                best[key] = replace(candidate, key=key)
        ordered = sorted(best.values(), key=lambda candidate: (-candidate.weight, candidate.key))
        results += ordered
        visited |= best.keys() | meant.keys()
        widest = {candidate.key for candidate in ordered[:_WIDEST]}
        frontier = widest | {alias for alias, key in meant.items() if key in widest}
        if not frontier or len(results) >= limit:
            break
    return results[:limit]


def _step(session: Session, sight: GraphSight, frontier: Collection[str], depth: int) -> list[Reached]:
    weight = func.sum(Relation.weight).label("weight")
    columns = (Relation.subject, Relation.predicate, Relation.object, Relation.kind)
    query = (
        select(*columns, weight)
        .where(
            sight.sees(Relation.graph_id),
            or_(Relation.subject.in_(frontier), Relation.object.in_(frontier)),
        )
        .group_by(*columns)
        .order_by(weight.desc(), *columns)
        .limit(_MOST_ROWS)
    )
    return [
        Reached(key, row.predicate, row.kind, float(row.weight), depth)
        for row in session.execute(query)
        for key in (row.subject, row.object)
        if key not in frontier
    ]
