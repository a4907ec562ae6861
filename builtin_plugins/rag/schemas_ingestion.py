"""What is told of a knowledge base's ingestion."""

from __future__ import annotations

from pydantic import BaseModel, Field


class IngestionOut(BaseModel):
    """How far the documents of a knowledge base are."""

    processing: int = Field(description="Documents that wait or are being read.")
    completed: int
    failed: int
    processing_bytes: int = Field(description="Size of the files that wait or are being read.")
    queue_position: int | None = Field(
        description="1 if this knowledge base is next. Knowledge bases take turns; those that have waited "
        "longer come first. Null if nothing waits."
    )
    documents_per_minute: float = Field(description="Completed in the last five minutes.")
    passages_per_second: float = Field(description="Embedded in the last five minutes.")
    eta_seconds: int | None = Field(
        description="Estimated seconds left, by what was completed in the last five minutes and by how far "
        "the documents are that are being read; null while neither says anything."
    )


class IngestionChanged(BaseModel):
    """How many documents were changed."""

    documents: int
