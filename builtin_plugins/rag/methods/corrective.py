"""`corrective`: grade what was found; if it is weak, search again with better words.

After Yan et al. 2024, "Corrective Retrieval Augmented Generation". The retrieval's own calibrated measure
(`answering.weighing`) grades first, and the model moves that grade by one step at most: no retrieved text can
talk itself up from the lowest grade to the highest. The words of the second search come only from the
question.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from builtin_plugins.rag.answering.prompting import defused
from builtin_plugins.rag.answering.words import content_stems, stem, words
from builtin_plugins.rag.methods.method import Method
from builtin_plugins.rag.questions.finding import find
from builtin_plugins.rag.questions.judging import verdict_messages
from builtin_plugins.rag.questions.model import NO_RUNTIME
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.ranked import Retrieved
from builtin_plugins.rag.questions.rendering import Draft
from builtin_plugins.rag.questions.weighing import weighed
from kernel.sdk import contracts

Grade = Literal["incorrect", "ambiguous", "correct"]
_GRADES: tuple[Grade, ...] = ("incorrect", "ambiguous", "correct")
_SURE = 0.5
_ALIKE = 0.02  # adding one word to the query changes the measure of the same passages this much
_REWRITE_TOKENS = 80
_MOST_CHARS = 400
_RULES = (
    "You grade search results. Grade the passages as a whole: 'correct' if at least one answers the "
    "question, 'ambiguous' if they touch it without answering it, 'incorrect' if none has to do with it."
)
_REWRITE = (
    "Rewrite the question as a search query: other words for the same thing, names and numbers kept, in the "
    "language of the question. Write the query alone, on one line."
)


class Graded(BaseModel):
    """The model's answer."""

    model_config = ConfigDict(extra="forbid")

    grade: Grade


class Corrective(Method):
    """Without a model, only the calibrated measure grades, and the second search uses the content words."""

    name = "corrective"

    async def check(
        self, question: Question, plan: contracts.SearchPlan, found: Retrieved
    ) -> Retrieved | Draft:
        """What was found, or what a second search found unless that is worse."""
        with question.trace.step("grade", "Grading the passages"):
            grade = await self._grade(question, found)
        details = {"grade": grade, "score": _GRADES.index(grade) / 2, "corrected": False}
        question.trace.details["corrective"] = details
        if grade == "correct":
            return found
        with question.trace.step("rewrite", "Searching with other words"):
            query = await self._rewritten(question)
            more = await find(question, contracts.SearchPlan(query))
        details["refined_query_chars"] = len(query)
        if not more.items or await _is_worse(question, more, found):
            details["still_insufficient"] = True
            return found
        details["corrected"] = True
        if await calibrated(question, more) != "correct":
            details["still_insufficient"] = True
        return more

    async def _grade(self, question: Question, found: Retrieved) -> Grade:
        own = await calibrated(question, found)
        messages = verdict_messages(_RULES, question.text, found.passages)
        verdict = await question.model.judge(self.name, messages, Graded) if found.items else None
        if verdict is None:
            why = "graded by the retrieval's own scores"
            if not await question.model.installed():
                question.trace.degrade(f"{self.name}: {NO_RUNTIME}, {why}")
            elif found.items:
                question.trace.degrade(f"{self.name}: {why}")
            return own
        at, wanted = _GRADES.index(own), _GRADES.index(verdict.grade)
        return _GRADES[max(at - 1, min(at + 1, wanted))]

    async def _rewritten(self, question: Question) -> str:
        asked = (
            contracts.ChatMessage("system", _REWRITE),
            contracts.ChatMessage("user", defused(question.text)),
        )
        text = await question.model.write(self.name, asked, _REWRITE_TOKENS)
        line = next((line for line in (text or "").strip().splitlines() if line.strip()), "")
        return line.strip(" \"'")[:_MOST_CHARS] or keywords(question.text)


async def _is_worse(question: Question, more: Retrieved, found: Retrieved) -> bool:
    """Whether a second search loses the answer, or its shown passages measure clearly lower."""
    if (await weighed(question, found)).supported and not (await weighed(question, more)).supported:
        return True
    return await _shown(question, more) < await _shown(question, found) - _ALIKE


async def _shown(question: Question, found: Retrieved) -> float:
    """Measure the passages that would be shown, not those that decide whether there is an answer."""
    return (await weighed(question, found.of(found.items))).sure


async def calibrated(question: Question, found: Retrieved) -> Grade:
    """The grade that the retrieval's own measure gives."""
    measured = await weighed(question, found)
    if measured.supported and measured.sure >= _SURE:
        return "correct"
    return "ambiguous" if measured.enough >= measured.how.least / 2 else "incorrect"


def keywords(text: str) -> str:
    """The content words of a question; the question itself if it has none."""
    wanted = set(content_stems(text))
    return " ".join(word for word in words(text) if stem(word) in wanted) or text
