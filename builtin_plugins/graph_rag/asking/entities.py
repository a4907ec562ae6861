"""Finds entities by name in the graphs that a caller sees, with all their other names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from ..extraction.mentions import folded, key_of
from ..extraction.numbers import keyed
from ..models import Alias, Entity
from ..storing.access import GraphSight

MOST_NAMED = 5  # entities taken from a query (wire-facts 14)
_LONGEST_NAME = 8  # words
_MOST_WORDS = 200
_MOST_ROWS = 2_000


@dataclass(frozen=True, slots=True)
class KnownEntity:
    """An entity over all visible graphs; `keys` are all its names there."""

    key: str
    name: str
    label: str
    mentions: int
    keys: frozenset[str]


def named_in(session: Session, sight: GraphSight, query: str) -> list[KnownEntity]:
    """The first entities that a query names, in its order; of overlapping names, the longest."""
    spans = _spans(query)
    names = {key for _, _, key in spans}
    targets = _targets(session, sight, names)
    entities = describe(session, sight, {key for keys in targets.values() for key in keys} | names)
    matches: list[KnownEntity] = []
    occupied: list[tuple[int, int]] = []
    for start, end, key in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        mine = [entities[name] for name in sorted({key, *targets.get(key, ())}) if name in entities]
        if mine and not any(start < b and a < end for a, b in occupied):
            occupied.append((start, end))
            matches.append(_merged(mine, at=start))
    order = {id(match): place for match, place in zip(matches, occupied, strict=True)}
    return _completed(session, sight, sorted(matches, key=lambda match: order[id(match)])[:MOST_NAMED])


def search(session: Session, sight: GraphSight, query: str, limit: int) -> list[KnownEntity]:
    """Entities whose names contain the query, or that it names: exact matches first, then prefixes."""
    text = key_of(query) or folded(query).strip()
    names = {key for _, _, key in _spans(query)}
    match: ColumnElement[bool] = Entity.key.in_(names)
    if text:
        match |= Entity.key.contains(text, autoescape=True)
    counted = func.sum(Entity.mentions)
    rows = (
        select(Entity.key)
        .where(Entity.graph_id.in_(sight.graphs), match)
        .group_by(Entity.key)
        .order_by((Entity.key == text).desc(), counted.desc(), Entity.key)
        .limit(_MOST_ROWS)
    )
    entities = describe(session, sight, session.scalars(rows).all())
    return sorted(
        entities.values(), key=lambda entity: (_rank(entity.key, text), -entity.mentions, entity.key)
    )[:limit]


def _rank(key: str, text: str) -> int:
    if key == text:
        return 0
    return 1 if key.startswith(text) else 2 if text in key else 3


def describe(session: Session, sight: GraphSight, keys: Collection[str]) -> dict[str, KnownEntity]:
    """The entities of these keys: each by its most frequent name and label."""
    counted = func.sum(Entity.mentions).label("mentions")
    query = (
        select(Entity.key, Entity.name, Entity.label, counted)
        .where(sight.sees(Entity.graph_id), Entity.key.in_(keys))
        .group_by(Entity.key, Entity.name, Entity.label)
        .order_by(counted.desc(), Entity.name, Entity.label)
    )
    entities: dict[str, KnownEntity] = {}
    for row in session.execute(query):
        entity = entities.get(row.key)
        total = row.mentions + (entity.mentions if entity else 0)
        first = entity or KnownEntity(row.key, row.name, row.label, 0, frozenset({row.key}))
        entities[row.key] = KnownEntity(row.key, first.name, first.label, total, first.keys)
    return entities


def _targets(session: Session, sight: GraphSight, names: Collection[str]) -> dict[str, set[str]]:
    """The keys that these names are aliases of in any document."""
    query = select(Alias.alias, Alias.key).distinct()
    keys_by_alias: dict[str, set[str]] = {}
    for alias, key in session.execute(query.where(sight.sees(Alias.graph_id), Alias.alias.in_(names))):
        keys_by_alias.setdefault(alias, set()).add(key)
    return keys_by_alias


def _completed(session: Session, sight: GraphSight, entities: Sequence[KnownEntity]) -> list[KnownEntity]:
    """Add abbreviations of these: one document's abbreviations hold in all, unless they are ambiguous."""
    keys = {key for one in entities for key in one.keys}
    mine = session.execute(_abbreviations(sight).where(Alias.key.in_(keys))).all()
    meant = stood_for(session, sight, {row.alias for row in mine})
    clear = [(alias, key) for alias, key in mine if alias in meant]
    return [
        KnownEntity(
            one.key,
            one.name,
            one.label,
            one.mentions,
            one.keys | {alias for alias, key in clear if key in one.keys},
        )
        for one in entities
    ]


