"""Knowledge bases and documents for other protocols (`api.CATALOG`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.catalog import BaseEntry, CatalogDocument
from builtin_plugins.rag.cursors import CursorPage, read_cursor_page
from builtin_plugins.rag.errors import BuiltInField, DocumentNotFound
from builtin_plugins.rag.metadata import declaring, editing
from builtin_plugins.rag.metadata.kinds import FieldKind, nfc
from builtin_plugins.rag.metadata.rendering import load_metadata
from builtin_plugins.rag.metadata.rules import queue_rules
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.rights.reading import readable
from builtin_plugins.rag.schemas import KnowledgeBaseCreate, KnowledgeBaseUpdate
from builtin_plugins.rag.schemas_metadata import FieldPut
from builtin_plugins.rag.services import documents, knowledge_bases, loading
from builtin_plugins.rag.services.embedding import check_embedding_model
from builtin_plugins.rag.services.identities import CURRENT, identity_for, key_in
from kernel.sdk import Caller, Platform, Scope, Unprocessable, scope_of


class StoredCatalog:
    """`DocumentCatalog` over this plugin's tables."""

    async def create(
        self, caller: Caller, body: KnowledgeBaseCreate, base_id: str | None = None
    ) -> BaseEntry:
        """See `DocumentCatalog`."""
        model = await check_embedding_model(caller.platform, body.embedding_model)
        base = await knowledge_bases.create(caller, body, model, base_id)
        if base_id is not None:
            return await self.base(caller, base_id)
        return BaseEntry(base.id, base.name, base.description, base.created_at)

    async def bases(self, caller: Caller, page: CursorPage) -> tuple[Sequence[BaseEntry], bool]:
        """See `DocumentCatalog`."""
        scope = await scope_of(caller.platform, caller.principal)

        def read(session: Session) -> tuple[Sequence[BaseEntry], bool]:
            visible = scope.sees(KnowledgeBase)
            rows, more = read_cursor_page(
                session, KnowledgeBase, KnowledgeBase.created_at, KnowledgeBase.id, visible, page
            )
            return _base_entries(session, scope, rows), more

        return await caller.platform.database.read(read)

    async def base(self, caller: Caller, knowledge_base_id: str) -> BaseEntry:
        """See `DocumentCatalog`."""
        scope = await scope_of(caller.platform, caller.principal)

        def read(session: Session) -> BaseEntry:
            base = knowledge_bases.find(session, scope, knowledge_base_id)
            return _base_entries(session, scope, [base])[0]

        return await caller.platform.database.read(read)

    async def check_own(self, caller: Caller, knowledge_base_id: str) -> None:
        """See `DocumentCatalog`."""
        await loading.own_knowledge_base(caller, knowledge_base_id)

    async def rename(
        self, caller: Caller, knowledge_base_id: str, name: str | None, description: str | None
    ) -> BaseEntry:
        """See `DocumentCatalog`."""
        values = {"name": name, "description": description}
        change = KnowledgeBaseUpdate(**{key: value for key, value in values.items() if value is not None})
        await knowledge_bases.update(caller, knowledge_base_id, change, queue_rules)
        return await self.base(caller, knowledge_base_id)

    async def remove(self, caller: Caller, knowledge_base_id: str) -> None:
        """See `DocumentCatalog`."""
        await knowledge_bases.remove(caller, knowledge_base_id, ())

    async def documents(
        self, caller: Caller, knowledge_base_id: str, page: CursorPage, status: str | None = None
    ) -> tuple[Sequence[CatalogDocument], bool]:
        """See `DocumentCatalog`."""
        scope = await scope_of(caller.platform, caller.principal)

        def read(session: Session) -> tuple[Sequence[Document], bool]:
            knowledge_bases.find(session, scope, knowledge_base_id)
            mine = (Document.knowledge_base_id == knowledge_base_id) & CURRENT & readable(scope)
            only = [] if status is None else [Document.status == status]
            return read_cursor_page(session, Document, Document.uploaded_at, Document.id, mine, page, *only)

        rows, more = await caller.platform.database.read(read)
        return await _entries(caller, rows), more

    async def document(self, caller: Caller, knowledge_base_id: str, key_or_id: str) -> CatalogDocument:
        """See `DocumentCatalog`."""
        await loading.knowledge_base(caller, knowledge_base_id)
        named = (Document.identity == identity_for(key_or_id)) | (Document.id == key_or_id)
        rows = await _readable_documents(
            caller, named, Document.knowledge_base_id == knowledge_base_id, CURRENT
        )
        if not rows:
            raise DocumentNotFound()
        return (await _entries(caller, rows[-1:]))[0]

    async def keyed(
        self, caller: Caller, keys: Sequence[str], knowledge_base_id: str | None = None
    ) -> Sequence[CatalogDocument]:
        """See `DocumentCatalog`."""
        mine = [] if knowledge_base_id is None else [Document.knowledge_base_id == knowledge_base_id]
        named = Document.identity.in_([identity_for(key) for key in keys])
        return await _entries(caller, await _readable_documents(caller, named, CURRENT, *mine))

    async def by_ids(self, caller: Caller, document_ids: Sequence[str]) -> Mapping[str, CatalogDocument]:
        """See `DocumentCatalog`."""
        rows = await _readable_documents(caller, Document.id.in_(document_ids))
        return {one.id: one for one in await _entries(caller, rows)}

    async def original(self, caller: Caller, entry: CatalogDocument) -> Path:
        """See `DocumentCatalog`."""
        return (await documents.content(caller, entry.knowledge_base_id, entry.id))[1]

    async def check_fields(
        self,
        caller: Caller,
        knowledge_base_id: str,
        values: Mapping[str, Any],
        kinds: Mapping[str, FieldKind],
    ) -> None:
        """See `DocumentCatalog`."""
        await self.check_own(caller, knowledge_base_id)
        names = {one.name for one in await declaring.list_fields(caller, knowledge_base_id)}
        for name in values:
            if nfc(name) not in names:
                await _declare(caller, knowledge_base_id, name, kinds[name])
        await editing.check(caller, knowledge_base_id, values)

    async def set_fields(
        self,
        caller: Caller,
        knowledge_base_id: str,
        document_id: str,
        values: Mapping[str, Any],
        kinds: Mapping[str, FieldKind],
    ) -> CatalogDocument:
        """See `DocumentCatalog`."""
        await self.check_fields(caller, knowledge_base_id, values, kinds)
        present = await editing.show(caller, knowledge_base_id, document_id)
        by_hand = (name for name, origin in present.origins.items() if origin == "hand")
        gone = dict.fromkeys(by_hand)
        changes = {**gone, **{nfc(name): value for name, value in values.items()}}
        if changes:
            await editing.change(caller, knowledge_base_id, document_id, changes)
        return await self.document(caller, knowledge_base_id, document_id)


