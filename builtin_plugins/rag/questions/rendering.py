"""Passages and answers in the shape that clients read (wire-facts 11.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.ranked import Ranked, source_of
from builtin_plugins.rag.schemas import Explanation, QueryAnswer

EXTRACTIVE = "extractive"


@dataclass(frozen=True)
class Draft:
    """An answer's text, the passages that are its sources, and the model that wrote it."""

    text: str
    items: Sequence[Ranked]
    model: str = EXTRACTIVE


def render(question: Question, draft: Draft) -> QueryAnswer:
    """The answer; its confidence is the mean score of its sources, 0.0 without any."""
    scores = [item.passage.score for item in draft.items]
    return QueryAnswer(
        answer=draft.text,
        sources=[source_of(item, explain=question.request.explain) for item in draft.items],
        confidence=round(sum(scores) / len(scores), 3) if scores else 0.0,
        model_used=draft.model,
        tokens_used=question.budget.tokens_told,
        output_tokens=question.budget.output_tokens_told,
        model_calls=question.budget.calls,
        method=question.method,
        method_details=_details(question),
        explain=Explanation(steps=question.trace.steps) if question.request.explain else None,
    )


def _details(question: Question) -> dict[str, Any]:
    request, trace = question.request, question.trace
    details = dict(trace.details)
    if request.metadata_filter is not None:
        details["metadata_filter"] = request.metadata_filter.model_dump(exclude_none=True)
    if trace.degraded:
        details["degraded"] = list(trace.degraded)
    return details
