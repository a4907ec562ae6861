"""Routes of documents and their uploads, relative to the service root."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast, get_args

from aiohttp import web

from builtin_plugins.documents.api import PARSERS
from builtin_plugins.rag.errors import (
    DocumentExists,
    DocumentNotFound,
    EmptyDocument,
    KnowledgeBaseNotFound,
    NotOwner,
    QueueLimit,
    StorageLimit,
    UnsupportedDocument,
    VersionMismatch,
)
from builtin_plugins.rag.metadata.editing import IncomingMetadata
from builtin_plugins.rag.metadata.values import metadata_in
from builtin_plugins.rag.schemas import ChunkOut, DocumentOut, DocumentQuery, UploadedDocument
from builtin_plugins.rag.schemas_receipts import Deleted
from builtin_plugins.rag.schemas_trash import RemovalQuery, Removed, Trash
from builtin_plugins.rag.services import documents as service
from builtin_plugins.rag.services import identities
from builtin_plugins.rag.services.identities import Replacement
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
from kernel.sdk.http import ReceivedFile, clean_name

routes = RouteTable("Documents")

_BUILD_TREE = {
    "type": "boolean",
    "default": False,
    "description": "Whether to build a tree of summaries as well; the method `raptor` searches it.",
}
_PATH = {
    "type": "string",
    "maxLength": identities.LONGEST_PATH,
    "description": "Where the document is at its source, such as `policies/travel.md`. Another file that is "
    "uploaded with the same path replaces it once it is read.",
}
_EXTERNAL_ID = {
    "type": "string",
    "maxLength": identities.LONGEST_ID,
    "description": "Instead of a path: the uploader's own id of the document.",
}
_ON_CONFLICT = {
    "type": "string",
    "enum": list(get_args(identities.OnConflict)),
    "default": "keep",
    "description": "Without a path or an id, if there is another document of this file name: `keep` both, "
    "`replace` it, or `fail` (409).",
}
_METADATA = {
    "type": "string",
    "maxLength": 16_384,
    "description": 'Values of the document\'s fields as a JSON object: `{"tags": ["travel"], "year": 2026}`.',
}
_FIELDS: dict[str, dict[str, Any]] = {
    "build_tree": _BUILD_TREE,
    "metadata": _METADATA,
    "path": _PATH,
    "external_id": _EXTERNAL_ID,
    "on_conflict": _ON_CONFLICT,
}
_UPLOAD = Upload(
    fields=_FIELDS,
    file="The document with its file name: PDF, DOCX, PPTX, XLSX, ODT, RTF, EPUB, HTML, e-mail (.eml, .msg), "
    "an archive (.zip), a picture, Markdown, text, CSV or JSON.",
    example={"file": "travel-policy.pdf", "build_tree": False},
)
_PUT = replace(_UPLOAD, fields={"build_tree": _BUILD_TREE, "metadata": _METADATA})
_AT_PATH = "/knowledge-bases/{kb_id:uuid}/documents/by-path/{path:path}"
_UPLOAD_ERRORS = (
    *(KnowledgeBaseNotFound, NotOwner, EmptyDocument, UnsupportedDocument),
    *(StorageLimit, QueueLimit, PayloadTooLarge, BadRequest, InsufficientStorage),
)
_ONE = "/knowledge-bases/{kb_id:uuid}/documents/{document_id:uuid}"


@routes.post(
    "/knowledge-bases/{kb_id:uuid}/upload",
    access=AUTHENTICATED,
    body=_UPLOAD,
    returns=UploadedDocument,
    status=202,
    also_statuses=(200,),
    errors=(*_UPLOAD_ERRORS, DocumentExists),
    long=True,
)
async def upload(ctx: Context, kb_id: str) -> Answer:
    """Upload a document: 202 once it is stored durably. Uploading the same bytes again returns 200 with the
    existing record. With a path or an id, other bytes become the next version of the document.
    """
    await service.check_upload(ctx.caller, kb_id)
    received, build_tree = await receive(ctx)
    try:
        sent = received.fields
        placing = Replacement(
            identities.identity_of(sent.get("path"), sent.get("external_id")), _on_conflict(sent)
        )
        return await _add(ctx, kb_id, received, build_tree, placing)
    finally:
        received.staged.discard()


@routes.put(
    _AT_PATH,
    access=AUTHENTICATED,
    body=_PUT,
    returns=UploadedDocument,
    status=202,
    also_statuses=(200,),
    errors=(*_UPLOAD_ERRORS, VersionMismatch),
    long=True,
)
async def put(ctx: Context, kb_id: str, path: str) -> Answer:
    """Upload the document with this path, or its next version; the earlier one answers until it is read.

    `If-Match` with the `sha256` of the version that is to be replaced, or `If-None-Match: *` for a document
    that is new, refuses anything else (412).
    """
    await service.check_upload(ctx.caller, kb_id)
    identity = identities.identity_at(path)
    is_new = ctx.request.headers.get("If-None-Match", "").strip() == _ANY
    placing = Replacement(identity, if_match=_expected(ctx.request), if_new=is_new)
    received, build_tree = await receive(ctx)
    try:
        received.filename = clean_name(identities.path_in(identity) or "")
        return await _add(ctx, kb_id, received, build_tree, placing)
    finally:
        received.staged.discard()


@routes.get(
    _AT_PATH,
    access=AUTHENTICATED,
    returns=DocumentOut,
    errors=(KnowledgeBaseNotFound, DocumentNotFound),
    token_scopes=("ask",),
)
async def get_by_path(ctx: Context, kb_id: str, path: str) -> Answer:
    """Show the newest version of the document with this path, read or not; `ETag` is its digest."""
    return _tagged(await service.find_by_path(ctx.caller, kb_id, path))


async def _add(
    ctx: Context, kb_id: str, received: ReceivedFile, build_tree: bool, placing: Replacement
) -> Answer:
    parsers, staged = ctx.resource(PARSERS), received.staged
    content_type = await parsers.detect(staged.path, received.filename)
    if content_type is None:
        raise UnsupportedDocument(await parsers.why_refused(staged.path))
    arrived = Arrived(staged, received.filename, content_type, build_tree)
    values = metadata_in(received.fields)
    incoming = None if values is None else IncomingMetadata(values)
    record, new = await service.add(ctx.caller, kb_id, arrived, placing, incoming=incoming)
    return _tagged(record, status=202 if new else 200)


def _tagged(record: DocumentOut, status: int | None = None) -> Answer:
    return Answer(record, status=status, headers={"ETag": f'"{record.sha256}"'})


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


@routes.get(
    f"{_ONE}/versions",
    access=AUTHENTICATED,
    query=PageQuery,
    returns=Page[DocumentOut],
    errors=(KnowledgeBaseNotFound, DocumentNotFound),
    token_scopes=("ask",),
)
async def list_versions(ctx: Context, kb_id: str, document_id: str, query: PageQuery) -> Page[DocumentOut]:
    """List the versions of a document, newest first. Any of them can be opened and downloaded."""
    items, total = await service.list_versions(ctx.caller, kb_id, document_id, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.post(
    f"{_ONE}/restore",
    access=AUTHENTICATED,
    returns=UploadedDocument,
    status=202,
    also_statuses=(200,),
    errors=(
        *(KnowledgeBaseNotFound, DocumentNotFound, NotOwner),
        *(StorageLimit, QueueLimit, InsufficientStorage),
    ),
    long=True,
)
async def restore(ctx: Context, kb_id: str, document_id: str) -> Answer:
    """Make an earlier version the newest again: its file becomes a further version. 200 if it is that."""
    record, new = await service.restore(ctx.caller, kb_id, document_id)
    return _tagged(record, status=202 if new else 200)


@routes.delete(
    _ONE,
    access=AUTHENTICATED,
    query=RemovalQuery,
    returns=Removed,
    errors=(KnowledgeBaseNotFound, DocumentNotFound, NotOwner),
)
async def remove(ctx: Context, kb_id: str, document_id: str, query: RemovalQuery) -> Removed:
    """Delete a document with its passages, vectors and file, and all its versions; or only an earlier one, or
    one that failed while an earlier one answers. The answer holds a signed receipt.

    With `trash=true`, it can be taken back for some days; until then nothing finds, counts or exports it.
    """
    move = service.move_to_trash if query.trash else service.remove
    receipt = await move(ctx.caller, kb_id, document_id)
    message = "Document deleted" if receipt else "Document moved to the trash"
    return Removed(message=message, id=document_id, trashed=receipt is None, receipt=receipt)


_TRASH = "/knowledge-bases/{kb_id:uuid}/trash"
_TRASHED = f"{_TRASH}/{{document_id:uuid}}"


@routes.get(
    _TRASH,
    access=AUTHENTICATED,
    query=PageQuery,
    returns=Trash,
    errors=(KnowledgeBaseNotFound, NotOwner),
)
async def list_trash(ctx: Context, kb_id: str, query: PageQuery) -> Trash:
    """List the documents in the trash of a knowledge base, the latest first. For those who may change it."""
    return await service.list_trash(ctx.caller, kb_id, query)


@routes.post(
    f"{_TRASHED}/restore",
    access=AUTHENTICATED,
    returns=DocumentOut,
    errors=(KnowledgeBaseNotFound, DocumentNotFound, NotOwner),
)
async def take_back(ctx: Context, kb_id: str, document_id: str) -> DocumentOut:
    """Take a document out of the trash, with all its versions. Searches and answers use it again at once."""
    return await service.take_back(ctx.caller, kb_id, document_id)


@routes.delete(
    _TRASHED,
    access=AUTHENTICATED,
    returns=Deleted,
    errors=(KnowledgeBaseNotFound, DocumentNotFound, NotOwner),
)
async def remove_from_trash(ctx: Context, kb_id: str, document_id: str) -> Deleted:
    """Delete a document in the trash for good. The answer holds a signed receipt."""
    receipt = await service.remove_from_trash(ctx.caller, kb_id, document_id)
    return Deleted(message="Document deleted", id=document_id, receipt=receipt)


_ANY = "*"
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")


def _expected(request: web.Request) -> list[str] | None:
    """The digests of `If-Match`, or its ``*``; None without it. One that can't be read matches nothing.

    A digest may come without quotation marks, as it is in a record.
    """
    sent = request.headers.get("If-Match")
    if sent is None or sent.strip() == _ANY:
        return None if sent is None else [_ANY]
    if _DIGEST.fullmatch(sent.strip()):
        return [sent.strip().lower()]
    return [one.value for one in request.if_match or () if not one.is_weak and one.value != _ANY]


_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off", "")


async def receive(ctx: Context) -> tuple[ReceivedFile, bool]:
    """The staged file with the form's fields, and whether to build a tree for it.

    The caller discards the file unless it keeps it.

    Raises EmptyDocument and what `receive_file` raises.
    """
    file = await receive_file(ctx, ctx.settings_of(RagSettings).max_upload_size_mb, tuple(_FIELDS))
    try:
        build_tree = _flag(file.fields.get("build_tree", "").strip().lower())
        if file.staged.size == 0:
            raise EmptyDocument([_problem("the file is empty")])
    except PlatformError:
        file.staged.discard()
        raise
    return file, build_tree


def _on_conflict(sent: Mapping[str, str]) -> identities.OnConflict:
    choice = sent.get("on_conflict", "").strip().lower() or "keep"
    if choice not in get_args(identities.OnConflict):
        raise Unprocessable.field(("body", "on_conflict"), "must be keep, replace or fail", choice[:40])
    return cast(identities.OnConflict, choice)


def _flag(sent: str) -> bool:
    if sent not in _TRUE + _FALSE:
        raise Unprocessable.field(("body", "build_tree"), "must be true or false", sent[:40])
    return sent in _TRUE


def _problem(message: str) -> dict[str, object]:
    return {"type": "value_error", "loc": ["body", "file"], "msg": message, "input": None}
