"""Bodies and answers of correlations and overviews (decisions.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from kernel.sdk import Body, example

from .schemas import DocumentId, Query


class CorrelateRequest(Body):
    """What to find correlations of: a document, an entity, or everything. The entity, if both are given."""

    model_config = example(document_id="minutes-7", limit=10)

    document_id: DocumentId | None = Field(None, description="Correlations of this document with others.")
    entity: Query | None = Field(None, description="Correlations of this entity with others.")
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    min_score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0


class Evidence(BaseModel):
    """A sentence that shows it."""

    document_id: str
    title: str | None
    snippet: str


class Correlation(BaseModel):
    """Two documents (by id) or entities (by name) and how strongly they belong together, from 0 to 1."""

    source: str
    target: str
    score: float
    evidence: list[Evidence]
    kind: Literal["SHARED_ENTITIES", "CO_OCCURRENCE", "SVO"]
    shared: list[str] = Field(description="What two documents have in common, rarest first.")


class Correlations(BaseModel):
    """Correlations, strongest first."""

    items: list[Correlation]
    total: int


class OverviewRequest(Body):
    """What to describe: everything that the caller sees, or one knowledge base."""

    model_config = example(limit=5)

    kb_id: Annotated[str, Field(max_length=255)] | None = None
    limit: Annotated[int, Field(ge=1, le=50)] = Field(8, description="Largest number of topics.")


class Topic(BaseModel):
    """Entities that belong together, and sentences of the documents about them."""

    title: str
    summary: str
    entities: list[str]
    documents: list[str]
    size: int = Field(description="How many entities belong to it.")


class Overview(BaseModel):
    """What a collection is about, largest topic first."""

    success: bool = True
    documents: int
    entities: int
    topics: list[Topic]
    took_ms: float


class NetworkQuery(BaseModel):
    """What to draw: everything that the caller sees, or one knowledge base."""

    kb_id: Annotated[str, Field(max_length=255)] | None = None
    limit: Annotated[int, Field(ge=1, le=2000)] = Field(300, description="Largest number of entities.")


class NetworkEntity(BaseModel):
    """An entity and how many documents name it."""

    text: str
    label: str
    documents: int


class NetworkConnection(BaseModel):
    """Two entities, by their places in the list, and how closely documents relate them."""

    source: int
    target: int
    weight: float


class Network(BaseModel):
    """The entities that the most documents name, and the strongest connections between them."""

    entities: list[NetworkEntity]
    connections: list[NetworkConnection]
