"""What is reported about a knowledge base's ingestion."""

from __future__ import annotations

from pydantic import BaseModel, Field


class IngestionOut(BaseModel):
    """How far the documents of a knowledge base have been processed."""

    processing: int = Field(description="Documents that are waiting or being read.")
    completed: int
    failed: int
    processing_bytes: int = Field(description="Size of the files that are waiting or being read.")
    queue_position: int | None = Field(
        description="1 if this knowledge base is next. Knowledge bases take turns; those that have waited "
        "longer come first. Null if nothing waits."
    )
    documents_per_minute: float = Field(description="Completed in the last five minutes.")
    passages_per_second: float = Field(description="Embedded in the last five minutes.")
    eta_seconds: int | None = Field(
        description="Estimated seconds left, from the progress of the documents being read, and from the "
        "files of the same kind completed in the last five minutes; null while these are less than a tenth "
        "of what is left of some kind."
    )


class IngestionChanged(BaseModel):
    """How many documents were changed."""

    documents: int
