"""The published vocabulary, and what graphs really say."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox

from builtin_plugins.graph_rdf.names import VOCABULARY
from kernel.testing import Start
from tests.builtin_plugins.graph_rag.graph_support import API, INSTITUTE, construct

RDFS = "http://www.w3.org/2000/01/rdf-schema#"
FILE = Path(__file__).parents[3] / "schemas" / "graph-rag.ttl"
KNOWN = (
    VOCABULARY,
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "http://www.w3.org/2004/02/skos/core#",
    "http://www.w3.org/ns/prov#",
    "https://schema.org/",
)


async def test_terms(start_platform: Start) -> None:
    """Each term of ours that a graph uses is published, with label and comment, and each of those is used.

    Only `page` needs a document with pages.
    """
    published = list(ox.parse(path=str(FILE)))
    terms = {q.subject.value for q in published if q.subject.value.startswith(VOCABULARY)}
    for term in terms:
        said = {q.predicate.value for q in published if q.subject.value == term}
        assert {f"{RDFS}label", f"{RDFS}comment"} <= said, term
    running = await start_platform("graph_rdf")
    ann = await running.user()
    await construct(ann, "a", INSTITUTE, title="Institute", source="mail")
    answer = await ann.get(f"{API}/graph/export?format=n-quads")
    quads = list(ox.parse(answer.body, format=ox.RdfFormat.N_QUADS))
    used = {q.predicate.value for q in quads}
    used |= {q.object.value for q in quads if q.predicate.value.endswith("#type")}
    assert all(term.startswith(KNOWN) for term in used)
    assert {term for term in used if term.startswith(VOCABULARY)} == terms - {f"{VOCABULARY}page"}
    traced = {q.subject for q in quads if q.predicate.value.endswith("#wasDerivedFrom")}
    kinds = {f"{VOCABULARY}Mention", f"{VOCABULARY}Naming", f"{KNOWN[1]}Statement"}
    told = {q.subject for q in quads if q.object.value in kinds}
    assert told == traced
