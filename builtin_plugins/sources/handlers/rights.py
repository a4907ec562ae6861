"""Routes about permissions at sources, part of the service `rag-pipeline`."""

from __future__ import annotations

from builtin_plugins.rag import api as rag
from builtin_plugins.sources.errors import (
    DocumentsUnavailable,
    NotSourceOwner,
    SourcedBaseNotFound,
    SourceLeaving,
    SourceNotFound,
)
from builtin_plugins.sources.schemas_rights import (
    CounterpartsIn,
    CounterpartsOut,
    DocumentReadersOut,
    PrincipalOut,
    PrincipalQuery,
    SourceRightsOut,
)
from builtin_plugins.sources.services.rights import counterparts, explaining
from kernel.sdk import AUTHENTICATED, Context, Page, RouteTable

routes = RouteTable("Sources", service="rag-pipeline")

_ONE = "/sources/{source_id:uuid}"
_ERRORS = (SourceNotFound, NotSourceOwner, DocumentsUnavailable)


@routes.get(f"{_ONE}/rights", access=AUTHENTICATED, returns=SourceRightsOut, errors=_ERRORS)
async def show(ctx: Context, source_id: str) -> SourceRightsOut:
    """Show of when the permissions at a source are, and who of there has a counterpart here."""
    return await counterparts.show_rights(ctx.caller, source_id)


@routes.get(
    f"{_ONE}/principals",
    access=AUTHENTICATED,
    query=PrincipalQuery,
    returns=Page[PrincipalOut],
    errors=_ERRORS,
)
async def list_principals(ctx: Context, source_id: str, query: PrincipalQuery) -> Page[PrincipalOut]:
    """List the people and groups at a source, and for how many accounts each stands here."""
    return await counterparts.list_principals(ctx.caller, source_id, query)


@routes.get(f"{_ONE}/counterparts", access=AUTHENTICATED, returns=CounterpartsOut, errors=_ERRORS)
async def list_counterparts(ctx: Context, source_id: str) -> CounterpartsOut:
    """List what people and groups at a source are here, as far as that was said by hand."""
    return await counterparts.list_counterparts(ctx.caller, source_id)


@routes.put(
    f"{_ONE}/counterparts",
    access=AUTHENTICATED,
    body=CounterpartsIn,
    returns=CounterpartsOut,
    errors=(*_ERRORS, SourceLeaving),
)
async def replace_counterparts(ctx: Context, source_id: str, body: CounterpartsIn) -> CounterpartsOut:
    """Say what people and groups at a source are here, in place of their e-mail addresses; at once."""
    return await counterparts.replace_counterparts(ctx.caller, source_id, body)


@routes.get(
    "/knowledge-bases/{kb_id:uuid}/documents/{document_id:uuid}/readers",
    access=AUTHENTICATED,
    returns=DocumentReadersOut,
    errors=(SourcedBaseNotFound, rag.DocumentNotFound, NotSourceOwner, DocumentsUnavailable),
)
async def show_readers(ctx: Context, kb_id: str, document_id: str) -> DocumentReadersOut:
    """Show who may read a document here, and why: the people and groups that may at its source."""
    return await explaining.readers_of(ctx.caller, kb_id, document_id)
