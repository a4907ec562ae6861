"""Asking one knowledge base for measurements: reports what was found and which citations hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from builtin_plugins.rag import api
from builtin_plugins.rag.answering.citation_support import count_citations
from builtin_plugins.rag.answering.refusal_texts import REFUSALS
from builtin_plugins.rag.errors import AnswerFailed
from builtin_plugins.rag.filters.binding import FilterSource, bound
from builtin_plugins.rag.passages import Draft, RetrievedPassages
from builtin_plugins.rag.questions.asking import prepared
from builtin_plugins.rag.questions.methods import METHODS, kind_of
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.writing import draft, render
from builtin_plugins.rag.schemas import QueryRequest
from builtin_plugins.rag.services import loading
from builtin_plugins.tools.api import arguments_from_object
from kernel.sdk import Caller, Unavailable


async def ask_measured(
    caller: Caller,
    kb_id: str,
    text: str,
    configuration: api.AskConfiguration,
    metadata_filter: Mapping[str, Any] | None,
) -> api.MeasuredAnswer:
    """Ask a knowledge base that the caller may see. An answer that failed is reported as such.

    Raises KnowledgeBaseNotFound, Unprocessable.
    """
    base = await loading.knowledge_base(caller, kb_id)
    sent = {**asdict(configuration), "question": text, "metadata_filter": metadata_filter}
    request = arguments_from_object(QueryRequest, sent)
    documents = await bound(caller, [base.id], FilterSource(request.metadata_filter))
    question = Question(caller, [base], request, documents, requests_hybrid=True)
    outcome: RetrievedPassages | Draft | None = None
    try:
        outcome = await prepared(caller.platform.resource(METHODS).named(request.method), question)
        written = outcome if isinstance(outcome, Draft) else await draft(question, outcome)
    except Unavailable as error:
        failed = _measured(question, outcome, Draft("", []), failed=str(error.detail))
        return replace(failed, unavailable=not isinstance(error, AnswerFailed))
    return _measured(question, outcome, written)


def _measured(
    question: Question,
    retrieved: RetrievedPassages | Draft | None,
    written: Draft,
    *,
    failed: str | None = None,
) -> api.MeasuredAnswer:
    answer = render(question, written)
    cited, supported = count_citations(written.text, written.passages)
    return api.MeasuredAnswer(
        answer=api.PipelineAnswer(
            answer.answer,
            written.passages,
            answer.confidence,
            answer.model_used,
            answer.tokens_used,
            answer.method,
        ),
        passages=None if retrieved is None else retrieved.passages,
        refused=written.text.startswith(REFUSALS),
        kind=kind_of(question.text),
        citations=cited,
        citations_supported=supported,
        model_calls=answer.model_calls,
        degraded=question.trace.degraded,
        failed=failed,
    )
