"""The trash of a knowledge base: documents that were deleted and can be taken back."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from builtin_plugins.rag.schemas import MessageWithId
from builtin_plugins.rag.schemas_receipts import Receipt
from kernel.sdk import Body, Page, example


class RemovalQuery(BaseModel):
    """How to delete a document."""

    model_config = example(trash=True)

    trash: bool = Field(
        False,
        description="Put it into the trash of the knowledge base, from which it can be taken back, instead "
        "of deleting it. It is deleted all the same if the server keeps no trash, or if this is an earlier "
        "version or a new one that failed.",
    )


class Removed(MessageWithId):
    """What was deleted, or put into the trash."""

    trashed: bool = Field(description="Whether it is in the trash.")
    receipt: Receipt | None = Field(description="The receipt of the deletion; null for one in the trash.")


class TrashedDocumentOut(BaseModel):
    """A document in the trash, with all its versions."""

    document_id: str
    filename: str
    size_bytes: int
    trashed_at: datetime
    kept_until: datetime = Field(description="When it is deleted for good, with the next nightly run.")


class Trash(Page[TrashedDocumentOut]):
    """A page of the trash of a knowledge base, the latest first."""

    days: int = Field(description="For how many days it keeps documents; 0 if this server keeps none.")


class TrashedBaseIn(Body):
    """The knowledge base to put into the trash."""

    model_config = example(knowledge_base_id="3f2b9c4e-8d1a-4c5b-9e7f-2a6d8b0c1e3f")

    knowledge_base_id: str = Field(max_length=36)


class TrashedBaseOut(BaseModel):
    """A knowledge base in the trash, with all its documents."""

    id: str
    name: str
    document_count: int
    size_bytes: int
    trashed_at: datetime
    kept_until: datetime = Field(description="When it is deleted for good, with the next nightly run.")


class BaseTrash(Page[TrashedBaseOut]):
    """A page of the knowledge bases in the trash, the latest first."""

    days: int = Field(description="For how many days it keeps them; 0 if this server keeps none.")