async def _declare(caller: Caller, base_id: str, name: str, kind: FieldKind) -> None:
    try:
        await declaring.declare(caller, base_id, name, FieldPut(kind=kind))
    except Unprocessable as error:
        raise Unprocessable([{**one, "loc": ["body", name]} for one in error.detail]) from None
    except BuiltInField as error:
        raise Unprocessable.field(("body", name), str(error.detail)) from None


def _base_entries(session: Session, scope: Scope, rows: Sequence[KnowledgeBase]) -> list[BaseEntry]:
    counts: dict[str, dict[str, int]] = {}
    sizes: dict[str, int] = {}
    query = (
        select(Document.knowledge_base_id, Document.status, func.count(), func.sum(Document.size_bytes))
        .where(Document.knowledge_base_id.in_([row.id for row in rows]), CURRENT, readable(scope))
        .group_by(Document.knowledge_base_id, Document.status)
    )
    for base_id, status, count, size in session.execute(query):
        counts.setdefault(base_id, {})[status] = int(count)
        sizes[base_id] = sizes.get(base_id, 0) + int(size)
    return [
        BaseEntry(
            row.id, row.name, row.description, row.created_at, counts.get(row.id, {}), sizes.get(row.id, 0)
        )
        for row in rows
    ]


async def _readable_documents(caller: Caller, *conditions: ColumnElement[bool]) -> Sequence[Document]:
    """The documents that the caller may read, oldest first."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_read_readable, scope, conditions)


def _read_readable(
    session: Session, scope: Scope, conditions: Sequence[ColumnElement[bool]]
) -> Sequence[Document]:
    query = (
        select(Document)
        .join(KnowledgeBase, KnowledgeBase.id == Document.knowledge_base_id)
        .where(scope.sees(KnowledgeBase), readable(scope), *conditions)
        .order_by(Document.uploaded_at, Document.version, Document.id)
    )
    return session.scalars(query).all()


async def _entries(caller: Caller, rows: Sequence[Document]) -> list[CatalogDocument]:
    metadata = await load_metadata(caller, [row.id for row in rows])
    return [
        CatalogDocument(
            row.id,
            row.knowledge_base_id,
            row.filename,
            row.size_bytes,
            row.sha256,
            row.status,
            row.error,
            row.uploaded_at,
            key_in(row.identity),
            metadata.get(row.id, {}),
        )
        for row in rows
    ]


@asynccontextmanager
async def open_catalog(_platform: Platform) -> AsyncIterator[StoredCatalog]:
    """The resource `api.CATALOG`."""
    yield StoredCatalog()
