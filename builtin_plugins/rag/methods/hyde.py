"""`hyde`: the model imagines a passage that answers, and the search looks for passages like it.

Gao et al. 2022, "Precise Zero-Shot Dense Retrieval without Relevance Labels". The search vector is halfway
between the question and the imagined passage, the search by words uses the question's own, and what is found
is judged by the question alone.
"""

from __future__ import annotations

from builtin_plugins.rag.answering.prompting import defused
from builtin_plugins.rag.methods.method import Method
from builtin_plugins.rag.questions.model import NO_RUNTIME
from builtin_plugins.rag.questions.question import Question
from kernel.sdk import contracts

_RULES = (
    "Write one short paragraph, as it could appear in a document, that answers the question. "
    "Use the language of the question. Do not say that you are guessing."
)
_TOKENS = 200
_MOST_CHARS = 1200


class Hyde(Method):
    """Without a model, or if it imagines nothing, the question itself is searched for."""

    name = "hyde"

    async def plan(self, question: Question) -> contracts.SearchPlan:
        """Add an imagined passage to the question."""
        asked = (
            contracts.ChatMessage("system", _RULES),
            contracts.ChatMessage("user", defused(question.text)),
        )
        with question.trace.step("imagine", "Imagining an answer to search for"):
            text = await question.model.write(self.name, asked, _TOKENS)
        imagined = (text or "").strip()[:_MOST_CHARS]
        if not imagined:
            why = "the model imagined nothing" if await question.model.installed() else NO_RUNTIME
            self.fall_back(question, f"{why}, the question itself was searched for")
            return contracts.SearchPlan(question.text)
        question.trace.details["hyde"] = {"hypothetical_chars": len(imagined)}
        return contracts.SearchPlan(question.text, imagined=imagined)
