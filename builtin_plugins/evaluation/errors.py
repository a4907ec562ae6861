"""Errors of the routes."""

from __future__ import annotations

from kernel.sdk import Conflict, Forbidden, NotFound, Unavailable


class CandidateNotFound(NotFound):
    code = "candidate_not_found"
    default_detail = "Candidate not found"


class EvaluationBaseNotFound(NotFound):
    code = "knowledge_base_not_found"
    default_detail = "Knowledge base not found"


class SetNotFound(NotFound):
    code = "evaluation_set_not_found"
    default_detail = "Evaluation set not found"


class RunNotFound(NotFound):
    code = "evaluation_run_not_found"
    default_detail = "Evaluation run not found"


class QuestionNotFound(NotFound):
    code = "evaluation_question_not_found"
    default_detail = "Question not found"


class NotSetOwner(Forbidden):
    code = "not_owner"
    default_detail = "Only the owner of the knowledge base may do this"


class NothingToAsk(Conflict):
    code = "evaluation_set_empty"
    default_detail = "The set has no questions; add some first"


class NoKnowledgeBases(Unavailable):
    code = "knowledge_bases_unavailable"
    default_detail = "No active plugin provides knowledge bases; ask the operator to enable rag"
