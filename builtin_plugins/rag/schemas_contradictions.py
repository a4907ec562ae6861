"""Answers of the routes of the report of contradictions."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from builtin_plugins.rag.schemas import ChunkOut


class ContradictingStatement(ChunkOut):
    """A sentence of a document that contradicts one of another; the offsets are the sentence's."""

    document_id: str
    filename: str
    uploaded_at: datetime
    valid_from: str | None = Field(description="From which day on the document applies, if that is known.")
    valid_until: str | None = Field(description="The last day on which it applies, if that is known.")


class ContradictionItem(BaseModel):
    """Two sentences that are the same but for a number, a date or a negation."""

    newer: ContradictingStatement = Field(description="That of the document that was uploaded last.")
    older: ContradictingStatement


class ContradictionsOut(BaseModel):
    """What current documents about the same thing say differently: those that the caller may read."""

    made_at: datetime | None = Field(
        description="When the documents were compared; null if they never were. Later ones are not in it."
    )
    is_complete: bool = Field(
        description="False if there was too much to compare: a subject with more than 20 documents, a "
        "document with more than 2,000 passages, or more than 2,000 contradictions."
    )
    items: list[ContradictionItem]
    total: int
    limit: int
    offset: int
