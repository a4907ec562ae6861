"""`self_rag`: write a draft, have it judged, and search for what it lacks.

After Asai et al. 2023, "Self-RAG", but one model judges its own draft instead of a trained critic. There are
at most two drafts; the better one is the answer.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from builtin_plugins.rag.errors import AnswerFailed
from builtin_plugins.rag.methods.method import Method
from builtin_plugins.rag.questions.finding import find
from builtin_plugins.rag.questions.judging import verdict_messages
from builtin_plugins.rag.questions.model import NO_RUNTIME
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.ranked import Retrieved
from builtin_plugins.rag.questions.rendering import Draft
from builtin_plugins.rag.questions.writing import draft
from kernel.sdk import contracts

ITERATIONS = 2
THRESHOLD = 0.7
_RULES = (
    "You judge a draft of an answer. 'grounded' (0 to 1): how much of it the passages say. 'complete' "
    "(0 to 1): how well it answers the question. 'search': what to search for to make it better, in a few "
    "words; empty if nothing is missing."
)

Share = Annotated[float, Field(ge=0, le=1)]


class Judged(BaseModel):
    """The model's answer."""

    model_config = ConfigDict(extra="forbid")

    grounded: Share
    complete: Share
    search: Annotated[str, Field(max_length=400)]

    @property
    def score(self) -> float:
        return min(self.grounded, self.complete)


class SelfRag(Method):
    """Without a model or a verdict, this is the same as `standard`."""

    name = "self_rag"

    async def check(
        self, question: Question, plan: contracts.SearchPlan, found: Retrieved
    ) -> Retrieved | Draft:
        """The accepted draft; the passages if there is no model to judge one."""
        details = {"iterations": 1, "evaluated": False, "threshold_met": None, "refined": False}
        question.trace.details[self.name] = details
        if not await question.model.installed():
            question.trace.degrade(f"{self.name}: {NO_RUNTIME} that could judge an answer")
            return found
        best: tuple[float, Draft] | None = None
        for iteration in range(1, ITERATIONS + 1):
            details["iterations"] = iteration
            made = await self._drafted(question, found, again=best is not None)
            if made is None:
                details["refined"] = False
                break
            with question.trace.step("judge", "Judging the draft"):
                judged = await self._judged(question, found, made)
            if judged is None:
                return made if best is None else best[1]
            if best is None or judged.score > best[0]:
                best = (judged.score, made)
            details |= {"evaluated": True, "threshold_met": best[0] >= THRESHOLD}
            if best[0] >= THRESHOLD or iteration == ITERATIONS or not self._may_refine(question, judged):
                break
            details["refined"] = True
            more = await find(question, contracts.SearchPlan(judged.search))
            found = _together(found, more, question.request.top_k)
        assert best is not None
        return best[1]

    async def _drafted(self, question: Question, found: Retrieved, *, again: bool) -> Draft | None:
        """A draft; None if the second one fails, so that the first is kept."""
        try:
            with question.trace.step("draft", "Drafting an answer"):
                return await draft(question, found)
        except AnswerFailed as error:
            if not again:
                raise
            question.trace.degrade(f"{self.name}: not refined, the second draft failed: {error.detail}")
            return None

    async def _judged(self, question: Question, found: Retrieved, made: Draft) -> Judged | None:
        messages = verdict_messages(_RULES, question.text, found.passages, draft=made.text)
        return await question.model.judge(self.name, messages, Judged, keep=0)

    def _may_refine(self, question: Question, judged: Judged) -> bool:
        if not judged.search.strip():
            return False
        lacking = question.budget.lacks(0, question.budget.answer_tokens(0), keep=0)
        if lacking:
            question.trace.degrade(f"{self.name}: not refined, as a question may cost at most {lacking}")
        return lacking is None


def _together(found: Retrieved, more: Retrieved, top_k: int) -> Retrieved:
    """The best of both searches, each passage once; up to half of them are new."""
    known = {item.passage.chunk_id for item in found.items}
    fresh = [item for item in more.items if item.passage.chunk_id not in known]
    kept = list(found.items[: max(1, top_k - len(fresh[: top_k // 2]))])
    return found.of([*kept, *fresh[: top_k - len(kept)]])
