"""What is deleted with a document or knowledge base: questions made from it, or all sets and runs."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.orm import Session

from builtin_plugins.evaluation.models import EvaluationQuestion, QuestionDocument, QuestionSet
from builtin_plugins.rag import api as rag
from kernel.sdk import Unit


def remove(unit: Unit, base: str, document_id: str | None) -> Sequence[rag.RemovedPart]:
    """Remove it in the unit of the deletion; returns how much."""
    counts = count(unit.session, base, document_id)
    if document_id is None:
        unit.session.execute(delete(QuestionSet).where(QuestionSet.knowledge_base_id == base))
    else:
        unit.session.execute(delete(EvaluationQuestion).where(_made_from(document_id)))
    return [rag.RemovedPart(place, number) for place, number in counts.items()]


def count(session: Session, base: str, document_id: str | None) -> dict[str, int]:
    """How much there is, by place."""
    if document_id is None:
        sets = select(func.count()).where(QuestionSet.knowledge_base_id == base)
        return {"evaluation_sets": session.scalar(sets) or 0}
    questions = select(func.count()).select_from(EvaluationQuestion).where(_made_from(document_id))
    return {"evaluation_questions": session.scalar(questions) or 0}


def _made_from(document_id: str) -> ColumnElement[bool]:
    others = select(QuestionDocument.question_id).where(QuestionDocument.document_id == document_id)
    return (EvaluationQuestion.document_id == document_id) | EvaluationQuestion.id.in_(others)
