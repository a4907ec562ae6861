"""Routes of files: OpenAI's `/files`, under both of its clients' base addresses."""

from __future__ import annotations

from typing import Any, Final, get_args

from aiohttp import web

from builtin_plugins.inference.api import OPENAI_ERRORS
from builtin_plugins.openai_files.errors import FileNotKnown
from builtin_plugins.openai_files.handlers.pages import page_fields
from builtin_plugins.openai_files.schemas import DeletedOut, FileOut, FilePage, FileQuery, Purpose
from builtin_plugins.openai_files.services import files as service
from builtin_plugins.openai_files.services.retries import Attempt
from builtin_plugins.openai_files.settings import OpenAIFilesSettings
from builtin_plugins.rag import api as rag
from kernel.sdk import (
    AUTHENTICATED,
    BadRequest,
    Context,
    InsufficientStorage,
    PayloadTooLarge,
    RouteTable,
    Unavailable,
    Unprocessable,
    UnsupportedMediaType,
    Upload,
    receive_file,
)
from kernel.sdk.http import ReceivedFile

routes = RouteTable("Files", service="orchestrator")
aliases = RouteTable("Files")

_EXPIRY: Final = ("expires_after[anchor]", "expires_after[seconds]", "expires_after")
_ANY: Final = {"access": AUTHENTICATED, "error_format": OPENAI_ERRORS}
_UPLOAD: Final[dict[str, Any]] = {
    **_ANY,
    "body": Upload(
        fields={
            "purpose": {
                "type": "string",
                "enum": list(get_args(Purpose)),
                "description": "What it is for; both mean the same here.",
            }
        },
        file="The file with its name.",
        example={"file": "travel-policy.pdf", "purpose": "assistants"},
    ),
    "returns": FileOut,
    "errors": (
        *(rag.StorageLimit, PayloadTooLarge, BadRequest),
        *(UnsupportedMediaType, Unavailable, InsufficientStorage),
    ),
    "long": True,
}
_LIST: Final[dict[str, Any]] = {
    **_ANY,
    "query": FileQuery,
    "returns": FilePage,
    "token_scopes": ("ask",),
}
_SHOW: Final[dict[str, Any]] = {
    **_ANY,
    "returns": FileOut,
    "errors": (FileNotKnown,),
    "token_scopes": ("ask",),
}
_CONTENT: Final[dict[str, Any]] = {
    **_ANY,
    "media_type": "application/octet-stream",
    "returns": bytes,
    "also_statuses": (206, 304),
    "errors": (FileNotKnown, Unavailable, 412, 416),
    "long": True,
    "token_scopes": ("ask",),
}
_DELETE: Final[dict[str, Any]] = {**_ANY, "returns": DeletedOut, "errors": (FileNotKnown,)}


@aliases.post("/v1/files", **_UPLOAD)
@routes.post("/v1/ai/files", **_UPLOAD)
async def upload_file(ctx: Context) -> FileOut:
    """Upload a file. It is kept until it is deleted, and searched once it is in a vector store."""
    limit = ctx.settings_of(OpenAIFilesSettings).openai_files_file_mb
    received = await receive_file(ctx, limit, ("purpose", *_EXPIRY))
    try:
        purpose = _checked(received)
        is_retry = Attempt.of(ctx.request.headers).is_retry
        return await service.add(ctx.caller, received, purpose, is_retry=is_retry)
    finally:
        received.staged.discard()


def _checked(received: ReceivedFile) -> str:
    """The purpose of an upload that can be kept. Raises Unprocessable."""
    purpose = received.fields.get("purpose", "")
    if purpose not in get_args(Purpose):
        message = f"must be {' or '.join(get_args(Purpose))}"
        raise Unprocessable.field(("body", "purpose"), message, purpose[:40])
    if any(received.fields.get(one) for one in _EXPIRY):
        message = "nothing expires here; leave it out, and delete the file instead"
        raise Unprocessable.field(("body", "expires_after"), message)
    if received.staged.size == 0:
        raise Unprocessable.field(("body", "file"), "the file is empty")
    return purpose


@aliases.get("/v1/files", **_LIST)
@routes.get("/v1/ai/files", **_LIST)
async def list_files(ctx: Context, query: FileQuery) -> FilePage:
    """List the caller's files, newest first."""
    return FilePage(**page_fields(*await service.list_page(ctx.caller, query)))


@aliases.get("/v1/files/{file_id}", **_SHOW)
@routes.get("/v1/ai/files/{file_id}", **_SHOW)
async def get_file(ctx: Context, file_id: str) -> FileOut:
    """Show a file of the caller's, or a document of a knowledge base, by the id that search results have."""
    return await service.show(ctx.caller, file_id)


@aliases.get("/v1/files/{file_id}/content", **_CONTENT)
@routes.get("/v1/ai/files/{file_id}/content", **_CONTENT)
async def get_file_content(ctx: Context, file_id: str) -> web.StreamResponse:
    """Download the bytes of a file."""
    path, record = await service.content(ctx.caller, file_id)
    since = record.uploaded_at if isinstance(record, rag.CatalogDocument) else record.created_at
    return await ctx.send_file(path, record.filename, sha256=record.sha256, modified=since)


@aliases.delete("/v1/files/{file_id}", **_DELETE)
@routes.delete("/v1/ai/files/{file_id}", **_DELETE)
async def delete_file(ctx: Context, file_id: str) -> DeletedOut:
    """Delete a file, also from the caller's vector stores."""
    await service.remove(ctx.caller, file_id)
    return DeletedOut(id=file_id, object="file")
