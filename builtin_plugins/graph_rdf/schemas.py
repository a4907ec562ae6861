"""Bodies and answers about RDF."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from builtin_plugins.graph_rag.api import Body, DocumentId
from kernel.sdk import example

from .queries import LONGEST

RdfFormat = Literal["turtle", "n-quads", "json-ld"]


def _absent(value: object) -> bool:
    return value is None


class SparqlRequest(Body):
    """A SPARQL 1.1 query: SELECT, ASK, CONSTRUCT or DESCRIBE."""

    model_config = example(
        query="PREFIX skos: <http://www.w3.org/2004/02/skos/core#> "
        "SELECT ?entity ?name WHERE { ?entity skos:prefLabel ?name } LIMIT 10"
    )

    query: Annotated[str, Field(min_length=1, max_length=LONGEST)]


class SparqlResults(BaseModel):
    """Results of SELECT and ASK, as in SPARQL 1.1 Query Results JSON."""

    head: dict[str, Any]
    results: dict[str, Any] | None = Field(None, exclude_if=_absent)
    boolean: bool | None = Field(None, exclude_if=_absent)
    truncated: bool = Field(False, description="Whether there were more rows than the server returns.")


class ExportQuery(BaseModel):
    """Which graphs to export, and how they are written."""

    kb_id: Annotated[str, Field(max_length=255)] | None = Field(
        None, description="Only graphs of this knowledge base."
    )
    document_id: Annotated[str, Field(max_length=255)] | None = Field(
        None, description="Only the graph of this document."
    )
    format: RdfFormat = Field("turtle", description="N-Quads and JSON-LD name the graph of each statement.")


class ImportRequest(Body):
    """RDF to store as a graph of the caller. Statements between things become relations."""

    model_config = example(
        document_id="people",
        format="turtle",
        content="@prefix s: <https://schema.org/> . <urn:ada> s:name 'Ada Lind' ; s:worksFor <urn:nri> .",
    )

    document_id: DocumentId
    content: Annotated[str, Field(min_length=1, max_length=5_000_000)]
    format: RdfFormat = "turtle"
    title: Annotated[str, Field(max_length=1_000)] | None = None
    source: Annotated[str, Field(max_length=2_000)] | None = None
