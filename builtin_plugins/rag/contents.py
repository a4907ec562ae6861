"""A knowledge base with all that is in it, for a plugin that carries it elsewhere or brings it here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from kernel.sdk import ResourceKey

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from builtin_plugins.rag.schemas_metadata import FieldPut, RuleIn
    from builtin_plugins.rag.schemas_transfer import KnowledgeBaseSettings
    from kernel.sdk import Scope, Unit
    from kernel.sdk.storage import Staged


@dataclass(frozen=True, slots=True)
class WholeBase:
    """A knowledge base. Its passages are in the vector store's `collection`, a group for each document.

    `revision` counts changes of the embedding model: vectors of different revisions must not be mixed.
    """

    id: str
    name: str
    description: str
    embedding_model: str
    llm_model: str | None
    chunk_size: int
    chunk_overlap: int
    graph: bool
    revision: int
    collection: str
    date_field: str | None = None
    accept_dates: bool = False


@dataclass(frozen=True, slots=True)
class WholeDocument:
    """A document without its passages. `has_tree`: whether summaries are made of it."""

    id: str
    filename: str
    content_type: str
    size_bytes: int
    sha256: str
    page_count: int | None
    notice: str | None
    parent_id: str | None
    uploaded_at: datetime
    has_tree: bool
    identity: str | None = None
    """Its path or the uploader's id, as `rag` stores it."""
    metadata: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    """The values of its fields, by who says so, with what is only proposed, but for those that rules give and
    those that are accounts."""


@dataclass(frozen=True, slots=True)
class ArrivedDocument:
    """The document that now has these bytes. `wants_passages`: it is new, or not complete yet."""

    id: str
    wants_passages: bool


@dataclass(frozen=True, slots=True)
class DeclaredMetadata:
    """The fields and rules of a knowledge base, as the routes for them take them."""

    fields: Mapping[str, FieldPut] = field(default_factory=dict)
    rules: Sequence[RuleIn] = ()


class BaseContents(Protocol):
    """Takes a knowledge base out, or brings one in: row by row, within the caller's units."""

    def find_own(self, unit: Unit, scope: Scope, knowledge_base_id: str) -> WholeBase:
        """A knowledge base that a scope may change. Raises KnowledgeBaseNotFound, NotOwner."""
        ...

    def require_readable(self, session: Session, scope: Scope, knowledge_base_id: str) -> None:
        """Raise UnreadableDocuments if there are documents that the scope may not read."""
        ...

    def completed(self, session: Session, scope: Scope, knowledge_base_id: str) -> Sequence[WholeDocument]:
        """The completed documents of a knowledge base that the scope may read, oldest first."""
        ...

    def may_read(self, session: Session, scope: Scope, document_id: str) -> bool:
        """Whether the scope may still read one of these documents."""
        ...

    def declared(self, session: Session, knowledge_base_id: str) -> DeclaredMetadata:
        """The fields and rules of a knowledge base."""
        ...

    def declare(self, unit: Unit, knowledge_base_id: str, declared: DeclaredMetadata) -> None:
        """Give it these fields and rules, unless it has some. Those that it can't have are left out."""
        ...

    def create(
        self,
        unit: Unit,
        knowledge_base_id: str,
        settings: KnowledgeBaseSettings,
        owner_id: int,
        *,
        graph: bool,
    ) -> None:
        """A private knowledge base whose documents are still to come; a graph only if one is built here."""
        ...

    def hold(
        self, unit: Unit, knowledge_base_id: str, document_id: str | None = None, *, to_change: bool = False
    ) -> WholeBase:
        """Lock a knowledge base, and a document, against deletion until the unit ends; also against others
        that hold it, `to_change` it.

        Raises KnowledgeBaseNotFound, DocumentNotFound.
        """
        ...

    def begin(self, unit: Unit, knowledge_base_id: str) -> None:
        """Documents come in from now on: from here to `end`, it is remembered which were deleted.

        Raises KnowledgeBaseNotFound.
        """
        ...

    def add(
        self, unit: Unit, knowledge_base_id: str, document: WholeDocument, staged: Staged
    ) -> ArrivedDocument:
        """Keep a document's original, and wait for its passages. The same bytes are the same document.

        Raises DocumentNotFound for one that was deleted since `begin`: the unit must then be rolled back.
        """
        ...

    def publish(self, unit: Unit, knowledge_base_id: str, document_id: str) -> None:
        """All passages are staged in the vector store: from now on, they are found."""
        ...

    def end(self, unit: Unit, knowledge_base_id: str) -> None:
        """All documents are there. Raises KnowledgeBaseNotFound."""
        ...

    def remove(self, unit: Unit, knowledge_base_id: str) -> None:
        """Delete the knowledge base with all that is in it, if it is still there."""
        ...


CONTENTS: ResourceKey[BaseContents] = ResourceKey("contents of knowledge bases")
