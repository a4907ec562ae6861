"""Routes of documents, relative to the service root."""

from __future__ import annotations

from aiohttp import web

from builtin_plugins.rag.errors import (
    DocumentNotFound,
    EmptyDocument,
    KnowledgeBaseNotFound,
    NotOwner,
    UnsupportedDocument,
)
from builtin_plugins.rag.handlers.files import receive
from builtin_plugins.rag.schemas import ChunkOut, DocumentOut, DocumentQuery
from builtin_plugins.rag.schemas_receipts import Deleted
from builtin_plugins.rag.services import documents as service
from builtin_plugins.rag.services.parsers import PARSERS
from builtin_plugins.rag.services.records import Arrived
from kernel.sdk import (
    AUTHENTICATED,
    Answer,
    BadRequest,
    Context,
    InsufficientStorage,
    Page,
    PageQuery,
    PayloadTooLarge,
    RouteTable,
    Upload,
)

routes = RouteTable("Documents")

_BUILD_TREE = {
    "type": "boolean",
    "default": False,
    "description": "Whether to build a tree of summaries as well; the method `raptor` searches it.",
}
_UPLOAD = Upload(
    fields={"build_tree": _BUILD_TREE},
    file="The document with its file name: PDF, DOCX, PPTX, XLSX, ODT, RTF, EPUB, HTML, e-mail (.eml, .msg), "
    "an archive (.zip), a picture, Markdown, text, CSV or JSON.",
    example={"file": "travel-policy.pdf", "build_tree": False},
)
_ONE = "/knowledge-bases/{kb_id:uuid}/documents/{document_id:uuid}"


@routes.post(
    "/knowledge-bases/{kb_id:uuid}/upload",
    access=AUTHENTICATED,
    body=_UPLOAD,
    returns=DocumentOut,
    status=202,
    also_statuses=(200,),
    errors=(
        *(KnowledgeBaseNotFound, NotOwner, EmptyDocument, UnsupportedDocument),
        *(PayloadTooLarge, BadRequest, InsufficientStorage),
    ),
    long=True,
)
async def upload(ctx: Context, kb_id: str) -> Answer:
    """Upload a document: 202 once it is stored durably. Uploading the same bytes again returns 200 with the
    existing record.
    """
    await service.check_upload(ctx.caller, kb_id)
    staged, filename, build_tree = await receive(ctx)
    try:
        parsers = ctx.resource(PARSERS)
        content_type = await parsers.detect(staged.path, filename)
        if content_type is None:
            raise UnsupportedDocument(await parsers.why_refused(staged.path))
        arrived = Arrived(staged, filename, content_type, build_tree)
        record, new = await service.add(ctx.caller, kb_id, arrived)
    finally:
        staged.discard()
    return Answer(record, status=202 if new else 200)


@routes.get(
    "/knowledge-bases/{kb_id:uuid}/documents",
    access=AUTHENTICATED,
    query=DocumentQuery,
    returns=Page[DocumentOut],
    errors=(KnowledgeBaseNotFound,),
    token_scopes=("ask",),
)
async def list_all(ctx: Context, kb_id: str, query: DocumentQuery) -> Page[DocumentOut]:
    """List documents, all on one page unless a limit is given."""
    items, total = await service.list_page(ctx.caller, kb_id, query)
    return Page(items=items, total=total, limit=query.limit or total, offset=query.offset)


@routes.get(
    _ONE,
    access=AUTHENTICATED,
    returns=DocumentOut,
    errors=(KnowledgeBaseNotFound, DocumentNotFound),
    token_scopes=("ask",),
)
async def get(ctx: Context, kb_id: str, document_id: str) -> DocumentOut:
    """Show one document; poll this until its status is no longer `processing`."""
    return await service.show(ctx.caller, kb_id, document_id)


@routes.get(
    f"{_ONE}/content",
    access=AUTHENTICATED,
    media_type="application/octet-stream",
    returns=bytes,
    also_statuses=(206, 304),
    errors=(KnowledgeBaseNotFound, DocumentNotFound, 412, 416),
    long=True,
    token_scopes=("ask",),
)
async def content(ctx: Context, kb_id: str, document_id: str) -> web.StreamResponse:
    """Download the original bytes of a document, or a range of them."""
    document, path = await service.content(ctx.caller, kb_id, document_id)
    return await ctx.send_file(path, document.filename, sha256=document.sha256, modified=document.uploaded_at)


@routes.get(
    f"{_ONE}/chunks",
    access=AUTHENTICATED,
    query=PageQuery,
    returns=Page[ChunkOut],
    errors=(KnowledgeBaseNotFound, DocumentNotFound),
    token_scopes=("ask",),
)
async def chunks(ctx: Context, kb_id: str, document_id: str, query: PageQuery) -> Page[ChunkOut]:
    """List the passages of a document in order."""
    items, total = await service.chunks(ctx.caller, kb_id, document_id, query.limit, query.offset)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.delete(
    _ONE,
    access=AUTHENTICATED,
    returns=Deleted,
    errors=(KnowledgeBaseNotFound, DocumentNotFound, NotOwner),
)
async def remove(ctx: Context, kb_id: str, document_id: str) -> Deleted:
    """Delete a document with its passages, vectors and file. The answer holds a signed receipt."""
    receipt = await service.remove(ctx.caller, kb_id, document_id)
    return Deleted(message="Document deleted", id=document_id, receipt=receipt)
