"""Routes of vector stores and searches in them."""

from __future__ import annotations

from typing import Any, Final

from builtin_plugins.inference.api import OPENAI_ERRORS
from builtin_plugins.openai_files.handlers.pages import page_fields
from builtin_plugins.openai_files.handlers.store_files import PUT_ERRORS
from builtin_plugins.openai_files.schemas import (
    BatchCreate,
    CursorQuery,
    DeletedOut,
    SearchPage,
    StoreCreate,
    StoreOut,
    StorePage,
    StoreSearch,
    StoreUpdate,
)
from builtin_plugins.openai_files.services import batches, searching
from builtin_plugins.openai_files.services import stores as service
from builtin_plugins.openai_files.services.retries import Attempt, id_for
from builtin_plugins.rag import api as rag
from kernel.sdk import AUTHENTICATED, Context, RouteTable, Unavailable, permission

routes = RouteTable("Vector stores", service="orchestrator")
aliases = RouteTable("Vector stores")

_ANY: Final = {"access": AUTHENTICATED, "error_format": OPENAI_ERRORS}
_CREATE: Final[dict[str, Any]] = {
    "access": permission(rag.KB_CREATE),
    "error_format": OPENAI_ERRORS,
    "body": StoreCreate,
    "returns": StoreOut,
    "errors": PUT_ERRORS,
    "long": True,
}
_LIST: Final[dict[str, Any]] = {
    **_ANY,
    "query": CursorQuery,
    "returns": StorePage,
    "token_scopes": ("ask",),
}
_SHOW: Final[dict[str, Any]] = {
    **_ANY,
    "returns": StoreOut,
    "errors": (rag.KnowledgeBaseNotFound,),
    "token_scopes": ("ask",),
}
_UPDATE: Final[dict[str, Any]] = {
    **_ANY,
    "body": StoreUpdate,
    "returns": StoreOut,
    "errors": (rag.KnowledgeBaseNotFound, rag.NotOwner),
}
_DELETE: Final[dict[str, Any]] = {
    **_ANY,
    "returns": DeletedOut,
    "errors": (rag.KnowledgeBaseNotFound, rag.NotOwner, rag.DependentPipelines),
}
_SEARCH: Final[dict[str, Any]] = {
    **_ANY,
    "body": StoreSearch,
    "returns": SearchPage,
    "errors": (rag.KnowledgeBaseNotFound, Unavailable),
    "long": True,
    "token_scopes": ("ask",),
}
_ONE: Final = "vector_stores/{vector_store_id}"


@aliases.post("/v1/vector_stores", **_CREATE)
@routes.post("/v1/ai/vector_stores", **_CREATE)
async def create_vector_store(ctx: Context, body: StoreCreate) -> StoreOut:
    """Create a vector store, which is a private knowledge base, and put files into it."""
    uploads = await batches.files_of(ctx.caller, BatchCreate(file_ids=body.file_ids)) if body.file_ids else []
    base_id = await id_for(ctx.caller, Attempt.of(ctx.request.headers), body)
    store = await service.create(ctx.caller, body, base_id)
    if not uploads:
        return store
    await batches.add(ctx.caller, store.id, uploads, base_id)
    return await service.show(ctx.caller, store.id)


@aliases.get("/v1/vector_stores", **_LIST)
@routes.get("/v1/ai/vector_stores", **_LIST)
async def list_vector_stores(ctx: Context, query: CursorQuery) -> StorePage:
    """List the vector stores: the knowledge bases that the caller can see, newest first."""
    return StorePage(**page_fields(*await service.list_page(ctx.caller, query)))


@aliases.get(f"/v1/{_ONE}", **_SHOW)
@routes.get(f"/v1/ai/{_ONE}", **_SHOW)
async def get_vector_store(ctx: Context, vector_store_id: str) -> StoreOut:
    """Show a vector store. Its id is `vs_` and the knowledge base's, which is understood as well."""
    return await service.show(ctx.caller, vector_store_id)


@aliases.post(f"/v1/{_ONE}", **_UPDATE)
@routes.post(f"/v1/ai/{_ONE}", **_UPDATE)
async def update_vector_store(ctx: Context, vector_store_id: str, body: StoreUpdate) -> StoreOut:
    """Change a vector store's name or metadata."""
    return await service.update(ctx.caller, vector_store_id, body)


@aliases.delete(f"/v1/{_ONE}", **_DELETE)
@routes.delete(f"/v1/ai/{_ONE}", **_DELETE)
async def delete_vector_store(ctx: Context, vector_store_id: str) -> DeletedOut:
    """Delete a vector store: its knowledge base with all documents. Uploaded files stay."""
    return DeletedOut(id=await service.remove(ctx.caller, vector_store_id), object="vector_store.deleted")


@aliases.post(f"/v1/{_ONE}/search", **_SEARCH)
@routes.post(f"/v1/ai/{_ONE}/search", **_SEARCH)
async def search_vector_store(ctx: Context, vector_store_id: str, body: StoreSearch) -> SearchPage:
    """Search a vector store; filters are part of the search."""
    return await searching.search(ctx.caller, vector_store_id, body)
