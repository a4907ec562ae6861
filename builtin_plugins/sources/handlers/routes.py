"""Routes of sources, part of the service `rag-pipeline`."""

from __future__ import annotations

from builtin_plugins.sources.errors import (
    DocumentsUnavailable,
    KindUnavailable,
    NothingToConfirm,
    NotSourceOwner,
    OriginNotFound,
    PushNotFound,
    SourcedBaseNotFound,
    SourceLeaving,
    SourceNotFound,
    TooManySources,
)
from builtin_plugins.sources.kinds import SOURCE_KINDS
from builtin_plugins.sources.schemas import (
    OriginOut,
    PushAddress,
    SourceCreate,
    SourceItemOut,
    SourceItemQuery,
    SourceKindOut,
    SourceKindsOut,
    SourceOut,
    SourceRemoval,
    SourceRun,
    SourceRunOut,
    SourcesOut,
    SourceTest,
    SourceTested,
    SourceUpdate,
)
from builtin_plugins.sources.services import runs, sources, trying
from kernel.sdk import AUTHENTICATED, PUBLIC, Context, Message, Page, PageQuery, Rate, RouteTable

routes = RouteTable("Sources", service="rag-pipeline")

_OF_BASE = "/knowledge-bases/{kb_id:uuid}/sources"
_ONE = "/sources/{source_id:uuid}"
_BASE_ERRORS = (SourcedBaseNotFound, NotSourceOwner, DocumentsUnavailable)
_ERRORS = (SourceNotFound, NotSourceOwner, DocumentsUnavailable)
_PUSHES = Rate(60, per="ip", scope="path")


@routes.get("/source-kinds", access=AUTHENTICATED, returns=SourceKindsOut)
async def list_kinds(ctx: Context) -> SourceKindsOut:
    """List the kinds of sources that can be added, with the schemas of their settings."""
    kinds = ctx.resource(SOURCE_KINDS)
    items = [
        SourceKindOut(
            name=kind.name,
            title=kind.title,
            settings_schema=kind.settings.model_json_schema(),
            guarded="depends" if callable(kind.guarded) else "always" if kind.guarded else "never",
            secret=kind.secret,
        )
        for kind in kinds.all.values()
    ]
    return SourceKindsOut(items=items, refused=kinds.refused)


@routes.get(_OF_BASE, access=AUTHENTICATED, returns=SourcesOut, errors=_BASE_ERRORS)
async def list_all(ctx: Context, kb_id: str) -> SourcesOut:
    """List the sources that a knowledge base keeps in step with."""
    return SourcesOut(items=await sources.list_all(ctx.caller, kb_id))


@routes.post(
    _OF_BASE,
    access=AUTHENTICATED,
    body=SourceCreate,
    returns=SourceOut,
    status=201,
    errors=(*_BASE_ERRORS, TooManySources),
)
async def create(ctx: Context, kb_id: str, body: SourceCreate) -> SourceOut:
    """Add a source; its first run begins at once. What is below it becomes documents, and stays in step."""
    return await sources.create(ctx.caller, body, kb_id)


@routes.post(
    f"{_OF_BASE}/test",
    access=AUTHENTICATED,
    body=SourceTest,
    returns=SourceTested,
    errors=(*_BASE_ERRORS, SourceNotFound),
    long=True,
)
async def try_settings(ctx: Context, kb_id: str, body: SourceTest) -> SourceTested:
    """Try settings before they are saved: list the first items."""
    return await trying.try_settings(ctx.caller, body, kb_id)


@routes.get(_ONE, access=AUTHENTICATED, returns=SourceOut, errors=_ERRORS)
async def get(ctx: Context, source_id: str) -> SourceOut:
    """Show a source, its last run and when the next one is."""
    return await sources.get(ctx.caller, source_id)


