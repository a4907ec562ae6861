"""The sentences that are the evidence for an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from ..models import Entity, Graph, GraphPassage
from .sentences import around

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class PassagePlace:
    """A passage of a graph."""

    graph_id: int
    position: int


@dataclass(frozen=True, slots=True)
class TitledPassage:
    """A passage with its document's title."""

    document_id: str
    title: str | None
    text: str
    mentions: Sequence[Sequence[object]]

    def sentence(self, key: str) -> str | None:
        """The first sentence that names the entity."""
        for start, end, named, _ in self.mentions:
            if named == key:
                return around(self.text, int(str(start)), int(str(end)))
        return None


def first_places(session: Session, pairs: Iterable[tuple[int, str]]) -> dict[tuple[int, str], PassagePlace]:
    """Where a graph first names an entity, by graph and key. The caller must be able to see the graphs."""
    keys, places = sorted(set(pairs)), {}
    for at in range(0, len(keys), _AT_ONCE):
        part = tuple_(Entity.graph_id, Entity.key).in_(keys[at : at + _AT_ONCE])
        for row in session.execute(select(Entity.graph_id, Entity.key, Entity.position).where(part)):
            places[row.graph_id, row.key] = PassagePlace(row.graph_id, row.position)
    return places


def passages_at(session: Session, places: Iterable[PassagePlace]) -> Mapping[PassagePlace, TitledPassage]:
    """The passages at these places. The caller must be able to see the graphs."""
    keys = sorted({(place.graph_id, place.position) for place in places})
    passages: dict[PassagePlace, TitledPassage] = {}
    for at in range(0, len(keys), _AT_ONCE):
        query = (
            select(GraphPassage, Graph.document_id, Graph.title)
            .join(Graph, Graph.id == GraphPassage.graph_id)
            .where(tuple_(GraphPassage.graph_id, GraphPassage.position).in_(keys[at : at + _AT_ONCE]))
        )
        for passage, document_id, title in session.execute(query):
            place = PassagePlace(passage.graph_id, passage.position)
            passages[place] = TitledPassage(document_id, title, passage.text, passage.mentions)
    return passages
