"""Random documents with fields, and a plain model of what a filter means."""

from __future__ import annotations

import random
import unicodedata
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag.filters.binding import (
    BoundFilter,
    FilterSource,
    bind,
    fields_by_base,
    parse_filter,
)
from builtin_plugins.rag.filters.facets import FacetCounter
from builtin_plugins.rag.filters.grammar import MetadataFilter
from builtin_plugins.rag.metadata.kinds import FieldValue, folded, value_of
from builtin_plugins.rag.models import Document, MetadataField
from builtin_plugins.rag.plugin import RagPlugin
from builtin_plugins.rag.rights.reading import VISITORS
from builtin_plugins.rag.schemas_facets import Facet
from builtin_plugins.rag.services.metadata import read_layers, write_layers
from builtin_plugins.vectors.api import Point, Query, VectorStore
from kernel.db import migrate
from kernel.db.engine import Database, Unit

OWNER = migrate.Owner("rag", RagPlugin().register_tables())
DOCUMENTS = 120
BASES = ("b0000000", "b0000001")
"""Of these only the first declares fields of its own."""
COUNTED = ("tags", "content_type", "created", "uploaded_at", "open", "keeper", "folder")

NOW = datetime(2026, 6, 15, 12, 30, tzinfo=UTC)
KINDS = {
    "Kunde": "text",
    "amount": "number",
    "signed": "date",
    "open": "boolean",
    "keeper": "person",
}
STORED = {**KINDS, "tags": "text", "author": "text", "created": "date"}
ROW = {
    "filename": "text",
    "source": "text",
    "path": "text",
    "folder": "text",
    "content_type": "text",
    "size_bytes": "number",
    "page_count": "number",
    "version": "number",
    "uploaded_at": "date",
    "document_id": "text",
}
WORDS = (
    "Rechnung",
    "rechnung",
    "Übergabe",
    "ÜBERGABE",
    "Straße",
    "a%b_c",
    "x*y?z[1]",
    "Ωmega",
    "İzmir",
    "q'\\z",
)
DAYS = ("2025-12-31", "2026-01-01", "2026-03-01T09:30:00Z", "2026-03-31", "2026-06-15", "2024-02-29")
NUMBERS = (-1, 0, 1, 2.5, 100, 2**40)
TYPES = ("text/plain", "application/pdf", "image/png")
FOLDERS = ("", "contracts/", "contracts/2026/", "Contracts/", "contracts2/", "Über/")


@dataclass
class Entry:
    """A document as the model knows it: its row, and the values of its fields."""

    row: dict[str, Any]
    values: dict[str, list[FieldValue]] = field(default_factory=dict)

    @property
    def path(self) -> str | None:
        identity = self.row["identity"]
        return identity.removeprefix("path:") if identity and identity.startswith("path:") else None


def make_entry(chance: random.Random, base_id: str, document_id: str, number: int) -> Entry:
    """A document with random fields."""
    word = chance.choice(WORDS)
    name = unicodedata.normalize(chance.choice(("NFC", "NFD")), f"{word} {number % 7}.txt")
    identity = chance.choice(
        (
            None,
            f"id:{number}",
            f"path:{chance.choice(FOLDERS)}{unicodedata.normalize('NFC', name)}-{number}",
        )
    )
    row = {
        "id": document_id,
        "knowledge_base_id": base_id,
        "filename": name,
        "content_type": chance.choice(TYPES),
        "size_bytes": chance.choice((0, 1, 100, 2**40)),
        "sha256": f"{number:064x}",
        "status": "completed",
        "page_count": chance.choice((None, 1, 2, 100)),
        "version": chance.choice((1, 2)),
        "identity": identity,
        "uploaded_at": NOW - timedelta(days=chance.choice((0, 1, 29, 31, 400)), seconds=number),
    }
    entry = Entry(row)
    for name, kind in STORED.items():
        if chance.random() < 0.6:
            many = chance.choice((1, 1, 3)) if name in ("tags", "author") else 1
            values = [value_of(kind, _given(chance, kind)) for _ in range(many)]  # type: ignore[arg-type]
            entry.values[name] = list(dict.fromkeys(values))
    return entry


