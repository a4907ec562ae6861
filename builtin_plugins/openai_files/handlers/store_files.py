"""Routes of the files in vector stores, alone and in batches."""

from __future__ import annotations

from typing import Any, Final

from builtin_plugins.inference.api import OPENAI_ERRORS
from builtin_plugins.openai_files.errors import BatchNotKnown, FileNotKnown
from builtin_plugins.openai_files.handlers.pages import page_fields
from builtin_plugins.openai_files.names import row_in
from builtin_plugins.openai_files.schemas import (
    BatchCreate,
    BatchOut,
    ContentPage,
    DeletedOut,
    StoreFileCreate,
    StoreFileOut,
    StoreFilePage,
    StoreFileQuery,
    StoreFileUpdate,
)
from builtin_plugins.openai_files.services import batches
from builtin_plugins.openai_files.services import store_files as service
from builtin_plugins.openai_files.services.retries import Attempt
from builtin_plugins.rag import api as rag
from kernel.sdk import (
    AUTHENTICATED,
    Context,
    InsufficientStorage,
    PayloadTooLarge,
    RouteTable,
    Unavailable,
)

routes = RouteTable("Files in vector stores", service="orchestrator")
aliases = RouteTable("Files in vector stores")

_ANY: Final = {"access": AUTHENTICATED, "error_format": OPENAI_ERRORS}
_MISSING: Final = (rag.KnowledgeBaseNotFound, FileNotKnown)
PUT_ERRORS: Final = (
    *(rag.KnowledgeBaseNotFound, FileNotKnown, rag.NotOwner, rag.UnsupportedDocument, rag.EmptyDocument),
    *(rag.StorageLimit, rag.QueueLimit, PayloadTooLarge, Unavailable, InsufficientStorage),
)
_ADD: Final[dict[str, Any]] = {
    **_ANY,
    "body": StoreFileCreate,
    "returns": StoreFileOut,
    "errors": PUT_ERRORS,
    "long": True,
}
_LIST: Final[dict[str, Any]] = {
    **_ANY,
    "query": StoreFileQuery,
    "returns": StoreFilePage,
    "errors": _MISSING,
    "token_scopes": ("ask",),
}
_SHOW: Final[dict[str, Any]] = {
    **_ANY,
    "returns": StoreFileOut,
    "errors": _MISSING,
    "token_scopes": ("ask",),
}
_UPDATE: Final[dict[str, Any]] = {
    **_ANY,
    "body": StoreFileUpdate,
    "returns": StoreFileOut,
    "errors": (*_MISSING, rag.NotOwner),
}
_CONTENT: Final[dict[str, Any]] = {
    **_ANY,
    "returns": ContentPage,
    "errors": (*_MISSING, PayloadTooLarge),
    "token_scopes": ("ask",),
}
_DELETE: Final[dict[str, Any]] = {
    **_ANY,
    "returns": DeletedOut,
    "errors": (*_MISSING, rag.NotOwner),
}
_BATCH: Final[dict[str, Any]] = {
    **_ANY,
    "body": BatchCreate,
    "returns": BatchOut,
    "errors": PUT_ERRORS,
    "long": True,
}
_SHOW_BATCH: Final[dict[str, Any]] = {
    **_ANY,
    "returns": BatchOut,
    "errors": (rag.KnowledgeBaseNotFound, BatchNotKnown),
    "token_scopes": ("ask",),
}
_CANCEL: Final[dict[str, Any]] = {
    **_ANY,
    "returns": BatchOut,
    "errors": (rag.KnowledgeBaseNotFound, BatchNotKnown, rag.NotOwner),
}
_LIST_BATCH: Final[dict[str, Any]] = {**_LIST, "errors": (rag.KnowledgeBaseNotFound, BatchNotKnown)}
_FILES: Final = "vector_stores/{vector_store_id}/files"
_FILE: Final = f"{_FILES}/{{file_id}}"
_BATCHES: Final = "vector_stores/{vector_store_id}/file_batches"
_ONE: Final = f"{_BATCHES}/{{batch_id}}"


