"""Routes of documents and their uploads, relative to the service root."""

from __future__ import annotations

from aiohttp import web

from builtin_plugins.documents.api import PARSERS
from builtin_plugins.rag.errors import (
    DocumentNotFound,
    EmptyDocument,
    KnowledgeBaseNotFound,
    NotOwner,
    QueueLimit,
    StorageLimit,
    UnsupportedDocument,
)
from builtin_plugins.rag.schemas import ChunkOut, DocumentOut, DocumentQuery
from builtin_plugins.rag.schemas_receipts import Deleted
from builtin_plugins.rag.services import documents as service
from builtin_plugins.rag.services.records import Arrived
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import (
    AUTHENTICATED,
    Answer,
    BadRequest,
    Context,
    InsufficientStorage,
    Page,
    PageQuery,
    PayloadTooLarge,
    PlatformError,
    RouteTable,
    Unprocessable,
    Upload,
    receive_file,
)
from kernel.sdk.storage import Staged

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
        *(StorageLimit, QueueLimit, PayloadTooLarge, BadRequest, InsufficientStorage),
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


_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off", "")


async def receive(ctx: Context) -> tuple[Staged, str, bool]:
    """The staged file, its name, and whether to build a tree for it.

    The caller discards the file unless it keeps it.

    Raises EmptyDocument and what `receive_file` raises.
    """
    found = await receive_file(ctx, ctx.settings_of(RagSettings).max_upload_size_mb, ("build_tree",))
    try:
        build_tree = _flag(found.fields.get("build_tree", "").strip().lower())
        if found.staged.size == 0:
            raise EmptyDocument([_problem("the file is empty")])
    except PlatformError:
        found.staged.discard()
        raise
    return found.staged, found.filename, build_tree


def _flag(sent: str) -> bool:
    if sent not in _TRUE + _FALSE:
        raise Unprocessable.field(("body", "build_tree"), "must be true or false", sent[:40])
    return sent in _TRUE


def _problem(message: str) -> dict[str, object]:
    return {"type": "value_error", "loc": ["body", "file"], "msg": message, "input": None}
