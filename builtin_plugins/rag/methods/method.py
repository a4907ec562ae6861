"""What every method is: plan → retrieve → check; the answer is written from what `check` lets through."""

from __future__ import annotations

from typing import ClassVar

from builtin_plugins.rag.questions.finding import find
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.ranked import Retrieved
from builtin_plugins.rag.questions.rendering import Draft
from kernel.sdk import contracts


class Method:
    """A method does in its phases what makes it special; by default a phase does what `standard` does.

    `thinks`: whether a stream reports its steps. A method that asks the model before the answer does.
    """

    name: ClassVar[str]
    thinks: bool = True

    async def plan(self, question: Question) -> contracts.SearchPlan:
        """What to search for."""
        return contracts.SearchPlan(question.text)

    async def retrieve(self, question: Question, plan: contracts.SearchPlan) -> Retrieved:
        """The passages for the plan."""
        return await find(question, plan)

    async def check(
        self, question: Question, plan: contracts.SearchPlan, found: Retrieved
    ) -> Retrieved | Draft:
        """What the answer is to be written from; or an answer that was written and accepted already."""
        return found

    def fall_back(self, question: Question, why: str) -> None:
        """Answer as `standard` does, and say so. A method that uses this one stays what it is."""
        question.trace.degrade(f"{self.name}: {why}")
        if question.method == self.name:
            question.method = "standard"