@routes.patch(
    _ONE,
    access=AUTHENTICATED,
    body=SourceUpdate,
    returns=SourceOut,
    errors=(*_ERRORS, SourceLeaving, KindUnavailable),
)
async def change(ctx: Context, source_id: str, body: SourceUpdate) -> SourceOut:
    """Change a source. Documents that new filters leave out go with the next run."""
    return await sources.change(ctx.caller, source_id, body)


@routes.delete(
    _ONE,
    access=AUTHENTICATED,
    query=SourceRemoval,
    returns=Message,
    status=202,
    errors=(*_ERRORS, SourceLeaving),
)
async def remove(ctx: Context, source_id: str, query: SourceRemoval) -> Message:
    """Remove a source, and keep or delete its documents."""
    await sources.remove(ctx.caller, source_id, query.documents)
    return Message(message="The source is being removed")


@routes.post(
    f"{_ONE}/test", access=AUTHENTICATED, returns=SourceTested, errors=(*_ERRORS, KindUnavailable), long=True
)
async def test(ctx: Context, source_id: str) -> SourceTested:
    """Try a source: list its first items."""
    return await trying.try_source(ctx.caller, source_id)


@routes.post(
    f"{_ONE}/run",
    access=AUTHENTICATED,
    body=SourceRun,
    returns=SourceRunOut,
    status=202,
    errors=(*_ERRORS, SourceLeaving),
)
async def run(ctx: Context, source_id: str, body: SourceRun) -> SourceRunOut:
    """Begin a run, or a dry run that only lists what would change; the one under way, if there is one."""
    return await runs.begin(ctx.caller, source_id, dry=body.dry)


@routes.post(
    f"{_ONE}/confirm",
    access=AUTHENTICATED,
    returns=SourceRunOut,
    status=202,
    errors=(*_ERRORS, SourceLeaving, NothingToConfirm),
)
async def confirm(ctx: Context, source_id: str) -> SourceRunOut:
    """Confirm that much is missing at the source: the run that waits for this deletes it here, too."""
    return await runs.confirm(ctx.caller, source_id)


@routes.get(f"{_ONE}/runs", access=AUTHENTICATED, query=PageQuery, returns=Page[SourceRunOut], errors=_ERRORS)
async def list_runs(ctx: Context, source_id: str, query: PageQuery) -> Page[SourceRunOut]:
    """List the runs of a source, newest first."""
    return await runs.list_runs(ctx.caller, source_id, query)


@routes.get(
    f"{_ONE}/items", access=AUTHENTICATED, query=SourceItemQuery, returns=Page[SourceItemOut], errors=_ERRORS
)
async def list_items(ctx: Context, source_id: str, query: SourceItemQuery) -> Page[SourceItemOut]:
    """List what a source has, and why some of it is no document."""
    return await runs.list_items(ctx.caller, source_id, query)


@routes.post(
    f"{_ONE}/push-address", access=AUTHENTICATED, returns=PushAddress, errors=(*_ERRORS, SourceLeaving)
)
async def make_push_address(ctx: Context, source_id: str) -> PushAddress:
    """Make an address whose call triggers a run, such as for a repository's webhook."""
    return PushAddress(path=await sources.make_push_address(ctx.caller, source_id))


@routes.post(
    "/source-pushes/{token}",
    access=PUBLIC,
    open_to_writes=True,
    returns=Message,
    status=202,
    errors=(PushNotFound, SourceLeaving),
    rate=_PUSHES,
)
async def push(ctx: Context, token: str) -> Message:
    """Say that something has changed at a source: a run begins. What is sent is not read."""
    await sources.push(ctx.platform, token)
    return Message(message="A run begins")


@routes.get(
    "/knowledge-bases/{kb_id:uuid}/documents/{document_id:uuid}/origin",
    access=AUTHENTICATED,
    returns=OriginOut,
    errors=(SourcedBaseNotFound, OriginNotFound, DocumentsUnavailable),
    token_scopes=("ask",),
)
async def origin(ctx: Context, kb_id: str, document_id: str) -> OriginOut:
    """Show where a document comes from: its path, version and link at its source."""
    return await runs.origin_of(ctx.caller, kb_id, document_id)
