"""Answers of the route that compares two versions of a document."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from builtin_plugins.rag.schemas import ChunkOut
from kernel.sdk import READABLE, PageQuery


class DifferenceQuery(PageQuery):
    """Paging of the changes, and what to compare with."""

    against: Annotated[str, Field(max_length=64), READABLE] | None = Field(
        None, description="The `document_id` of the other version; by default, the one that was read before."
    )


class Uploader(BaseModel):
    """An account that uploaded a version."""

    id: int
    username: str


class ComparedVersion(BaseModel):
    """One of two versions that are compared."""

    model_config = ConfigDict(from_attributes=True)

    document_id: str
    version: int
    filename: str
    sha256: str
    uploaded_at: datetime
    uploaded_by: Uploader | None = Field(
        None, description="Who uploaded it; null if that is unknown, or nobody whom the caller sees."
    )
    kept_by: str | None = Field(None, description="The plugin that keeps it in step with something, if any.")


class PassagePart(ChunkOut):
    """Sentences of a passage that the other version does not have; the offsets are theirs."""


class VersionChange(BaseModel):
    """A place where two versions differ. One side is null if the other version has nothing there."""

    kind: Literal["added", "removed", "changed"]
    earlier: PassagePart | None
    later: PassagePart | None


class VersionDifference(BaseModel):
    """Where two versions of a document differ, in the order of the text."""

    earlier: ComparedVersion
    later: ComparedVersion
    items: list[VersionChange]
    total: int
    limit: int
    offset: int