@aliases.post(f"/v1/{_FILES}", **_ADD)
@routes.post(f"/v1/ai/{_FILES}", **_ADD)
async def attach_file(ctx: Context, vector_store_id: str, body: StoreFileCreate) -> StoreFileOut:
    """Put a file into a vector store; poll it until its status is no longer `in_progress`."""
    return await service.attach(ctx.caller, vector_store_id, body)


@aliases.get(f"/v1/{_FILES}", **_LIST)
@routes.get(f"/v1/ai/{_FILES}", **_LIST)
async def list_attached_files(ctx: Context, vector_store_id: str, query: StoreFileQuery) -> StoreFilePage:
    """List the files in a vector store: all documents of the knowledge base, however they came there."""
    return StoreFilePage(**page_fields(*await service.list_page(ctx.caller, vector_store_id, query)))


@aliases.get(f"/v1/{_FILE}", **_SHOW)
@routes.get(f"/v1/ai/{_FILE}", **_SHOW)
async def get_attached_file(ctx: Context, vector_store_id: str, file_id: str) -> StoreFileOut:
    """Show a file in a vector store."""
    return service.render(await service.find(ctx.caller, row_in(vector_store_id), file_id))


@aliases.post(f"/v1/{_FILE}", **_UPDATE)
@routes.post(f"/v1/ai/{_FILE}", **_UPDATE)
async def update_attached_file(
    ctx: Context, vector_store_id: str, file_id: str, body: StoreFileUpdate
) -> StoreFileOut:
    """Replace the attributes of a file. What the file says about itself stays."""
    return await service.update(ctx.caller, vector_store_id, file_id, body.attributes or {})


@aliases.delete(f"/v1/{_FILE}", **_DELETE)
@routes.delete(f"/v1/ai/{_FILE}", **_DELETE)
async def detach_file(ctx: Context, vector_store_id: str, file_id: str) -> DeletedOut:
    """Take a file out of a vector store; no later search finds it. An uploaded file itself stays."""
    removed = await service.remove(ctx.caller, vector_store_id, file_id)
    return DeletedOut(id=removed, object="vector_store.file.deleted")


@aliases.get(f"/v1/{_FILE}/content", **_CONTENT)
@routes.get(f"/v1/ai/{_FILE}/content", **_CONTENT)
async def get_attached_text(ctx: Context, vector_store_id: str, file_id: str) -> ContentPage:
    """Show the text of a file as it was read."""
    return await service.content(ctx.caller, vector_store_id, file_id)


@aliases.post(f"/v1/{_BATCHES}", **_BATCH)
@routes.post(f"/v1/ai/{_BATCHES}", **_BATCH)
async def create_file_batch(ctx: Context, vector_store_id: str, body: BatchCreate) -> BatchOut:
    """Put several files into a vector store."""
    attempt = Attempt.of(ctx.request.headers)
    return await batches.create(ctx.caller, vector_store_id, body, attempt)


@aliases.get(f"/v1/{_ONE}", **_SHOW_BATCH)
@routes.get(f"/v1/ai/{_ONE}", **_SHOW_BATCH)
async def get_file_batch(ctx: Context, vector_store_id: str, batch_id: str) -> BatchOut:
    """Show how far a batch is."""
    return await batches.show(ctx.caller, vector_store_id, batch_id)


@aliases.post(f"/v1/{_ONE}/cancel", **_CANCEL)
@routes.post(f"/v1/ai/{_ONE}/cancel", **_CANCEL)
async def cancel_file_batch(ctx: Context, vector_store_id: str, batch_id: str) -> BatchOut:
    """Take those files of a batch out of the vector store that are still to be read."""
    return await batches.cancel(ctx.caller, vector_store_id, batch_id)


@aliases.get(f"/v1/{_ONE}/files", **_LIST_BATCH)
@routes.get(f"/v1/ai/{_ONE}/files", **_LIST_BATCH)
async def list_batch_files(
    ctx: Context, vector_store_id: str, batch_id: str, query: StoreFileQuery
) -> StoreFilePage:
    """List the files of a batch."""
    page = await batches.list_page(ctx.caller, vector_store_id, batch_id, query)
    return StoreFilePage(**page_fields(*page))
