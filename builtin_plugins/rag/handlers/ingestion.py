"""Routes of a knowledge base's ingestion as a whole."""

from __future__ import annotations

from builtin_plugins.rag.errors import KnowledgeBaseNotFound, NotOwner
from builtin_plugins.rag.schemas_ingestion import IngestionChanged, IngestionOut
from builtin_plugins.rag.services import ingestion as service
from kernel.sdk import AUTHENTICATED, Context, RouteTable

routes = RouteTable("Documents")

_PATH = "/knowledge-bases/{kb_id:uuid}/ingestion"


@routes.get(
    _PATH,
    access=AUTHENTICATED,
    returns=IngestionOut,
    errors=(KnowledgeBaseNotFound,),
    token_scopes=("ask",),
)
async def ingestion(ctx: Context, kb_id: str) -> IngestionOut:
    """Show how far a knowledge base's documents have got: counts, place in the queue, rate, time left."""
    return await service.show(ctx.caller, kb_id)


@routes.post(
    f"{_PATH}/cancel",
    access=AUTHENTICATED,
    returns=IngestionChanged,
    errors=(KnowledgeBaseNotFound, NotOwner),
)
async def cancel(ctx: Context, kb_id: str) -> IngestionChanged:
    """Cancel all documents that are being processed. They become `failed` and can be retried."""
    return IngestionChanged(documents=await service.cancel_all(ctx.caller, kb_id))


@routes.post(
    f"{_PATH}/retry", access=AUTHENTICATED, returns=IngestionChanged, errors=(KnowledgeBaseNotFound, NotOwner)
)
async def retry(ctx: Context, kb_id: str) -> IngestionChanged:
    """Process all failed documents again, from the stored files."""
    return IngestionChanged(documents=await service.retry_failed(ctx.caller, kb_id))
