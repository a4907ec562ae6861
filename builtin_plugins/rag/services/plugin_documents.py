"""Documents that other plugins add and delete."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

from builtin_plugins.documents.api import PARSERS
from builtin_plugins.rag.errors import (
    DocumentNotFound,
    EmptyDocument,
    KnowledgeBaseNotFound,
    NotOwner,
    UnsupportedDocument,
)
from builtin_plugins.rag.schemas import KnowledgeBaseCreate, Visibility
from builtin_plugins.rag.services import documents, knowledge_bases
from builtin_plugins.rag.services.embedding import check_embedding_model
from builtin_plugins.rag.services.records import Arrived
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Caller

_MEGABYTE = 1024 * 1024


async def open_knowledge_base(caller: Caller, known: str | None, name: str, description: str) -> str:
    """Implements the hook of the same name."""
    if known is not None:
        with suppress(KnowledgeBaseNotFound, NotOwner):
            await documents.check_upload(caller, known)
            return known
    visibility: Visibility = "shared" if caller.id is None else "private"
    wanted = KnowledgeBaseCreate(name=name, description=description, visibility=visibility)
    model = await check_embedding_model(caller.platform, wanted.embedding_model)
    return (await knowledge_bases.create(caller, wanted, model)).id


async def store_document(caller: Caller, knowledge_base_id: str, filename: str, content: bytes) -> str:
    """Implements the hook of the same name."""
    if not content:
        raise EmptyDocument(
            [{"type": "value_error", "loc": ["content"], "msg": "it is empty", "input": None}]
        )
    await documents.check_upload(caller, knowledge_base_id)
    platform = caller.platform
    limit = platform.settings_of(RagSettings).max_upload_size_mb * _MEGABYTE
    staged = await platform.blobs.stage(_whole(content), limit)
    try:
        parsers = platform.resource(PARSERS)
        content_type = await parsers.detect(staged.path, filename)
        if content_type is None:
            raise UnsupportedDocument(await parsers.why_refused(staged.path))
        arrived = Arrived(staged, filename, content_type)
        record, _ = await documents.add(caller, knowledge_base_id, arrived)
    finally:
        staged.discard()
    return record.document_id


async def delete_document(caller: Caller, knowledge_base_id: str, document_id: str) -> bool:
    """Implements the hook of the same name."""
    try:
        await documents.remove(caller, knowledge_base_id, document_id)
    except (KnowledgeBaseNotFound, DocumentNotFound):
        return False
    return True


async def _whole(content: bytes) -> AsyncIterator[bytes]:
    yield content
