"""The figures of knowledge bases, for those who may change them."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from sqlalchemy import Select, func, select, true
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import Document, KnowledgeBase, QuestionDay, StorageDay
from builtin_plugins.rag.schemas_figures import QuestionDayOut, QuestionFigures, StorageDayOut
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.rag.services.question_counts import COUNTED, QUESTIONS
from builtin_plugins.rag.services.storage_days import AMOUNTS, amounts
from kernel.sdk import Caller, Scope, scope_of, utc_now


async def show(caller: Caller, days: int, kb_id: str | None) -> QuestionFigures:
    """The last days of one knowledge base, or of all that the caller may change.

    Raises KnowledgeBaseNotFound, NotOwner.
    """
    scope = await scope_of(caller.platform, caller.principal)
    await caller.platform.resource(QUESTIONS).flush()

    def read(session: Session) -> QuestionFigures:
        bases = _own_bases(session, scope, kb_id)
        first = utc_now().date() - timedelta(days=days - 1)
        items = _questions(session, bases, first)
        sums = {name: sum(getattr(item, name) for item in items) for name in COUNTED}
        return QuestionFigures(items=items, storage=_storage(session, bases, first), **sums)

    return await caller.platform.database.read(read)


def _own_bases(session: Session, scope: Scope, kb_id: str | None) -> Select[Any]:
    own = true() if scope.everything else KnowledgeBase.owner_id == scope.account_id
    bases = select(KnowledgeBase.id).where(scope.sees(KnowledgeBase), own)
    if kb_id is None:
        return bases
    knowledge_bases.find_own(session, scope, kb_id)
    return bases.where(KnowledgeBase.id == kb_id)


def _questions(session: Session, bases: Select[Any], first: date) -> list[QuestionDayOut]:
    sums = [func.sum(getattr(QuestionDay, name)).label(name) for name in COUNTED]
    mine = (QuestionDay.knowledge_base_id.in_(bases), QuestionDay.day >= first)
    query = select(QuestionDay.day, *sums).where(*mine)
    rows = session.execute(query.group_by(QuestionDay.day).order_by(QuestionDay.day.desc())).mappings()
    return [QuestionDayOut(**{**row, **{name: max(0, row[name]) for name in COUNTED}}) for row in rows]


def _storage(session: Session, bases: Select[Any], first: date) -> list[StorageDayOut]:
    today = utc_now().date()
    present = session.execute(amounts().where(Document.knowledge_base_id.in_(bases))).mappings().one()
    sums = [func.sum(getattr(StorageDay, name)).label(name) for name in AMOUNTS]
    mine = (StorageDay.knowledge_base_id.in_(bases), StorageDay.day >= first, StorageDay.day < today)
    query = select(StorageDay.day, *sums).where(*mine)
    rows = session.execute(query.group_by(StorageDay.day).order_by(StorageDay.day.desc())).mappings()
    return [StorageDayOut(day=today, **present), *(StorageDayOut(**row) for row in rows)]