def _given(chance: random.Random, kind: str) -> Any:
    choices: Mapping[str, Sequence[Any]] = {
        "text": WORDS,
        "number": NUMBERS,
        "date": DAYS,
        "boolean": (True, False),
        "person": (1, 2, 33),
    }
    return chance.choice(choices[kind])


def store(unit: Unit, base_id: str, entries: Sequence[Entry], *, declare: bool = True) -> None:
    """Write the fields, the documents and their values."""
    if declare:
        for name, kind in KINDS.items():
            unit.session.add(MetadataField(knowledge_base_id=base_id, name=name, kind=kind))
    unit.session.add_all(Document(**entry.row) for entry in entries)
    unit.session.flush()
    for entry in entries:
        layers = read_layers(unit.session, [entry.row["id"]])
        layers[entry.row["id"]].set("hand", entry.values)
        write_layers(unit, base_id, layers)


def vector(number: int) -> Any:
    """A direction of its own for each document."""
    angle = number / DOCUMENTS * np.pi
    return np.array([np.cos(angle), np.sin(angle), 0, 0], np.float32)


async def fill(database: Database, vectors: VectorStore, chance: random.Random) -> list[Entry]:
    """Documents in both knowledge bases, each with two passages."""
    entries = []
    for number in range(DOCUMENTS):
        base = BASES[number % 4 == 0]
        entry = make_entry(chance, base, str(uuid.UUID(int=number)), number)
        if base == BASES[1]:
            entry.values = {key: one for key, one in entry.values.items() if key in ("tags", "author")}
        entries.append(entry)

    def write(unit: Unit) -> None:
        for at, base in enumerate(BASES):
            store(
                unit, base, [one for one in entries if one.row["knowledge_base_id"] == base], declare=at == 0
            )
            vectors.ensure(unit, base, 4, "engine")
        for number, entry in enumerate(entries):
            base, group = entry.row["knowledge_base_id"], entry.row["id"]
            texts = [f"berth {number}", f"berth and quay {number}"]
            points = [
                Point(f"{number}-{at}", group, at, text, vector(number)) for at, text in enumerate(texts)
            ]
            vectors.stage(unit, base, points)
            vectors.publish(unit, base, group)

    await database.write(write)
    return entries


@dataclass
class Outcome:
    """What a filter leaves, as the database says."""

    bound: BoundFilter
    listed: set[str]
    total: int
    facets: Mapping[str, Facet]

    @classmethod
    def of(cls, session: Session, sent: MetadataFilter, facets: Sequence[str]) -> Outcome:
        bound = bind(session, VISITORS, BASES, [FilterSource(sent)], NOW)
        listed = set(session.scalars(select(Document.id).where(bound.condition())))
        counter = FacetCounter(session, BASES, bound.condition(), 1000, "month")
        fields = fields_by_base(session, BASES)[BASES[0]]
        return cls(bound, listed, counter.total(), {name: counter.facet(fields[name]) for name in facets})


async def try_filters(
    database: Database, vectors: VectorStore, chance: random.Random, entries: Sequence[Entry], tries: int
) -> None:
    """Random filters, each in a list, in counts and in a search of each knowledge base."""
    ids = [entry.row["id"] for entry in entries]
    for _ in range(tries):
        wanted = random_filter(chance, ids)
        sent = parse_filter(wanted, ())
        if sent is None:
            continue
        left = [entry for entry in entries if matches(entry, wanted)]
        outcome = await database.read(Outcome.of, sent, [chance.choice(COUNTED)])
        assert outcome.listed == {entry.row["id"] for entry in left}, wanted
        assert outcome.total == len(left), wanted
        for name, facet in outcome.facets.items():
            assert {one.value: one.count for one in facet.values} == counts(name, left), (name, wanted)
        for base in BASES:
            text, groups = chance.choice((None, "quay", "berth")), outcome.bound.groups(base)
            query = Query(vector(chance.randrange(DOCUMENTS)), 2 * DOCUMENTS, text=text, groups=groups)
            found = {hit.point.group for hit in await vectors.search(base, query)}
            expected = {entry.row["id"] for entry in left if entry.row["knowledge_base_id"] == base}
            assert found == expected, (wanted, text)


