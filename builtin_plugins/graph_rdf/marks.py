"""A store's own metadata in its default graph, which no query reads: states and owners of graphs."""

from __future__ import annotations

from typing import Any, Final

STAMP: Final = "urn:platform:stamp"
"""The predicate for a graph's state."""
OWNER: Final = "urn:platform:owner"
WRITING: Final = "urn:platform:writing"
SPENT: Final = "urn:platform:spent"
STORE: Final = "urn:platform:store"


def read_marks(store: Any, predicate: str) -> dict[str, str]:
    """The values of this predicate, by graph."""
    import pyoxigraph as ox

    quads = store.quads_for_pattern(None, ox.NamedNode(predicate), None, ox.DefaultGraph())
    return {quad.subject.value: quad.object.value for quad in quads}


def mark(subject: str, predicate: str, text: str) -> Any:
    """One such statement."""
    import pyoxigraph as ox

    return ox.Quad(ox.NamedNode(subject), ox.NamedNode(predicate), ox.Literal(text), ox.DefaultGraph())
