"""Methods that plugins register (hook `register_methods`), in the shape of the built-in ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from pydantic import BaseModel

from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.prompting import defused
from builtin_plugins.rag.errors import MethodFailed
from builtin_plugins.rag.methods.method import Method
from builtin_plugins.rag.questions.finding import find
from builtin_plugins.rag.questions.judging import verdict_messages
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.ranked import Ranked, Retrieved, cited_passage
from builtin_plugins.rag.questions.trace import plural
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import ANY_ERROR, PLUGIN_STATES, PlatformError, contracts

_TOKENS = 400
AnyVerdict = TypeVar("AnyVerdict", bound=BaseModel)


class PluginMethod(Method):
    """A method of another plugin, which chooses the passages; the answer is written as for every method."""

    def __init__(self, plugin: str, method: contracts.QueryMethod) -> None:
        self.name = method.name  # type: ignore[misc]  # of this one instance
        self.plugin = plugin
        self._method = method

    async def retrieve(self, question: Question, plan: contracts.SearchPlan) -> Retrieved:
        """The passages that the plugin chose among those it was given. Raises MethodFailed."""
        work = _Work(self.name, question)
        seconds = question.platform.settings_of(RagSettings).question_seconds
        whose = f"The method '{self.name}' of the plugin '{self.plugin}'"
        try:
            async with asyncio.timeout(seconds) as limit:
                chosen = [one.chunk_id for one in await self._method.find(work)]
        except PlatformError:
            raise
        except ANY_ERROR as error:  # boundary: another plugin's code
            question.platform.resource(PLUGIN_STATES).hook_failed(self.plugin, f"method '{self.name}'", error)
            if limit.expired():
                raise MethodFailed(f"{whose} took longer than {plural(seconds, 'second')}") from None
            raise MethodFailed(f"{whose} failed; the server's log says why") from None
        return await work.chosen(chosen)


class _Work:
    """`contracts.QuestionWork` for one question; remembers what it gave out."""

    def __init__(self, name: str, question: Question) -> None:
        self.caller = question.caller
        self.question = question.text
        self.top_k = question.request.top_k
        self._name = name
        self._asked = question
        self._given: dict[str, Ranked] = {}
        self._last: Retrieved | None = None

    async def search(self, plan: contracts.SearchPlan) -> Sequence[contracts.CitedPassage]:
        self._last = await find(self._asked, plan)
        self._given |= {item.passage.chunk_id: item for item in self._last.items}
        return [cited_passage(item) for item in self._last.items]

    async def write(self, instruction: str, text: str) -> str | None:
        messages = (
            contracts.ChatMessage("system", instruction),
            contracts.ChatMessage("user", defused(text)),
        )
        return await self._asked.model.write(self._name, messages, _TOKENS)

    async def judge(
        self,
        instruction: str,
        text: str,
        verdict: type[AnyVerdict],
        passages: Sequence[contracts.CitedPassage] = (),
    ) -> AnyVerdict | None:
        shown = [
            Passage(one.text, one.source, one.score, one.chunk_id, one.document_id, one.page)
            for one in passages
        ]
        return await self._asked.model.judge(self._name, verdict_messages(instruction, text, shown), verdict)

    def step(self, name: str, message: str) -> AbstractContextManager[None]:
        return self._asked.trace.step(name, message)

    def degrade(self, note: str) -> None:
        self._asked.trace.degrade(f"{self._name}: {note}")

    def tell(self, key: str, value: Any) -> None:
        self._asked.trace.details[key] = value

    async def chosen(self, chunks: Sequence[str]) -> Retrieved:
        """The plugin's choice; passages that it was never given are dropped."""
        if self._last is None:
            return (await find(self._asked, contracts.SearchPlan(self.question))).of([])
        return self._last.of([self._given[chunk] for chunk in dict.fromkeys(chunks) if chunk in self._given])