def counts(name: str, entries: Sequence[Entry]) -> dict[Any, int]:
    """How many documents have each value."""
    found: Counter[Any] = Counter()
    for entry in entries:
        if name == "content_type":
            found[entry.row["content_type"]] += 1
        elif name == "uploaded_at":
            found[entry.row["uploaded_at"].isoformat()[:7]] += 1
        elif name == "folder":
            top, slash, _ = (entry.path or "").partition("/")
            found.update([top] if slash else [])
        else:
            shown = {
                "created": lambda v: v.text[:7],
                "open": lambda v: bool(v.number),
                "keeper": lambda v: int(v.text),
            }
            read = shown.get(name, lambda v: v.text)
            found.update({read(value) for value in entry.values.get(name, ())})
    return dict(found)


def random_filter(chance: random.Random, ids: Sequence[str], depth: int = 3) -> dict[str, Any]:
    """A valid filter."""
    kind = chance.random()
    if depth and kind < 0.35:
        parts = [random_filter(chance, ids, depth - 1) for _ in range(chance.randint(1, 3))]
        return {"type": chance.choice(("and", "or")), "filters": parts}
    if depth and kind < 0.45:
        return {"type": "not", "filter": random_filter(chance, ids, depth - 1)}
    key = chance.choice((*STORED, *ROW))
    if kind < 0.55:
        value = _wanted(chance, key, ids)
        return {key: chance.choice((value, [value, _wanted(chance, key, ids)]))}
    operator = chance.choice(_operators(key))
    if operator == "exists":
        return {"type": operator, "key": key, "value": chance.choice((True, False))}
    if operator in ("in", "nin"):
        return {
            "type": operator,
            "key": key,
            "value": [_wanted(chance, key, ids) for _ in range(chance.randint(0, 3))],
        }
    value = _wanted(chance, key, ids)
    if operator in ("contains", "starts_with", "ends_with"):
        start = chance.randint(0, max(0, len(value) - 2))
        value = chance.choice((value, value[start : start + 3], value.swapcase(), value[-3:], value[:2]))
    return {"type": operator, "key": key, "value": value}


def _operators(key: str) -> list[str]:
    equal = ["eq", "ne", "in", "nin", "exists"]
    kind = {**STORED, **ROW}[key]
    if kind in ("number", "date"):
        return [*equal, "gt", "gte", "lt", "lte"]
    return [*equal, "contains", "starts_with", "ends_with"] if kind == "text" and key != "folder" else equal


def _wanted(chance: random.Random, key: str, ids: Sequence[str]) -> Any:
    if key == "document_id":
        return chance.choice((*ids, "nothing"))
    if key == "folder":
        return chance.choice(("contracts", "contracts/2026/", "Contracts", "", "Über", "none"))
    if key == "path":
        return f"{chance.choice(FOLDERS)}{chance.choice(WORDS)} 1.txt-1"
    if key == "content_type":
        return chance.choice((*TYPES, "text/html"))
    if key in ("filename", "source"):
        form = chance.choice(("NFC", "NFD"))
        return unicodedata.normalize(form, f"{chance.choice(WORDS)} {chance.randint(0, 7)}.txt")
    kind = {**STORED, **ROW}[key]
    if kind == "date":
        more = ("2026", "2025", "2026-03", "2026-01-01", "now-30d", "today", "now-1y", "today-1d", 1767225600)
        return chance.choice((*DAYS, *more))
    return _given(chance, kind)


