"""Rows of a knowledge base that is carried elsewhere or brought here (`api.CONTENTS`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag.contents import ArrivedDocument, DeclaredMetadata, WholeBase, WholeDocument
from builtin_plugins.rag.errors import DocumentNotFound, KnowledgeBaseNotFound, UnreadableDocuments
from builtin_plugins.rag.events import DocumentIngested
from builtin_plugins.rag.metadata.carrying import carried_values, declare_all, declared_in, store_carried
from builtin_plugins.rag.metadata.changes import raise_version
from builtin_plugins.rag.metadata.fields import fields_of, known_date_field
from builtin_plugins.rag.metadata.publishing import settle_metadata
from builtin_plugins.rag.models import TRASH, Document, KnowledgeBase
from builtin_plugins.rag.rights.reading import readable
from builtin_plugins.rag.schemas_transfer import KnowledgeBaseSettings
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.rag.services.deletions import forget_ended, is_deleted
from builtin_plugins.rag.services.graphs import builds_graphs, tell_of_graph
from builtin_plugins.rag.services.identities import is_of_plugin, latest
from builtin_plugins.rag.services.language_detection import TELL_LANGUAGES
from builtin_plugins.rag.services.records import find_same, note_outcome
from builtin_plugins.rag.services.removal import delete_base
from builtin_plugins.rag.services.usage import admit
from builtin_plugins.rag.settings import RagSettings
from builtin_plugins.rag.trees.job import queue_one
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import NoPayload, Platform, Scope, Unit, utc_now
from kernel.sdk.storage import Staged


class StoredContents:
    """`BaseContents` over this plugin's tables."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    def find_own(self, unit: Unit, scope: Scope, knowledge_base_id: str) -> WholeBase:
        """See `BaseContents`."""
        return _whole(knowledge_bases.find_own(unit.session, scope, knowledge_base_id))

    def require_readable(self, session: Session, scope: Scope, knowledge_base_id: str) -> None:
        """See `BaseContents`."""
        mine = Document.knowledge_base_id == knowledge_base_id
        closed = ~readable(scope) & (Document.audience_id != TRASH)
        if session.scalar(select(Document.id).where(mine, closed).limit(1)) is not None:
            raise UnreadableDocuments()

    def may_read(self, session: Session, scope: Scope, document_id: str) -> bool:
        """See `BaseContents`."""
        mine = Document.id == document_id
        return session.scalar(select(Document.id).where(mine, readable(scope))) is not None

    def completed(self, session: Session, scope: Scope, knowledge_base_id: str) -> Sequence[WholeDocument]:
        """See `BaseContents`."""
        mine = (Document.knowledge_base_id == knowledge_base_id) & (Document.status == "completed")
        ordered = select(Document).where(mine, readable(scope)).order_by(Document.uploaded_at, Document.id)
        rows = session.scalars(ordered)
        documents = rows.all()
        metadata = carried_values(session, knowledge_base_id, [row.id for row in documents])
        return [_document(row, metadata.get(row.id, {})) for row in documents]

    def declared(self, session: Session, knowledge_base_id: str) -> DeclaredMetadata:
        """See `BaseContents`."""
        return declared_in(session, knowledge_base_id)

    def declare(self, unit: Unit, knowledge_base_id: str, declared: DeclaredMetadata) -> None:
        """See `BaseContents`."""
        base = _lock_base(unit, knowledge_base_id, to_change=True)
        declare_all(unit, knowledge_base_id, declared)
        base.date_field = known_date_field(fields_of(unit.session, base.id), base.date_field)

    def create(
        self,
        unit: Unit,
        knowledge_base_id: str,
        settings: KnowledgeBaseSettings,
        owner_id: int,
        *,
        graph: bool,
    ) -> None:
        """See `BaseContents`."""
        base = KnowledgeBase(
            id=knowledge_base_id,
            **settings.model_dump(include=set(KnowledgeBaseSettings.model_fields)),
            graph=graph and builds_graphs(self._platform),
            owner_id=owner_id,
            visibility="private",
            importing=True,
            created_at=utc_now(),
        )
        unit.session.add(base)
        unit.session.flush()
        if base.graph:
            tell_of_graph(self._platform, unit, base)

    def hold(
        self, unit: Unit, knowledge_base_id: str, document_id: str | None = None, *, to_change: bool = False
    ) -> WholeBase:
        """See `BaseContents`."""
        base = _lock_base(unit, knowledge_base_id, to_change=to_change)
        if document_id is not None:
            _row(unit, document_id)
        return _whole(base)

    def begin(self, unit: Unit, knowledge_base_id: str) -> None:
        """See `BaseContents`."""
        _lock_base(unit, knowledge_base_id, to_change=True).importing = True

    def add(
        self, unit: Unit, knowledge_base_id: str, document: WholeDocument, staged: Staged
    ) -> ArrivedDocument:
        """See `BaseContents`."""
        base = _lock_base(unit, knowledge_base_id)
        present: Document | None = unit.session.get(Document, document.id)
        if present is not None:
            return ArrivedDocument(document.id, present.status == "processing")
        identity = self._free(unit, base.id, document.identity)
        same = find_same(unit, base.id, document.sha256)
        if same is not None and self._is_one(unit, same, identity):
            return ArrivedDocument(same, wants_passages=False)
        row = Document(
            id=document.id,
            knowledge_base_id=base.id,
            filename=document.filename,
            content_type=document.content_type,
            size_bytes=document.size_bytes,
            sha256=document.sha256,
            status="processing",
            page_count=document.page_count,
            notice=document.notice,
            parent_id=document.parent_id,
            identity=identity,
            tree_wanted=document.has_tree,
            language_told=False,
            uploaded_at=document.uploaded_at,
        )
        admit(unit, self._platform.settings_of(RagSettings), base, row.size_bytes, queued=False)
        unit.session.add(row)
        unit.session.flush()
        if is_deleted(unit.session, base.id, document.sha256, None):
            raise DocumentNotFound
        self._platform.blobs.keep(unit, staged, row.holder)
        store_carried(unit, base.id, row.id, document.metadata)
        return ArrivedDocument(row.id, wants_passages=True)

    @staticmethod
    def _free(unit: Unit, base_id: str, identity: str | None) -> str | None:
        """The identity, unless an upload has taken it in the meantime, or it is of a plugin elsewhere."""
        if identity is None or is_of_plugin(identity) or latest(unit.session, base_id, identity) is not None:
            return None
        return identity

    @staticmethod
    def _is_one(unit: Unit, same: str, identity: str | None) -> bool:
        """Whether a document with the same bytes is the same: at each path is one of its own."""
        document = unit.session.get(Document, same)
        if identity is None or document is None:
            return document is not None
        if document.identity is None:
            document.identity = identity
            unit.session.flush()
            raise_version(unit.session, document.knowledge_base_id)
        return bool(document.identity == identity)

    def publish(self, unit: Unit, knowledge_base_id: str, document_id: str) -> None:
        """See `BaseContents`."""
        base, row = _lock_base(unit, knowledge_base_id), _row(unit, document_id)
        row.chunk_count = self._platform.resource(VECTORS).publish(unit, base.collection, row.id)
        row.status, row.completed_at = "completed", utc_now()
        settle_metadata(unit, base.id, [(row, None)])
        unit.emit(
            DocumentIngested(
                document_id=row.id,
                knowledge_base_id=base.id,
                owner_id=base.owner_id,
                filename=row.filename,
                chunk_count=row.chunk_count,
            )
        )
        note_outcome(unit, "success")
        if row.tree_wanted:
            queue_one(unit, row, base.owner_id)

    def end(self, unit: Unit, knowledge_base_id: str) -> None:
        """See `BaseContents`."""
        _lock_base(unit, knowledge_base_id, to_change=True).importing = False
        unit.session.flush()
        forget_ended(unit, self._platform, knowledge_base_id)
        unit.enqueue(TELL_LANGUAGES, NoPayload())

    def remove(self, unit: Unit, knowledge_base_id: str) -> None:
        """See `BaseContents`."""
        base: KnowledgeBase | None = unit.session.get(KnowledgeBase, knowledge_base_id, with_for_update=True)
        if base is not None:
            delete_base(unit, self._platform, base)


