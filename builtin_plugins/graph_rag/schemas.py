"""Bodies and answers of the service (wire-facts 14, decisions.md)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field

from kernel.sdk import READABLE, Body, example

LONGEST_EXTRACTED = 200_000

Kind = Literal["SVO", "CO_OCCURRENCE"]
Query = Annotated[str, Field(min_length=1, max_length=2_000)]


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must contain more than white space")
    return value


Said = Annotated[str, AfterValidator(_not_blank)]
DocumentId = Annotated[str, Field(min_length=1, max_length=255), READABLE]


class ExtractRequest(Body):
    """A text to find entities in."""

    model_config = example(text="Ada Lindqvist leads the Nordlys Institute in Tromsø.")

    text: Annotated[Said, Field(min_length=1, max_length=LONGEST_EXTRACTED)]
    extract_relationships: bool = True


class EntityOut(BaseModel):
    """An entity: what it is called, its kind, and what the kind means."""

    text: str
    label: str = Field(description="A label of OntoNotes 5, such as PERSON or ORG, or NOUN_PHRASE.")
    description: str


class MentionOut(EntityOut):
    """An entity, and where it is in the text, in characters."""

    start: int
    end: int


class RelationshipOut(BaseModel):
    """Two entities that the text relates."""

    subject: str
    predicate: str
    object: str
    type: Kind


class Extracted(BaseModel):
    """What a text mentions."""

    success: bool = True
    entities: list[MentionOut]
    relationships: list[RelationshipOut]
    entity_count: int
    relationship_count: int


class ConstructRequest(Body):
    """A document to build a graph of. Omitted fields keep their values from an earlier graph of it."""

    model_config = example(
        document_id="minutes-7", text="Ada Lindqvist leads the Nordlys Institute in Tromsø.", title="Minutes"
    )

    document_id: DocumentId
    text: Annotated[Said, Field(min_length=1, max_length=20_000_000)]
    kb_id: Annotated[str, Field(max_length=255)] | None = Field(
        None, description="A note by the caller; it gives nobody access."
    )
    title: Annotated[str, Field(max_length=1_000)] | None = None
    source: Annotated[str, Field(max_length=2_000)] | None = None
    metadata: dict[str, Any] | None = None
    extract_relationships: bool = True


class Constructed(BaseModel):
    """The graph that a document has now."""

    success: bool = True
    document_id: str
    entity_count: int
    relationship_count: int
    message: str


class RetrieveRequest(Body):
    """A question to start from."""

    model_config = example(query="Who leads the Nordlys Institute?")

    query: Query
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    traversal_depth: Annotated[int, Field(ge=1, le=4)] = 2


class Neighbor(BaseModel):
    """An entity that is related to the requested one."""

    text: str
    label: str
    predicate: str


class RelatedEntity(Neighbor):
    """An entity that was reached, by which kind of relation."""

    type: Kind


class Retrieved(BaseModel):
    """Entities related to those that the query names, nearest first."""

    success: bool = True
    query: str
    related_entities: list[RelatedEntity]
    entity_count: int
    retrieval_time_ms: float


class ContextRequest(Body):
    """An entity to describe."""

    model_config = example(entity_text="Nordlys Institute")

    entity_text: Query
    include_neighbors: bool = True
    context_window: Annotated[int, Field(ge=1, le=10)] = Field(
        3, description="Passages to show; at most ten times as many neighbors are shown."
    )


class DocumentRef(BaseModel):
    """A document that names the entity."""

    id: str
    title: str | None


class PassageRef(BaseModel):
    """A passage that names the entity; offsets count characters of the document's text."""

    document_id: str
    text: str
    char_start: int
    char_end: int


class SameAs(BaseModel):
    """Another name that was recognized as this entity, and the words that show it."""

    text: str
    reason: str
    document_id: str
    evidence: str


class EntityContext(BaseModel):
    """An entity, its neighbors, and where it is named."""

    success: bool = True
    entity: EntityOut
    related_entities: list[Neighbor]
    documents: list[DocumentRef]
    passages: list[PassageRef]
    also_called: list[SameAs]
    context_window: int


class SearchRequest(Body):
    """Words to find entities by."""

    model_config = example(query="nordlys")

    query: Query
    limit: Annotated[int, Field(ge=1, le=50)] = 5


class EntitiesFound(BaseModel):
    """Entities, the best match first."""

    success: bool = True
    query: str
    entities: list[EntityOut]
    entity_count: int


class Stats(BaseModel):
    """How much there is in the graphs that the caller sees."""

    success: bool = True
    nodes: int
    relationships: int
    documents: int
    entities: int
    entity_types: dict[str, int]


class GraphDocumentOut(BaseModel):
    """A document with a graph."""

    id: str
    title: str | None
    source: str | None
    kb_id: str | None
    created_at: datetime
    entity_count: int


class GraphDocuments(BaseModel):
    """Documents with a graph, newest first."""

    success: bool = True
    documents: list[GraphDocumentOut]
    count: int


class DocumentsQuery(BaseModel):
    """Paging. Without a limit, all are on one page."""

    limit: int | None = Field(None, ge=1, le=500)
    offset: int = Field(0, ge=0, le=2**53)
    kb_id: str | None = Field(None, max_length=255, description="Only those of this knowledge base.")


class GraphDropped(BaseModel):
    """What was deleted, in numbers."""

    success: bool = True
    document_id: str
    document_deleted: int
    relationships_deleted: int
    orphan_entities_deleted: int


class RootOut(BaseModel):
    """The service and what it can do."""

    service: str
    version: str
    status: str
    capabilities: list[str]
    docs: str
    health: str
