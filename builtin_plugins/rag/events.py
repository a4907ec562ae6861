"""Events about documents for other plugins, by `event_name`. The classes are this plugin's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kernel.sdk import Event


class DocumentIngested(Event):
    """A document can be found now."""

    event_name: ClassVar[str] = "rag.document_ingested"
    former_names: ClassVar[Sequence[str]] = ("builtin_plugins.rag.events:DocumentIngested",)
    durable: ClassVar[bool] = True

    document_id: str
    knowledge_base_id: str
    owner_id: int | None
    filename: str
    chunk_count: int


class DocumentDeleted(Event):
    """A document is gone, with all that was derived from it here."""

    event_name: ClassVar[str] = "rag.document_deleted"
    former_names: ClassVar[Sequence[str]] = ("builtin_plugins.rag.events:DocumentDeleted",)
    durable: ClassVar[bool] = True

    document_id: str
    knowledge_base_id: str
    owner_id: int | None
