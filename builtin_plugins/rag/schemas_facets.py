"""Bodies and answers of the routes that count documents per value."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from builtin_plugins.rag.filters.grammar import FilterKey, SentFilter
from builtin_plugins.rag.metadata.kinds import FieldKind
from kernel.sdk import Body, example


class FacetRequest(Body):
    """Which fields to count, over which documents."""

    model_config = example(fields=["tags", "created"], filter={"type": "exists", "key": "author"})

    fields: list[FilterKey] = Field(min_length=1, max_length=20)
    filter: SentFilter | None = Field(None, description="Only documents that match, as in a search.")
    limit: int = Field(20, ge=1, le=200, description="The most values of one field.")
    dates: Literal["year", "month"] = Field("year", description="What dates are counted by.")


class FacetValue(BaseModel):
    """A value, and how many documents have it. A filter takes it as it is."""

    value: str | int | bool
    count: int


class Facet(BaseModel):
    """The values of one field."""

    field: str
    kind: FieldKind
    documents: int = Field(description="How many documents have a value.")
    values: list[FacetValue] = Field(
        description="The most frequent first, dates by time. Folders are those at the top; numbers have none."
    )
    more: bool = Field(False, description="Whether there are more values than the limit.")
    min: float | None = Field(None, description="The least of numbers.")
    max: float | None = Field(None, description="The greatest of numbers.")


class FacetsOut(BaseModel):
    """How many documents match, and the values of their fields."""

    total: int
    facets: list[Facet]
