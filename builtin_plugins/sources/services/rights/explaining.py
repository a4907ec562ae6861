"""Who may read a document here, and why."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag import api as rag
from builtin_plugins.sources.access import source_sight_of
from builtin_plugins.sources.errors import DocumentsUnavailable
from builtin_plugins.sources.models import PrincipalRecord, SourceRecord
from builtin_plugins.sources.schemas_rights import DocumentReaderOut, DocumentReadersOut
from builtin_plugins.sources.services.rights.readers import holder_of
from kernel.sdk import Caller, Scope, scope_of


async def readers_of(caller: Caller, base: str, document_id: str) -> DocumentReadersOut:
    """Only for who may read the document and change its knowledge base.

    Raises SourcedBaseNotFound, NotSourceOwner, NotFound, DocumentsUnavailable.
    """
    sight, database = await source_sight_of(caller), caller.platform.database
    await database.read(sight.require_visible, base)
    audience = await caller.platform.hooks.ask(
        rag.list_document_readers, caller=caller, knowledge_base_id=base, document_id=document_id
    )
    if audience is None:
        raise DocumentsUnavailable()
    await database.read(sight.require_owner, base)
    scope = await scope_of(caller.platform, caller.principal)
    return await database.read(_explained, audience, scope)


def _explained(session: Session, audience: rag.DocumentAudience, scope: Scope) -> DocumentReadersOut:
    holder = audience.holder or ""
    source = session.get(SourceRecord, holder.removeprefix(holder_of("")))
    if source is None:
        return DocumentReadersOut(everybody=audience.everybody, source=None, readers=[])
    ids = {tuple(one.reader.rsplit(":", 2)[1:]): list(one.account_ids) for one in audience.readers}
    digests = PrincipalRecord.digest.in_([digest for _, digest in ids])
    rows = session.scalars(
        select(PrincipalRecord)
        .where(PrincipalRecord.source_id == source.id, digests)
        .order_by(PrincipalRecord.name, PrincipalRecord.kind)
    )
    readers = [
        DocumentReaderOut(
            kind=row.kind,
            name=row.name,
            account_ids=ids[row.kind, row.digest] if scope.everything or not row.has_sign_in_group else None,
        )
        for row in rows
        if (row.kind, row.digest) in ids
    ]
    return DocumentReadersOut(everybody=audience.everybody, source=source.name, readers=readers)
