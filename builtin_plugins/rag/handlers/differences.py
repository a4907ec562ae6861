"""The route that compares two versions of a document, relative to the service root."""

from __future__ import annotations

from builtin_plugins.rag.errors import DocumentNotFound, KnowledgeBaseNotFound, NothingToCompare
from builtin_plugins.rag.schemas_differences import DifferenceQuery, VersionDifference
from builtin_plugins.rag.services import differences as service
from kernel.sdk import AUTHENTICATED, Context, PayloadTooLarge, RouteTable

routes = RouteTable("Documents")


@routes.get(
    "/knowledge-bases/{kb_id:uuid}/documents/{document_id:uuid}/difference",
    access=AUTHENTICATED,
    query=DifferenceQuery,
    returns=VersionDifference,
    errors=(KnowledgeBaseNotFound, DocumentNotFound, NothingToCompare, PayloadTooLarge),
    token_scopes=("ask",),
)
async def compare(ctx: Context, kb_id: str, document_id: str, query: DifferenceQuery) -> VersionDifference:
    """Compare two versions of a document by their passages, from the earlier to the later one."""
    return await service.compare(ctx.caller, kb_id, document_id, query)
