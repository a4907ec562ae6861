"""The base of all methods: plan → retrieve → check; the answer is written from what `check` returns."""

from __future__ import annotations

from typing import ClassVar

from builtin_plugins.rag.questions.finding import find
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.ranked import Retrieved
from builtin_plugins.rag.questions.rendering import Draft
from kernel.sdk import contracts


class Method:
    """A method overrides the phases in which it differs from `standard`.

    `thinks`: whether a stream reports its steps; true for methods that ask the model before the answer.
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
        """The passages to write the answer from, or an answer that is already written and accepted."""
        return found

    def fall_back(self, question: Question, why: str) -> None:
        """Note the fallback, and report `standard` as the method unless another method is using this one."""
        question.trace.degrade(f"{self.name}: {why}")
        if question.method == self.name:
            question.method = "standard"
