"""Who may read a document, and why."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import Audience, AudienceReader, ReaderMember
from builtin_plugins.rag.rights.hooks import DocumentAudience, ReaderAccounts
from builtin_plugins.rag.services import documents
from kernel.sdk import Caller


async def list_document_readers(caller: Caller, kb_id: str, document_id: str) -> DocumentAudience:
    """Implements the hook of the same name."""
    document = await documents.get(caller, kb_id, document_id)
    if document.audience_id is None:
        return DocumentAudience(None, everybody=True)
    return await caller.platform.database.read(_audience, document.audience_id)


def _audience(session: Session, audience_id: str) -> DocumentAudience:
    audience = session.get(Audience, audience_id)
    if audience is None:
        return DocumentAudience(None, everybody=False)
    mine = AudienceReader.audience_id == audience_id
    members: dict[str, list[int]] = {}
    joined = ReaderMember.reader == AudienceReader.reader
    query = select(AudienceReader.reader, ReaderMember.account_id).outerjoin(ReaderMember, joined).where(mine)
    for reader, account in session.execute(query.order_by(AudienceReader.reader, ReaderMember.account_id)):
        members.setdefault(reader, []).extend([] if account is None else [account])
    readers = [ReaderAccounts(*one) for one in members.items()]
    return DocumentAudience(audience.holder, audience.everybody, readers)
