"""Asking one knowledge base for measurements: reports what was found and which citations hold."""

from __future__ import annotations

from dataclasses import asdict, replace

from builtin_plugins.rag.answering.cited import count_citations
from builtin_plugins.rag.answering.refusing import REFUSALS
from builtin_plugins.rag.errors import AnswerFailed
from builtin_plugins.rag.methods.decisions import by_rules
from builtin_plugins.rag.methods.registry import METHODS
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.ranked import Retrieved, cited_passage
from builtin_plugins.rag.questions.rendering import Draft, render
from builtin_plugins.rag.questions.running import prepared
from builtin_plugins.rag.questions.writing import draft
from builtin_plugins.rag.schemas import QueryRequest
from builtin_plugins.rag.services import loading
from kernel.sdk import Caller, Unavailable, arguments_from_object, contracts


async def ask_measured(
    caller: Caller, kb_id: str, text: str, configuration: contracts.AskConfiguration
) -> contracts.MeasuredAnswer:
    """Ask a knowledge base that the caller may see. An answer that failed is reported as such.

    Raises KnowledgeBaseNotFound, Unprocessable.
    """
    base = await loading.knowledge_base(caller, kb_id)
    request = arguments_from_object(QueryRequest, {**asdict(configuration), "question": text})
    question = Question(caller, [base], request, hybrid_said=True)
    found: Retrieved | Draft | None = None
    try:
        found = await prepared(caller.platform.resource(METHODS).named(request.method), question)
        written = found if isinstance(found, Draft) else await draft(question, found)
    except Unavailable as error:
        failed = _measured(question, found, Draft("", []), failed=str(error.detail))
        return replace(failed, unavailable=not isinstance(error, AnswerFailed))
    return _measured(question, found, written)


def _measured(
    question: Question, found: Retrieved | Draft | None, written: Draft, *, failed: str | None = None
) -> contracts.MeasuredAnswer:
    answer = render(question, written)
    cited, supported = count_citations(written.text, [item.passage for item in written.items])
    return contracts.MeasuredAnswer(
        answer=contracts.PipelineAnswer(
            answer.answer,
            [cited_passage(item) for item in written.items],
            answer.confidence,
            answer.model_used,
            answer.tokens_used,
            answer.method,
        ),
        passages=None if found is None else [cited_passage(item) for item in found.items],
        refused=written.text.startswith(REFUSALS),
        kind=by_rules(question.text).complexity,
        citations=cited,
        citations_supported=supported,
        model_calls=answer.model_calls,
        degraded=question.trace.degraded,
        failed=failed,
    )
