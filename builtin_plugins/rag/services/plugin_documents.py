"""Documents that other plugins add and delete."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import suppress

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from builtin_plugins.documents.api import PARSERS
from builtin_plugins.rag.api import PluginDocument
from builtin_plugins.rag.errors import (
    DocumentNotFound,
    EmptyDocument,
    KnowledgeBaseNotFound,
    NotOwner,
    UnsupportedDocument,
)
from builtin_plugins.rag.metadata.editing import IncomingMetadata
from builtin_plugins.rag.models import Document
from builtin_plugins.rag.schemas import KnowledgeBaseCreate, Visibility
from builtin_plugins.rag.services import documents, knowledge_bases, loading
from builtin_plugins.rag.services.embedding import check_embedding_model
from builtin_plugins.rag.services.identities import (
    CURRENT,
    LONGEST_PATH,
    Replacement,
    identity_at,
    identity_for,
    latest,
    members_of,
)
from builtin_plugins.rag.services.records import Arrived
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Caller, Scope, Unit, Unprocessable, scope_of

_MEGABYTE = 1024 * 1024


async def open_knowledge_base(caller: Caller, kb_id: str | None, name: str, description: str) -> str:
    """Implements the hook of the same name."""
    if kb_id is not None:
        with suppress(KnowledgeBaseNotFound, NotOwner):
            await documents.check_upload(caller, kb_id)
            return kb_id
    visibility: Visibility = "shared" if caller.id is None else "private"
    body = KnowledgeBaseCreate(name=name, description=description, visibility=visibility)
    model = await check_embedding_model(caller.platform, body.embedding_model)
    return (await knowledge_bases.create(caller, body, model)).id


async def store_document(caller: Caller, knowledge_base_id: str, filename: str, content: bytes) -> str:
    """Implements the hook of the same name."""
    return await _store(caller, knowledge_base_id, filename, _whole(content), documents.PLAIN)


async def put_document(caller: Caller, knowledge_base_id: str, document: PluginDocument) -> str:
    """Implements the hook of the same name."""
    placing = Replacement(identity_for(document.key))
    guarding, metadata = documents.Guarding(document.readers), document.metadata
    incoming = None if metadata is None else IncomingMetadata(metadata, origin="source")
    return await _store(
        caller, knowledge_base_id, document.filename, document.content, placing, guarding, incoming
    )


async def _store(
    caller: Caller,
    knowledge_base_id: str,
    filename: str,
    content: AsyncIterator[bytes],
    placing: Replacement,
    guarding: documents.Guarding | None = None,
    incoming: IncomingMetadata | None = None,
) -> str:
    await documents.check_upload(caller, knowledge_base_id)
    platform = caller.platform
    limit = platform.settings_of(RagSettings).max_upload_size_mb * _MEGABYTE
    staged = await platform.blobs.stage(content, limit)
    try:
        if staged.size == 0:
            raise EmptyDocument(
                [{"type": "value_error", "loc": ["content"], "msg": "it is empty", "input": None}]
            )
        parsers = platform.resource(PARSERS)
        content_type = await parsers.detect(staged.path, filename)
        if content_type is None:
            raise UnsupportedDocument(await parsers.why_refused(staged.path))
        arrived = Arrived(staged, filename, content_type)
        record, _ = await documents.add(
            caller, knowledge_base_id, arrived, placing, incoming=incoming, guarding=guarding
        )
    finally:
        staged.discard()
    return record.document_id


async def rename_document(caller: Caller, knowledge_base_id: str, key: str, filename: str) -> bool:
    """Implements the hook of the same name."""
    scope = await scope_of(caller.platform, caller.principal)

    def write(unit: Unit) -> bool:
        loading.hold_own(unit.session, scope, knowledge_base_id)
        document = latest(unit.session, knowledge_base_id, identity_for(key))
        if document is not None:
            document.filename = filename
        return document is not None

    return await caller.platform.database.write(write)


async def drop_document(caller: Caller, knowledge_base_id: str, key: str) -> bool:
    """Implements the hook of the same name."""
    dropped = False
    while (document_id := await caller.platform.database.read(_one_of, knowledge_base_id, key)) is not None:
        await documents.remove_kept(caller, knowledge_base_id, document_id)
        dropped = True
    return dropped


def _one_of(session: Session, base_id: str, key: str) -> str | None:
    """A document under a key that can be deleted next: first what came out of it, then itself."""
    document = latest(session, base_id, identity_for(key))
    while document is not None:
        inside = session.scalar(select(Document).where(members_of(document), CURRENT).limit(1))
        if inside is None or inside.id == document.id:
            return document.id
        document = inside
    return None


async def release_document(caller: Caller, knowledge_base_id: str, key: str, path: str) -> bool:
    """Implements the hook of the same name."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.write(_release, scope, knowledge_base_id, key, path)


def _release(unit: Unit, scope: Scope, base_id: str, key: str, path: str) -> bool:
    loading.hold_own(unit.session, scope, base_id)
    before = identity_for(key)
    mine = or_(Document.identity == before, Document.identity.startswith(f"{before}!/", autoescape=True))
    rows = unit.session.scalars(select(Document).where(Document.knowledge_base_id == base_id, mine)).all()
    after = _free_path(unit.session, base_id, path)
    for row in rows:
        row.identity = (after + (row.identity or "").removeprefix(before))[:LONGEST_PATH]
    return bool(rows)


def _free_path(session: Session, base_id: str, path: str) -> str:
    """The identity of a path, or of one like it if another document has that already."""
    for number in range(1, 1000):
        with suppress(Unprocessable):
            identity = identity_at(path if number == 1 else f"{number}/{path}")
            if latest(session, base_id, identity) is None:
                return identity
    return identity_at(f"released/{uuid.uuid4()}")


async def delete_document(caller: Caller, knowledge_base_id: str, document_id: str) -> bool:
    """Implements the hook of the same name."""
    try:
        await documents.remove(caller, knowledge_base_id, document_id)
    except (KnowledgeBaseNotFound, DocumentNotFound):
        return False
    return True


async def _whole(content: bytes) -> AsyncIterator[bytes]:
    yield content
