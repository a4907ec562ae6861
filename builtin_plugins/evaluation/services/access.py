"""Who sees and changes what: a set is visible to everybody who sees its knowledge base."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, exists, literal, select
from sqlalchemy.orm import Session

from builtin_plugins.evaluation.errors import (
    EvaluationBaseNotFound,
    NoKnowledgeBases,
    NotSetOwner,
    RunNotFound,
    SetNotFound,
)
from builtin_plugins.evaluation.models import EvaluationQuestion, QuestionDocument, QuestionSet, Run
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, Platform, Scope, scope_of


class EvaluationSight:
    """What a caller sees and may change."""

    def __init__(self, platform: Platform, scope: Scope) -> None:
        self._platform = platform
        self._scope = scope

    @property
    def bases(self) -> Select[str]:
        """The ids of the visible knowledge bases. Raises NoKnowledgeBases."""
        spec = rag.select_knowledge_bases
        bases = self._platform.hooks.ask_now(spec, platform=self._platform, scope=self._scope)
        if bases is None:
            raise NoKnowledgeBases()
        return bases

    @property
    def questions(self) -> ColumnElement[bool]:
        """The condition for questions: not those that were made from documents that may not be read."""
        spec, column = rag.select_readable_documents, EvaluationQuestion.document_id
        readable = self._platform.hooks.ask_now(spec, platform=self._platform, scope=self._scope)
        if readable is None:
            return column.is_(None)
        other = QuestionDocument.question_id == EvaluationQuestion.id
        closed = exists().where(other, QuestionDocument.document_id.not_in(readable))
        return column.is_(None) | (column.in_(readable) & ~closed)

    def of_base(self, column: Any, base: str | None) -> ColumnElement[bool]:
        """The condition for rows of visible knowledge bases, or only of this one if it is visible."""
        visible: ColumnElement[bool] = column.in_(self.bases)
        return visible if base is None else visible & (column == base)

    def require_owner(self, session: Session, base: str) -> None:
        """Raise KnowledgeBaseNotFound unless it is visible, NotOwner unless it may be changed."""
        if session.scalar(select(literal(base).in_(self.bases))) is not True:
            raise EvaluationBaseNotFound()
        spec = rag.owns_knowledge_base
        owns = self._platform.hooks.ask_now(
            spec, platform=self._platform, session=session, scope=self._scope, knowledge_base_id=base
        )
        if not owns:
            raise NotSetOwner()

    def pipelines_over(self, session: Session, base: str) -> list[str]:
        """The ids of the visible pipelines over a knowledge base."""
        spec = rag.list_pipelines_over
        pipelines = self._platform.hooks.ask_now(
            spec, platform=self._platform, session=session, scope=self._scope, knowledge_base_id=base
        )
        return list(pipelines or ())

    def set_of(self, session: Session, set_id: str) -> QuestionSet:
        """A set that the caller sees. Raises SetNotFound."""
        query = select(QuestionSet).where(
            QuestionSet.id == set_id, QuestionSet.knowledge_base_id.in_(self.bases)
        )
        question_set: QuestionSet | None = session.scalar(query)
        if question_set is None:
            raise SetNotFound()
        return question_set

    def own_set(self, session: Session, set_id: str) -> QuestionSet:
        """A set that the caller may change. Raises SetNotFound, NotOwner."""
        question_set = self.set_of(session, set_id)
        self.require_owner(session, question_set.knowledge_base_id)
        return question_set

    def run_of(self, session: Session, run_id: str) -> Run:
        """A run that the caller sees. Raises RunNotFound."""
        query = select(Run).where(Run.id == run_id, Run.knowledge_base_id.in_(self.bases))
        run: Run | None = session.scalar(query)
        if run is None:
            raise RunNotFound()
        return run

    def own_run(self, session: Session, run_id: str) -> Run:
        """A run that the caller may delete. Raises RunNotFound, NotOwner."""
        run = self.run_of(session, run_id)
        self.require_owner(session, run.knowledge_base_id)
        return run


async def sight_of(caller: Caller) -> EvaluationSight:
    """What the caller sees now."""
    return EvaluationSight(caller.platform, await scope_of(caller.platform, caller.principal))
