"""Evaluation sets in the file that carries a knowledge base. Runs are left out: they measured a machine."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session, selectinload

from builtin_plugins.evaluation.models import EvaluationQuestion, QuestionDocument, QuestionSet
from builtin_plugins.evaluation.schemas import MOST_QUESTIONS, QuestionIn, SetName
from builtin_plugins.evaluation.services.access import EvaluationSight
from builtin_plugins.evaluation.services.deletion_guard import of_kept_documents
from kernel.sdk import Platform, Scope, Unit, Unprocessable, utc_now

PART = "evaluation"
_MOST_SETS = 1000
_MOST_OTHERS = 100

DocumentId: TypeAlias = Annotated[str, Field(max_length=36)]


class _QuestionRow(QuestionIn):
    origin: Literal["uploaded", "generated", "rated"]
    document_id: DocumentId | None
    others: Annotated[list[DocumentId], Field(max_length=_MOST_OTHERS)] = []


class _SetRow(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: SetName
    questions: Annotated[list[_QuestionRow], Field(max_length=MOST_QUESTIONS)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sets: Annotated[list[_SetRow], Field(max_length=_MOST_SETS)]


def write_out(session: Session, platform: Platform, base: str) -> Mapping[str, Any]:
    """The sets of a knowledge base, oldest first, with their questions: none from documents in the trash."""
    readable = EvaluationSight(platform, Scope(None, everything=True)).questions
    ordered = select(QuestionSet).where(QuestionSet.knowledge_base_id == base)
    sets = session.scalars(ordered.order_by(QuestionSet.created_at, QuestionSet.id)).all()
    rows = [{"name": row.name, "questions": _questions(session, row.id, readable)} for row in sets]
    return {PART: {"sets": rows}} if rows else {}


def _questions(session: Session, set_id: str, readable: ColumnElement[bool]) -> list[dict[str, Any]]:
    mine = select(EvaluationQuestion).where(EvaluationQuestion.set_id == set_id, readable)
    rows = session.scalars(
        mine.options(selectinload(EvaluationQuestion.others)).order_by(EvaluationQuestion.id)
    )
    return [
        {name: getattr(row, name) for name in _QuestionRow.model_fields}
        | {"others": [one.document_id for one in row.others]}
        for row in rows
    ]


def read_in(
    platform: Platform, unit: Unit, base: str, parts: Mapping[str, Any], renamed: Mapping[str, str]
) -> None:
    """Write the sets of a file, without questions from documents that were deleted during the import.

    Raises Unprocessable for what is not valid.
    """
    if PART not in parts:
        return
    try:
        part = _Part.model_validate(parts[PART])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise Unprocessable.field(("body", "file"), f"evaluation sets: {where}: {first['msg']}") from None
    for row in part.sets:
        question_set = QuestionSet(
            id=str(uuid.uuid4()), knowledge_base_id=base, name=row.name, created_at=utc_now()
        )
        unit.session.add(question_set)
        unit.session.flush()
        questions = [_renamed(question, question_set.id, renamed) for question in row.questions]
        for question in of_kept_documents(platform, unit, base, questions):
            unit.session.add(question)
            unit.session.flush()  # ids in the order of the file


def _renamed(row: _QuestionRow, set_id: str, renamed: Mapping[str, str]) -> EvaluationQuestion:
    """Replace the ids of documents and passages by those here; names and texts stay the same."""
    return EvaluationQuestion(
        **row.model_dump(exclude={"documents", "passages", "document_id", "others"}),
        set_id=set_id,
        documents=[renamed.get(one, one) for one in row.documents],
        passages=[renamed.get(one, one) for one in row.passages],
        document_id=None if row.document_id is None else renamed.get(row.document_id),
        others=[QuestionDocument(document_id=renamed.get(one, one)) for one in dict.fromkeys(row.others)],
    )