def stood_for(session: Session, sight: GraphSight, keys: Collection[str]) -> dict[str, str]:
    """Map keys that are unambiguous abbreviations to what they stand for."""
    targets: dict[str, set[str]] = {}
    for alias, key in session.execute(_abbreviations(sight).where(Alias.alias.in_(keys))):
        targets.setdefault(alias, set()).add(key)
    return {alias: next(iter(meant)) for alias, meant in targets.items() if len(meant) == 1}


def _abbreviations(sight: GraphSight) -> Select[str, str]:
    aliases = select(Alias.alias, Alias.key).distinct().where(sight.sees(Alias.graph_id))
    return aliases.where(Alias.reason == "abbreviation")


def find(session: Session, sight: GraphSight, text: str) -> KnownEntity | None:
    """The entity of that name, with all its other names."""
    keys = _keys_of(text)
    targets = _targets(session, sight, keys)
    entities = describe(session, sight, keys.union(*targets.values()))
    mine = [entities[one] for one in sorted(entities)]
    completed = _completed(session, sight, [_merged(mine)] if mine else [])
    return completed[0] if completed else None


def _keys_of(text: str) -> set[str]:
    """The keys of a text: by its spelling, and as a date or amount if it is one."""
    written = text.strip()
    whole = [span.key for span in keyed(written) if (span.start, span.end) == (0, len(written))]
    return {key_of(text), *whole}


def _merged(entities: Sequence[KnownEntity], at: int = 0) -> KnownEntity:
    best = min(entities, key=lambda entity: (-entity.mentions, entity.key))
    keys = frozenset(key for entity in entities for key in entity.keys)
    return KnownEntity(best.key, best.name, best.label, sum(entity.mentions for entity in entities), keys)


def _spans(query: str) -> list[tuple[int, int, str]]:
    """All that could be a name: one to eight consecutive words, runs without spaces, dates and amounts."""
    words = _words(query)
    spans = [(span.start, span.end, span.key) for span in keyed(query)]
    for at in range(len(words)):
        for count in range(1, _LONGEST_NAME + 1):
            if at + count > len(words):
                break
            start, end = words[at][0], words[at + count - 1][1]
            if key := key_of(query[start:end]):
                spans.append((start, end, key))
    return spans


def _words(query: str) -> list[tuple[int, int]]:
    """The positions of words; in scripts without spaces between words, of each character."""
    words: list[tuple[int, int]] = []
    start: int | None = None
    for at, char in enumerate(query):
        alone = _is_unspaced(char)
        if start is not None and (char.isspace() or alone):
            words.append((start, at))
            start = None
        if alone:
            words.append((at, at + 1))
        elif start is None and not char.isspace():
            start = at
    if start is not None:
        words.append((start, len(query)))
    return words[:_MOST_WORDS]


def _is_unspaced(char: str) -> bool:
    code = ord(char)
    return 0x3040 <= code <= 0x30FF or 0x3400 <= code <= 0x9FFF or 0x0E00 <= code <= 0x0EFF


def names_of(entities: Iterable[KnownEntity]) -> set[str]:
    """All keys of these entities."""
    return {key for one in entities for key in one.keys}
