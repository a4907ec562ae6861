"""`hyde`: the model imagines a passage that answers, and the search looks for passages like it.

Gao et al. 2022, "Precise Zero-Shot Dense Retrieval without Relevance Labels". The search vector is halfway
between the question and the imagined passage, the search by words uses the question's own, and what is found
is judged by the question alone.
"""

from __future__ import annotations

from builtin_plugins.rag.api import NO_RUNTIME, QueryMethod, QuestionWork, SearchPlan

_RULES = (
    "Write one short paragraph, as it could appear in a document, that answers the question. "
    "Use the language of the question. Do not say that you are guessing."
)
_TOKENS = 200
_MOST_CHARS = 1200


async def plan(work: QuestionWork) -> SearchPlan:
    """Add an imagined passage to the question; without a model, search for the question itself."""
    with work.step("imagine", "Imagining an answer to search for"):
        text = await work.write(_RULES, work.question, max_tokens=_TOKENS)
    imagined = (text or "").strip()[:_MOST_CHARS]
    if not imagined:
        why = "the model imagined nothing" if await work.has_model() else NO_RUNTIME
        work.fall_back(f"{why}, the question itself was searched for")
        return SearchPlan(work.question)
    work.details["hyde"] = {"hypothetical_chars": len(imagined)}
    return SearchPlan(work.question, imagined=imagined)


HYDE = QueryMethod("hyde", "Searches for what the model imagines as an answer.", plan=plan)
