"""Receipts of deletions, as clients keep them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from .schemas import MessageWithId

MOST_LISTED = 500


class RemovedContent(BaseModel):
    """A document that was deleted, without its name or text."""

    document_id: str
    sha256: str = Field(description="Digest of the file's bytes.")
    size_bytes: int


class RemovedFrom(BaseModel):
    """What was removed from one place."""

    place: str = Field(description="Such as `rows`, `vectors`, `texts`, `files`, `graphs`.")
    count: int
    pending: bool = Field(
        description="It can no longer be reached, and is removed in the background after the response."
    )


class ReceiptFacts(BaseModel):
    """What a receipt says."""

    model_config = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    receipt_id: str
    kind: Literal["document", "knowledge_base"]
    knowledge_base_id: str
    document_id: str | None = Field(description="Null when a whole knowledge base was deleted.")
    digest: str = Field(
        description="SHA-256 of the deleted content: for a document, of its bytes; for a knowledge base, "
        "of its documents' digests in ascending order, as lines."
    )
    document_count: int
    documents: list[RemovedContent] = Field(
        description=f"The deleted documents, by their digests; the first {MOST_LISTED} of them."
    )
    removed: list[RemovedFrom]
    deleted_at: datetime
    deleted_by: str = Field(description="The account's id, or the name of a service.")


class Receipt(ReceiptFacts):
    """The receipt of a deletion. `platformctl rag verify-deleted` checks it."""

    key_id: str = Field(description="Which key it is signed with.")
    signature: str = Field(description="HMAC-SHA256 over the other fields as JSON with sorted keys, in hex.")


class Deleted(MessageWithId):
    """What was deleted, with its receipt."""

    receipt: Receipt
