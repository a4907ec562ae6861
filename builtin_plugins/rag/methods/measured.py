"""What was measured in a knowledge base, for `auto`."""

from __future__ import annotations

from typing import Any

from builtin_plugins.rag import hookspecs
from builtin_plugins.rag.methods.decisions import by_rules
from builtin_plugins.rag.questions.question import Question
from kernel.sdk import contracts

_FIELDS = ("hybrid", "parent_context", "rerank", "top_k")


async def measured(question: Question) -> contracts.MeasuredChoice | None:
    """The measured configuration for questions of this kind; None without one, or with several bases."""
    spec, platform = hookspecs.choose_measured, question.platform
    if len(question.bases) != 1 or not platform.hooks.implementations(spec):
        return None
    base, kind = question.bases[0].id, by_rules(question.text).complexity
    return await platform.database.read(
        lambda session: platform.hooks.ask_now(
            spec, platform=platform, session=session, knowledge_base_id=base, kind=kind
        )
    )


def apply(question: Question, choice: contracts.MeasuredChoice) -> dict[str, Any]:
    """Apply what was measured, except where the question or its pipeline decides; returns what is done."""
    request, chosen = question.request, choice.configuration
    open_fields = [name for name in _FIELDS if name not in request.model_fields_set]
    question.request = request.model_copy(update={name: getattr(chosen, name) for name in open_fields})
    done = {name: getattr(question.request, name) for name in _FIELDS}
    return {"method": chosen.method, **done, "hybrid": question.hybrid}
