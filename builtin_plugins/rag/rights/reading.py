"""Whether a caller may read a document of a knowledge base that it sees: one condition, for every query.

It binds every account, administrators and owners, too; only services, which act for the server, read all,
and not even they what is in the trash.
Changes of audiences and members are rows, so that the next query anywhere goes by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Integer,
    Select,
    and_,
    bindparam,
    exists,
    literal_column,
    or_,
    select,
)
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import (
    TRASH,
    Audience,
    AudienceReader,
    Document,
    KnowledgeBase,
    ReaderMember,
    TrashedDocument,
)
from kernel.sdk import Caller, Scope, scope_of

VISITORS: Final = Scope(None)
"""For people without an account, on whose behalf a publication asks: documents that everybody may read."""
_VISITOR: Final = "asks_for_visitors"


def readable(scope: Scope) -> ColumnElement[bool]:
    """The condition on `Document`, in a query that also looks at what the scope sees of knowledge bases."""
    return _readable(Document, read_binds(scope))


def readable_documents(scope: Scope) -> Select[str]:
    """The ids of the documents that a scope may read, in the knowledge bases that it sees."""
    query = select(Document.id).join(KnowledgeBase, KnowledgeBase.id == Document.knowledge_base_id)
    return query.where(scope.sees(KnowledgeBase), readable(scope))


def readable_in_trash(scope: Scope) -> ColumnElement[bool]:
    """The same on `TrashedDocument`: whether the scope could read the document before it was deleted."""
    return _readable(TrashedDocument, read_binds(scope))


def readable_by_binds(documents: Any) -> ColumnElement[bool]:
    """The same for a statement that is built once: pass `read_binds` among the values when executing it.

    `documents` is the table's columns (`Document.__table__.c`).
    """
    return _readable(documents, {})


def read_binds(scope: Scope) -> dict[str, Any]:
    """The values for a statement that was built with `readable_by_binds`."""
    return {"reader_account": scope.account_id, "reads_all": reads_everything(scope)}


def reads_everything(scope: Scope) -> bool:
    """Whether this is a service; administrators read what their accounts may."""
    return scope.everything and scope.account_id is None


def reader_key(scope: Scope) -> str:
    """What `readable` depends on besides rows, as text."""
    return "all" if reads_everything(scope) else f"account {scope.account_id}"


def _readable(documents: Any, values: Mapping[str, Any]) -> ColumnElement[bool]:
    def value(name: str, kind: Any) -> Any:
        return bindparam(name, values[name], kind) if values else bindparam(name, type_=kind)

    account = value("reader_account", Integer())
    mine = (
        select(AudienceReader.audience_id)
        .join(ReaderMember, ReaderMember.reader == AudienceReader.reader)
        .where(ReaderMember.account_id == account)
    )
    return or_(
        documents.audience_id.is_(None),
        documents.audience_id.in_(select(Audience.id).where(Audience.everybody)),
        documents.audience_id.in_(mine),
        and_(value("reads_all", Boolean()).is_(True), documents.audience_id != literal_column(f"'{TRASH}'")),
    )


async def reading_scope(caller: Caller) -> Scope:
    """The scope by which a caller's questions read documents: of one for visitors, what everybody may."""
    if _VISITOR in caller.principal.claims:
        return VISITORS
    return await scope_of(caller.platform, caller.principal)


def for_visitors(caller: Caller) -> Caller:
    """A caller who asks as an account does, but reads only documents that everybody may read."""
    claims = {**caller.principal.claims, _VISITOR: True}
    return Caller(caller.platform, replace(caller.principal, claims=claims))


def guarded_among(session: Session, base_ids: Sequence[str]) -> set[str]:
    """Which of these knowledge bases have documents that not everybody may read who sees them."""
    of_base = Document.knowledge_base_id == KnowledgeBase.id
    guarded = exists().where(of_base, Document.audience_id.is_not(None))
    return set(session.scalars(select(KnowledgeBase.id).where(KnowledgeBase.id.in_(base_ids), guarded)))
