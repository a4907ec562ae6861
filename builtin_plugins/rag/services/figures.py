"""The figures of questions, for those who may change the knowledge bases that were asked."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import ColumnElement, func, select, true
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import KnowledgeBase, QuestionDay
from builtin_plugins.rag.schemas_figures import QuestionDayOut, QuestionFigures
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.rag.services.question_counts import COUNTED, QUESTIONS
from kernel.sdk import Caller, Scope, scope_of, utc_now


async def show(caller: Caller, days: int, kb_id: str | None) -> QuestionFigures:
    """The last days with a question or a rating, of one knowledge base or of all that the caller may change.

    Raises KnowledgeBaseNotFound, NotOwner.
    """
    scope = await scope_of(caller.platform, caller.principal)
    await caller.platform.resource(QUESTIONS).flush()
    items = await caller.platform.database.read(_read, scope, days, kb_id)
    sums = {name: sum(getattr(item, name) for item in items) for name in COUNTED}
    return QuestionFigures(items=items, **sums)


def _read(session: Session, scope: Scope, days: int, kb_id: str | None) -> list[QuestionDayOut]:
    if kb_id is not None:
        knowledge_bases.find_own(session, scope, kb_id)
    own = true() if scope.everything else KnowledgeBase.owner_id == scope.account_id
    bases = select(KnowledgeBase.id).where(scope.sees(KnowledgeBase), own)
    wanted: list[ColumnElement[bool]] = [QuestionDay.knowledge_base_id.in_(bases)]
    if kb_id is not None:
        wanted.append(QuestionDay.knowledge_base_id == kb_id)
    sums = [func.sum(getattr(QuestionDay, name)).label(name) for name in COUNTED]
    first = utc_now().date() - timedelta(days=days - 1)
    query = select(QuestionDay.day, *sums).where(*wanted, QuestionDay.day >= first)
    rows = session.execute(query.group_by(QuestionDay.day).order_by(QuestionDay.day.desc())).mappings()
    return [QuestionDayOut(**{**row, **{name: max(0, row[name]) for name in COUNTED}}) for row in rows]
