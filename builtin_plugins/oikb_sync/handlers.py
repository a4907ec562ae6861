"""The routes that the synchronizer calls: a part of Open WebUI's own."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from builtin_plugins.oikb_sync import services
from builtin_plugins.oikb_sync.schemas import (
    FolderCreate,
    FolderOut,
    SyncCleanup,
    SyncDiff,
    SyncDifference,
    SyncedBase,
    SyncedPage,
    SyncedUpload,
    SyncRemoved,
    UploadNote,
    place_of,
)
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
    Upload,
    receive_file,
)

routes = RouteTable("Synchronizing by oikb", service="rag-pipeline")

_API: Final = "/oikb/api/v1"
_BASE: Final = f"{_API}/knowledge/{{kb_id:uuid}}"
_LARGEST_MANIFEST: Final = 32 * 1024 * 1024
_CHANGE_ERRORS: Final = (rag.KnowledgeBaseNotFound, rag.NotOwner)


@routes.post(
    f"{_BASE}/sync/diff",
    access=AUTHENTICATED,
    body=SyncDiff,
    returns=SyncDifference,
    errors=_CHANGE_ERRORS,
    max_body=_LARGEST_MANIFEST,
    long=True,
)
async def compare(ctx: Context, kb_id: str, body: SyncDiff) -> SyncDifference:
    """Compare the files of a source with what was uploaded for it. Documents of others are left alone."""
    return await services.difference(ctx.caller, kb_id, body.manifest)


@routes.post(
    f"{_BASE}/sync/cleanup",
    access=AUTHENTICATED,
    body=SyncCleanup,
    returns=SyncRemoved,
    errors=_CHANGE_ERRORS,
    max_body=_LARGEST_MANIFEST,
    long=True,
)
async def clean_up(ctx: Context, kb_id: str, body: SyncCleanup) -> SyncRemoved:
    """Remove files that the source no longer has."""
    return SyncRemoved(removed=await services.clean_up(ctx.caller, kb_id, body.file_ids))


@routes.post(f"{_BASE}/reset", access=AUTHENTICATED, returns=SyncRemoved, errors=_CHANGE_ERRORS, long=True)
async def reset(ctx: Context, kb_id: str) -> SyncRemoved:
    """Remove all files that were uploaded in this way."""
    return SyncRemoved(removed=await services.clean_up(ctx.caller, kb_id, None))


@routes.post(
    f"{_BASE}/dirs/create",
    access=AUTHENTICATED,
    body=FolderCreate,
    returns=FolderOut,
    errors=_CHANGE_ERRORS,
)
async def create_folder(ctx: Context, kb_id: str, body: FolderCreate) -> FolderOut:
    """Name a folder; it is there as soon as it has a file."""
    await ctx.resource(rag.CATALOG).check_own(ctx.caller, kb_id)
    return FolderOut(id=place_of(body.parent_id or "", body.name), name=body.name)


@routes.get(
    _BASE,
    access=AUTHENTICATED,
    returns=SyncedBase,
    errors=(rag.KnowledgeBaseNotFound,),
    token_scopes=("ask",),
)
async def get(ctx: Context, kb_id: str) -> SyncedBase:
    """Show a knowledge base."""
    base = await ctx.resource(rag.CATALOG).base(ctx.caller, kb_id)
    return SyncedBase(id=base.id, name=base.name, description=base.description)


@routes.get(
    f"{_BASE}/files",
    access=AUTHENTICATED,
    returns=SyncedPage,
    errors=(rag.KnowledgeBaseNotFound,),
    token_scopes=("ask",),
)
async def list_files(ctx: Context, kb_id: str) -> SyncedPage:
    """List the files that were uploaded in this way."""
    return await services.list_files(ctx.caller, kb_id)


@routes.post(
    f"{_API}/files/",
    access=AUTHENTICATED,
    body=Upload(
        fields={
            "metadata": {
                "type": "string",
                "maxLength": 16_384,
                "description": "JSON: `knowledge_id`, `file_hash` and, in a folder, `directory_id`.",
            }
        },
        example={
            "file": "travel-policy.pdf",
            "metadata": '{"knowledge_id": "3f2c9d1e-7a54-4b0e-9c1d-2f6a8e5b7c90", "file_hash": "9f2c"}',
        },
    ),
    returns=SyncedUpload,
    errors=(
        *(*_CHANGE_ERRORS, rag.EmptyDocument, rag.UnsupportedDocument, rag.StorageLimit, rag.QueueLimit),
        *(PayloadTooLarge, BadRequest, Unavailable, InsufficientStorage),
    ),
    long=True,
)
async def upload(ctx: Context) -> SyncedUpload:
    """Upload a file, or the next version of one."""
    received = await receive_file(ctx, rag.most_upload_mb(ctx.platform), ("metadata",))
    try:
        return await services.upload(ctx.caller, _note(received.fields.get("metadata", "")), received)
    finally:
        received.staged.discard()


def _note(sent: str) -> UploadNote:
    try:
        return UploadNote.model_validate_json(sent)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        raise Unprocessable(
            [{**one, "loc": ["body", "metadata", *one["loc"]], "input": None} for one in problems]
        ) from None