def matches(entry: Entry, wanted: Mapping[str, Any]) -> bool:
    """What a filter means, in the plainest way."""
    kind = wanted.get("type")
    if kind in ("and", "or") and "filters" in wanted:
        parts = [matches(entry, one) for one in wanted["filters"]]
        return all(parts) if kind == "and" else any(parts)
    if kind == "not" and "filter" in wanted:
        return not matches(entry, wanted["filter"])
    if "key" in wanted and "type" in wanted:
        return _condition(entry, wanted["key"], str(kind), wanted.get("value"))
    return all(
        _condition(entry, key, "in" if isinstance(value, list) else "eq", value)
        for key, value in wanted.items()
    )


def _condition(entry: Entry, key: str, operator: str, value: Any) -> bool:
    if operator == "ne":
        return not _condition(entry, key, "eq", value)
    if operator == "nin":
        return not _condition(entry, key, "in", value)
    if operator == "exists":
        return bool(_present(entry, key)) == (value is not False)
    if operator == "in":
        return any(_condition(entry, key, "eq", one) for one in value)
    kind = {**STORED, **ROW}[key]
    return any(_test(key, kind, operator, own, value) for own in _present(entry, key))


def _present(entry: Entry, key: str) -> list[Any]:
    """The values of a field: texts, or numbers."""
    if key in STORED:
        in_numbers = STORED[key] in ("number", "date", "boolean")
        return [one.number if in_numbers else one.text for one in entry.values.get(key, [])]
    if key == "path":
        return [] if entry.path is None else [entry.path]
    if key == "folder":
        return [] if entry.path is None else [entry.path]
    if key == "document_id":
        return [entry.row["id"]]
    value = entry.row["filename" if key == "source" else key]
    if key == "uploaded_at":
        return [value.timestamp()]
    return [] if value is None else [value]


def _test(key: str, kind: str, operator: str, own: Any, value: Any) -> bool:
    if kind == "date":
        start, end = _span(value)
        return {
            "eq": start <= own < end if end > start else own == start,
            "gt": own >= end if end > start else own > start,
            "gte": own >= start,
            "lt": own < start,
            "lte": own < end if end > start else own <= start,
        }[operator]
    if kind in ("number", "boolean"):
        tests = {
            "eq": own == value,
            "gt": own > value,
            "gte": own >= value,
            "lt": own < value,
            "lte": own <= value,
        }
        return tests[operator]
    if kind == "person":
        return bool(own == str(value))
    if key == "folder":
        return bool(own.startswith(value.strip("/") + "/") or not value.strip("/"))
    one, other = (unicodedata.normalize("NFC", text) for text in (own, value))
    if operator == "eq":
        return one == (other.strip("/") if key == "path" else other)
    if key in STORED:
        one, other = folded(one), folded(other)
    else:
        one, other = _plainly(one), _plainly(other)
    return {
        "contains": other in one,
        "starts_with": one.startswith(other),
        "ends_with": one.endswith(other),
    }[operator]


def _plainly(text: str) -> str:
    """Capitals as small letters, where one letter is one letter."""
    letters = unicodedata.normalize("NFD", text)
    return unicodedata.normalize(
        "NFC", "".join(one.lower() if len(one.lower()) == 1 else one for one in letters)
    )


def _span(value: Any) -> tuple[float, float]:
    if not isinstance(value, str):
        return float(value), float(value)
    midnight = NOW.replace(hour=0, minute=0)
    moments = {
        "now-30d": (NOW - timedelta(days=30), NOW - timedelta(days=30)),
        "now-1y": (NOW.replace(year=2025), NOW.replace(year=2025)),
        "today": (midnight, midnight + timedelta(days=1)),
        "today-1d": (midnight - timedelta(days=1), midnight),
    }
    if value in moments:
        start, end = moments[value]
    elif len(value) == 4:
        start, end = datetime(int(value), 1, 1, tzinfo=UTC), datetime(int(value) + 1, 1, 1, tzinfo=UTC)
    elif len(value) == 7:
        year, month = int(value[:4]), int(value[5:])
        start = datetime(year, month, 1, tzinfo=UTC)
        end = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    elif len(value) == 10:
        start = datetime.fromisoformat(value).replace(tzinfo=UTC)
        end = start + timedelta(days=1)
    else:
        start = end = datetime.fromisoformat(value)
    return start.timestamp(), end.timestamp()
