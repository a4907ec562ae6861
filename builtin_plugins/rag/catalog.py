"""Knowledge bases and their documents of any status, for plugins that offer them by another protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kernel.sdk import ResourceKey

if TYPE_CHECKING:
    from builtin_plugins.rag.cursors import CursorPage
    from builtin_plugins.rag.metadata.kinds import FieldKind
    from builtin_plugins.rag.schemas import KnowledgeBaseCreate
    from kernel.sdk import Caller


@dataclass(frozen=True, slots=True)
class BaseEntry:
    """A knowledge base; how many of its documents have each status, and the bytes of their files."""

    id: str
    name: str
    description: str
    created_at: datetime
    statuses: Mapping[str, int] = field(default_factory=dict)
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CatalogDocument:
    """A document. `key` is that of the plugin that keeps it, if one does; `metadata` its fields' values."""

    id: str
    knowledge_base_id: str
    filename: str
    size_bytes: int
    sha256: str
    status: str
    error: str | None
    uploaded_at: datetime
    key: str | None
    metadata: Mapping[str, Any]


class DocumentCatalog(Protocol):
    """What a caller may see of knowledge bases, and change in its own.

    All of it raises KnowledgeBaseNotFound and DocumentNotFound, also for what the caller may not see; changes
    raise NotOwner.
    """

    async def create(
        self, caller: Caller, body: KnowledgeBaseCreate, base_id: str | None = None
    ) -> BaseEntry:
        """A new knowledge base of the caller. With an id that the plugin has drawn for it (a random UUID), a
        repetition makes no second one. Raises Unprocessable.
        """
        ...

    async def bases(self, caller: Caller, page: CursorPage) -> tuple[Sequence[BaseEntry], bool]:
        """A page of the knowledge bases, and whether there are more. Raises Unprocessable."""
        ...

    async def base(self, caller: Caller, knowledge_base_id: str) -> BaseEntry:
        """One knowledge base."""
        ...

    async def check_own(self, caller: Caller, knowledge_base_id: str) -> None:
        """Refuse one that the caller may not change."""
        ...

    async def rename(
        self, caller: Caller, knowledge_base_id: str, name: str | None, description: str | None
    ) -> BaseEntry:
        """Change its name or description; None leaves it."""
        ...

    async def remove(self, caller: Caller, knowledge_base_id: str) -> None:
        """Delete it with a receipt. Raises Conflict while pipelines of the caller use it."""
        ...

    async def documents(
        self, caller: Caller, knowledge_base_id: str, page: CursorPage, status: str | None = None
    ) -> tuple[Sequence[CatalogDocument], bool]:
        """A page of the documents that no newer version has replaced, and whether there are more."""
        ...

    async def document(self, caller: Caller, knowledge_base_id: str, key_or_id: str) -> CatalogDocument:
        """The document with a plugin's key, or else with this id."""
        ...

    async def keyed(
        self, caller: Caller, keys: Sequence[str], knowledge_base_id: str | None = None
    ) -> Sequence[CatalogDocument]:
        """The documents with these plugins' keys, in one knowledge base or in all that the caller sees."""
        ...

    async def by_ids(self, caller: Caller, document_ids: Sequence[str]) -> Mapping[str, CatalogDocument]:
        """Those of these documents that the caller may read, by id."""
        ...

    async def original(self, caller: Caller, entry: CatalogDocument) -> Path:
        """A file with the original bytes of a document. Raises Unavailable if the store has lost it."""
        ...

    async def check_fields(
        self,
        caller: Caller,
        knowledge_base_id: str,
        values: Mapping[str, Any],
        kinds: Mapping[str, FieldKind],
    ) -> None:
        """Declare the fields that the knowledge base lacks, of these kinds, and refuse values that they can't
        have. Raises Unprocessable with the field as its place: ``body``, the name.
        """
        ...

    async def set_fields(
        self,
        caller: Caller,
        knowledge_base_id: str,
        document_id: str,
        values: Mapping[str, Any],
        kinds: Mapping[str, FieldKind],
    ) -> CatalogDocument:
        """Let these be all the values that people have set of a document; what a file or source says stays.

        Before that, they are checked, and fields declared, as `check_fields` does.
        """
        ...


CATALOG: ResourceKey[DocumentCatalog] = ResourceKey("catalog of documents")
