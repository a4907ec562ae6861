"""Routes that carry a knowledge base from one platform to another, part of the service `rag-pipeline`."""

from __future__ import annotations

from contextlib import aclosing

from aiohttp import web

from builtin_plugins.rag.api import (
    KB_CREATE,
    EmptyDocument,
    KnowledgeBaseNotFound,
    NotOwner,
    UnreadableDocuments,
)
from builtin_plugins.rag_exchange import exporting, importing
from builtin_plugins.rag_exchange.importing import ImportStarted
from builtin_plugins.rag_exchange.settings import RagExchangeSettings
from kernel.sdk import (
    AUTHENTICATED,
    BadRequest,
    Context,
    InsufficientStorage,
    PayloadTooLarge,
    RouteTable,
    Unavailable,
    UnsupportedMediaType,
    Upload,
    permission,
    receive_file,
)

routes = RouteTable("Knowledge bases", service="rag-pipeline")

_MADE_BY = "0.1.0"


@routes.get(
    "/knowledge-bases/{kb_id:uuid}/export",
    access=AUTHENTICATED,
    media_type="application/zip",
    returns=bytes,
    errors=(KnowledgeBaseNotFound, NotOwner, UnreadableDocuments),
    long=True,
)
async def export(ctx: Context, kb_id: str) -> web.StreamResponse:
    """Download a knowledge base as one file: settings, originals, passages, vectors and evaluation sets."""
    base = await exporting.find(ctx.caller, kb_id)
    response = await ctx.start_download(f"{base.name[:100]}.kb.zip", "application/zip")
    async with aclosing(exporting.pieces(ctx.caller, base, _MADE_BY)) as pieces:
        async for piece in pieces:
            await response.write(piece)
    await response.write_eof()
    return response


@routes.post(
    "/knowledge-bases/import",
    access=permission(KB_CREATE),
    body=Upload(
        file="A file from `GET /v1/rag/knowledge-bases/{kb_id}/export`.",
        example={"file": "Travel rules.kb.zip"},
    ),
    returns=ImportStarted,
    status=202,
    errors=(
        *(EmptyDocument, UnsupportedMediaType, PayloadTooLarge, BadRequest),
        *(InsufficientStorage, Unavailable),
    ),
    long=True,
)
async def import_file(ctx: Context) -> ImportStarted:
    """Create a knowledge base from an exported file: 202 once the file is stored durably.

    It belongs to the caller and is private. Vectors are kept if this server has the same embedding
    engine; otherwise the passages are embedded again.
    """
    received = await receive_file(ctx, ctx.settings_of(RagExchangeSettings).max_import_size_mb)
    try:
        return await importing.start(ctx.caller, received.staged)
    finally:
        received.staged.discard()
