"""The statements of a graph (`schemas/graph-rag.ttl`). Each leads to its document, passage and characters.

There are no blank nodes: two graphs of the same rows are equal as sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from . import names
from .names import CLASSES, PROV, RDF, SCHEMA, SKOS, VOCABULARY
from .rows import GraphRows


class Iri(str):
    """An object that is a thing with its own name; other objects are values."""

    __slots__ = ()


Statements = Iterator[tuple[str, str, Iri | str | int | float]]

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def quads(rows: GraphRows) -> Iterator[Any]:
    """All statements of one named graph, as objects."""
    import pyoxigraph as ox

    graph = ox.NamedNode(names.graph(rows.graph.maker, rows.graph.document_id))
    node = cache(ox.NamedNode)  # most occur several times, and creating one validates the IRI
    for subject, predicate, value in _statements(rows):
        target = node(value) if isinstance(value, Iri) else ox.Literal(value)
        yield ox.Quad(node(subject), node(predicate), target, graph)


def lines(rows: GraphRows) -> list[str]:
    """The same in N-Triples, without the end of each line, so that a graph and a period can follow.

    Filling a store takes millions of statements; objects would take a quarter more time.
    """
    return [f"<{subject}> <{predicate}> {_written(value)}" for subject, predicate, value in _statements(rows)]


def _written(value: Iri | str | int | float) -> str:
    if isinstance(value, Iri):
        return f"<{value}>"
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    return f'"{value!r}"^^<{_XSD}{"integer" if isinstance(value, int) else "double"}>'


def _statements(rows: GraphRows) -> Statements:
    document = names.document(rows.graph.maker, rows.graph.document_id)
    yield from _document(rows, document)
    yield from _passages(rows, document)
    yield from _entities(rows, document)
    yield from _relations(rows, document)


def _document(rows: GraphRows, document: str) -> Statements:
    yield document, f"{RDF}type", Iri(f"{SCHEMA}CreativeWork")
    yield document, f"{SCHEMA}identifier", rows.graph.document_id
    if rows.graph.title is not None:
        yield document, f"{SCHEMA}name", rows.graph.title
    if rows.graph.source is not None:
        yield document, f"{SCHEMA}isBasedOn", rows.graph.source


def _passages(rows: GraphRows, document: str) -> Statements:
    kind, part = Iri(f"{VOCABULARY}Passage"), Iri(document)
    for passage in rows.passages:
        name = f"{document}/passage/{passage.position}"
        yield name, f"{RDF}type", kind
        yield name, f"{SCHEMA}isPartOf", part
        yield name, f"{VOCABULARY}start", passage.char_start
        yield name, f"{VOCABULARY}end", passage.char_end
        if passage.page is not None:
            yield name, f"{VOCABULARY}page", passage.page
        for start, end, key, _ in passage.mentions:
            yield from _mention(document, name, passage.char_start + start, passage.char_start + end, key)


def _mention(document: str, passage: str, start: int, end: int, key: str) -> Statements:
    name = f"{document}/mention/{start}-{end}"
    yield name, f"{RDF}type", Iri(f"{VOCABULARY}Mention")
    yield name, f"{VOCABULARY}names", Iri(names.entity(key))
    yield name, f"{PROV}wasDerivedFrom", Iri(passage)
    yield name, f"{VOCABULARY}start", start
    yield name, f"{VOCABULARY}end", end


def _entities(rows: GraphRows, document: str) -> Statements:
    for entity in rows.entities:
        name = names.entity(entity.key)
        yield name, f"{RDF}type", Iri(f"{SKOS}Concept")
        if entity.label in CLASSES:
            yield name, f"{RDF}type", Iri(SCHEMA + CLASSES[entity.label])
        yield name, f"{SKOS}prefLabel", entity.name
        yield name, f"{VOCABULARY}label", entity.label
    for alias in rows.aliases:
        name = names.entity(alias.key)
        why = f"{document}/naming/{names.entity(alias.alias).rpartition(':')[2]}"
        yield name, f"{SKOS}altLabel", alias.name
        yield why, f"{RDF}type", Iri(f"{VOCABULARY}Naming")
        yield why, f"{VOCABULARY}names", Iri(name)
        yield why, f"{SKOS}altLabel", alias.name
        yield why, f"{VOCABULARY}reason", alias.reason
        yield from _place(rows, document, why, alias)


def _relations(rows: GraphRows, document: str) -> Statements:
    for relation in rows.relations:
        name = f"{document}/relation/{relation.number}"
        subject, target = names.entity(relation.subject), Iri(names.entity(relation.object))
        predicate = names.predicate(relation.predicate)
        yield subject, predicate, target
        yield name, f"{RDF}type", Iri(f"{RDF}Statement")
        yield name, f"{RDF}subject", Iri(subject)
        yield name, f"{RDF}predicate", Iri(predicate)
        yield name, f"{RDF}object", target
        yield name, f"{VOCABULARY}weight", relation.weight
        yield from _place(rows, document, name, relation)


def _place(rows: GraphRows, document: str, name: str, row: Any) -> Statements:
    offset = rows.passages[row.position].char_start
    yield name, f"{PROV}wasDerivedFrom", Iri(f"{document}/passage/{row.position}")
    yield name, f"{VOCABULARY}start", offset + row.start
    yield name, f"{VOCABULARY}end", offset + row.end
