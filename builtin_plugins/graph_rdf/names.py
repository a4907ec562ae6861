"""Names of things in RDF: the published vocabulary, and IRIs made from rows. Every part is escaped."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

VOCABULARY: Final = "https://platform.dev/ns/graph-rag#"
SKOS: Final = "http://www.w3.org/2004/02/skos/core#"
PROV: Final = "http://www.w3.org/ns/prov#"
SCHEMA: Final = "https://schema.org/"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
PREFIXES: Final = {"graph": VOCABULARY, "skos": SKOS, "prov": PROV, "schema": SCHEMA, "rdf": RDF}

CLASSES: Final = {"PERSON": "Person", "ORG": "Organization", "GPE": "Place", "LOC": "Place", "FAC": "Place"}
"""Labels with a class in schema.org."""

_URN = "urn:platform:"
_NEAR = f"{VOCABULARY}coOccursWith"


def graph(maker: str, document_id: str) -> str:
    """The named graph of a document."""
    return f"{_URN}graph:{_part(maker or 'base')}:{_part(document_id)}"


def owner(maker: str, knowledge_base_id: str | None) -> str:
    """The graph of all documents that an account constructed, or of a knowledge base."""
    return f"{_URN}maker:{_part(maker)}" if maker else f"{_URN}base:{_part(knowledge_base_id or '')}"


def document(maker: str, document_id: str) -> str:
    """The document itself; names of things inside it begin with this name."""
    return f"{_URN}document:{_part(maker or 'base')}:{_part(document_id)}"


def entity(key: str) -> str:
    """An entity, the same in all documents."""
    return f"{_URN}entity:{_part(key)}"


def entity_key(address: str) -> str:
    """The key in an entity's IRI; empty for other IRIs."""
    return _within(address, entity(""))


def is_document(address: str) -> bool:
    """Whether this is the IRI of a document, or of something in one."""
    return address.startswith(f"{_URN}document:")


def predicate(name: str) -> str:
    """A relation's predicate."""
    return _NEAR if name == "CO_OCCURS_WITH" else f"{_URN}predicate:{_part(name)}"


def predicate_name(address: str) -> str:
    """The relation of a predicate's IRI; empty for other IRIs."""
    return "CO_OCCURS_WITH" if address == _NEAR else _within(address, predicate(""))


def _within(address: str, start: str) -> str:
    return unquote(address[len(start) :]) if address.startswith(start) else ""


def _part(text: str) -> str:
    return quote(text, safe="")
