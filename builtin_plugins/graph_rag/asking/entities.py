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
    known = describe(session, sight, {key for keys in targets.values() for key in keys} | names)
    found: list[KnownEntity] = []
    taken: list[tuple[int, int]] = []
    for start, end, key in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        mine = [known[one] for one in sorted({key, *targets.get(key, ())}) if one in known]
        if mine and not any(start < b and a < end for a, b in taken):
            taken.append((start, end))
            found.append(_merged(mine, at=start))
    order = {id(one): place for one, place in zip(found, taken, strict=True)}
    return _completed(session, sight, sorted(found, key=lambda one: order[id(one)])[:MOST_NAMED])


def search(session: Session, sight: GraphSight, query: str, limit: int) -> list[KnownEntity]:
    """Entities whose names contain the query, or that it names: exact matches first, then prefixes."""
    wanted = key_of(query) or folded(query).strip()
    names = {key for _, _, key in _spans(query)}
    match: ColumnElement[bool] = Entity.key.in_(names)
    if wanted:
        match |= Entity.key.contains(wanted, autoescape=True)
    counted = func.sum(Entity.mentions)
    rows = (
        select(Entity.key)
        .where(Entity.graph_id.in_(sight.graphs), match)
        .group_by(Entity.key)
        .order_by((Entity.key == wanted).desc(), counted.desc(), Entity.key)
        .limit(_MOST_ROWS)
    )
    known = describe(session, sight, session.scalars(rows).all())
    return sorted(known.values(), key=lambda one: (_rank(one.key, wanted), -one.mentions, one.key))[:limit]


def _rank(key: str, wanted: str) -> int:
    if key == wanted:
        return 0
    return 1 if key.startswith(wanted) else 2 if wanted in key else 3


def describe(session: Session, sight: GraphSight, keys: Collection[str]) -> dict[str, KnownEntity]:
    """The entities of these keys: each by its most frequent name and label."""
    counted = func.sum(Entity.mentions).label("mentions")
    query = (
        select(Entity.key, Entity.name, Entity.label, counted)
        .where(sight.sees(Entity.graph_id), Entity.key.in_(keys))
        .group_by(Entity.key, Entity.name, Entity.label)
        .order_by(counted.desc(), Entity.name, Entity.label)
    )
    found: dict[str, KnownEntity] = {}
    for row in session.execute(query):
        one = found.get(row.key)
        total = row.mentions + (one.mentions if one else 0)
        first = one or KnownEntity(row.key, row.name, row.label, 0, frozenset({row.key}))
        found[row.key] = KnownEntity(row.key, first.name, first.label, total, first.keys)
    return found


def _targets(session: Session, sight: GraphSight, names: Collection[str]) -> dict[str, set[str]]:
    """The keys that these names are aliases of in any document."""
    query = select(Alias.alias, Alias.key).distinct()
    found: dict[str, set[str]] = {}
    for alias, key in session.execute(query.where(sight.sees(Alias.graph_id), Alias.alias.in_(names))):
        found.setdefault(alias, set()).add(key)
    return found


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
    shown = select(Alias.alias, Alias.key).distinct().where(sight.sees(Alias.graph_id))
    return shown.where(Alias.reason == "abbreviation")


def find(session: Session, sight: GraphSight, text: str) -> KnownEntity | None:
    """The entity of that name, with all its other names."""
    keys = _keys_of(text)
    targets = _targets(session, sight, keys)
    known = describe(session, sight, keys.union(*targets.values()))
    mine = [known[one] for one in sorted(known)]
    found = _completed(session, sight, [_merged(mine)] if mine else [])
    return found[0] if found else None


def _keys_of(text: str) -> set[str]:
    """The keys of a text: by its spelling, and as a date or amount if it is one."""
    written = text.strip()
    whole = [span.key for span in keyed(written) if (span.start, span.end) == (0, len(written))]
    return {key_of(text), *whole}


def _merged(entities: Sequence[KnownEntity], at: int = 0) -> KnownEntity:
    best = min(entities, key=lambda one: (-one.mentions, one.key))
    keys = frozenset(key for one in entities for key in one.keys)
    return KnownEntity(best.key, best.name, best.label, sum(one.mentions for one in entities), keys)


def _spans(query: str) -> list[tuple[int, int, str]]:
    """All that could be a name: one to eight consecutive words, runs without spaces, dates and amounts."""
    words = _words(query)
    found = [(span.start, span.end, span.key) for span in keyed(query)]
    for at in range(len(words)):
        for count in range(1, _LONGEST_NAME + 1):
            if at + count > len(words):
                break
            start, end = words[at][0], words[at + count - 1][1]
            if key := key_of(query[start:end]):
                found.append((start, end, key))
    return found


def _words(query: str) -> list[tuple[int, int]]:
    """The positions of words; in scripts without spaces between words, of each character."""
    found: list[tuple[int, int]] = []
    start: int | None = None
    for at, char in enumerate(query):
        alone = _is_unspaced(char)
        if start is not None and (char.isspace() or alone):
            found.append((start, at))
            start = None
        if alone:
            found.append((at, at + 1))
        elif start is None and not char.isspace():
            start = at
    if start is not None:
        found.append((start, len(query)))
    return found[:_MOST_WORDS]


def _is_unspaced(char: str) -> bool:
    code = ord(char)
    return 0x3040 <= code <= 0x30FF or 0x3400 <= code <= 0x9FFF or 0x0E00 <= code <= 0x0EFF


def names_of(entities: Iterable[KnownEntity]) -> set[str]:
    """All keys of these entities."""
    return {key for one in entities for key in one.keys}
