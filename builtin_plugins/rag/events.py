"""What other plugins may hear of documents. Read the fields by name; the classes are this plugin's own."""

from __future__ import annotations

from typing import ClassVar

from kernel.sdk import Event


class DocumentIngested(Event):
    """A document can be found now."""

    durable: ClassVar[bool] = True

    document_id: str
    knowledge_base_id: str
    owner_id: int | None
    filename: str
    chunk_count: int


class DocumentDeleted(Event):
    """A document is gone, with all that was derived from it here."""

    durable: ClassVar[bool] = True

    document_id: str
    knowledge_base_id: str
    owner_id: int | None
