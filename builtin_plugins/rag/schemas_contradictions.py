"""Answers of the routes of the report of contradictions."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from builtin_plugins.rag.schemas import ChunkOut
from kernel.sdk import Body, example


class ContradictionRequest(Body):
    """Whether a model helps, and how much it may do."""

    model_config = example(model_calls=100)

    model_calls: int = Field(
        0,
        ge=0,
        le=2_000,
        description="How many pairs of sentences in different words the connected model may judge, with one "
        "call each; those that are most alike come first. It is shown only documents that the caller may "
        "read. 0 asks none. What it judged before is not asked again.",
    )


class ContradictingStatement(ChunkOut):
    """A sentence of a document that contradicts one of another; the offsets are the sentence's."""

    document_id: str
    filename: str
    uploaded_at: datetime
    valid_from: str | None = Field(description="From which day on the document applies, if that is known.")
    valid_until: str | None = Field(description="The last day on which it applies, if that is known.")


class ContradictionItem(BaseModel):
    """Two sentences that contradict each other."""

    newer: ContradictingStatement = Field(description="That of the document that was uploaded last.")
    older: ContradictingStatement
    found_by: Literal["rules", "model"] = Field(
        description="`rules`: the sentences are the same but for a number, a date or a negation. `model`: a "
        "model says so, and may be wrong."
    )


class ContradictionsOut(BaseModel):
    """What current documents about the same thing say differently: those that the caller may read."""

    made_at: datetime | None = Field(
        description="When the documents were compared; null if they never were. Later ones are not in it."
    )
    is_complete: bool = Field(
        description="False if there was too much to compare: a subject with more than 20 documents, a "
        "document with more than 2,000 passages, more than 2,000 contradictions, or more pairs for a model "
        "than it was to judge."
    )
    judged_pairs: int = Field(
        description="How many pairs of sentences, of documents that the caller may read, a model judged, now "
        "or for an earlier report."
    )
    has_model: bool = Field(description="Whether a model is connected, so that `model_calls` can be sent.")
    items: list[ContradictionItem]
    total: int
    limit: int
    offset: int