def _lock_base(unit: Unit, knowledge_base_id: str, *, to_change: bool = False) -> KnowledgeBase:
    mine = select(KnowledgeBase).where(KnowledgeBase.id == knowledge_base_id)
    base: KnowledgeBase | None = unit.session.scalar(mine.with_for_update(read=not to_change, key_share=True))
    if base is None:
        raise KnowledgeBaseNotFound
    return base


def _row(unit: Unit, document_id: str) -> Document:
    row: Document | None = unit.session.get(Document, document_id, with_for_update=True)
    if row is None:
        raise DocumentNotFound
    return row


def _whole(base: KnowledgeBase) -> WholeBase:
    values: dict[str, Any] = {field.name: getattr(base, field.name) for field in fields(WholeBase)}
    return WholeBase(**values)


def _document(row: Document, metadata: Mapping[str, Mapping[str, Sequence[str]]]) -> WholeDocument:
    return WholeDocument(
        id=row.id,
        filename=row.filename,
        content_type=row.content_type,
        size_bytes=row.size_bytes,
        sha256=row.sha256,
        page_count=row.page_count,
        notice=row.notice,
        parent_id=row.parent_id,
        uploaded_at=row.uploaded_at,
        has_tree=row.tree_built_at is not None,
        identity=row.identity,
        metadata=metadata,
    )


@asynccontextmanager
async def open_contents(platform: Platform) -> AsyncIterator[StoredContents]:
    """Open the resource `CONTENTS`."""
    yield StoredContents(platform)
