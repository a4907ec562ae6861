"""Methods at work: the registered ones, what each may do for a question, and the limits of their code."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields, replace
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel

from builtin_plugins.inference import api as inference
from builtin_plugins.rag import api
from builtin_plugins.rag.answering.prompting import defused
from builtin_plugins.rag.answering.words import content_stems, stem, words
from builtin_plugins.rag.errors import MethodFailed
from builtin_plugins.rag.passages import Draft, Passage, RetrievedPassages
from builtin_plugins.rag.questions.judging import verdict_messages
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.reporting import plural
from builtin_plugins.rag.questions.rerankers import RERANKER
from builtin_plugins.rag.questions.retrieval_stages import find
from builtin_plugins.rag.questions.support import support
from builtin_plugins.rag.questions.writing import draft
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import ANY_ERROR, PLUGIN_STATES, PlatformError, ResourceKey, Unprocessable

log = logging.getLogger("platform.rag.methods")

P = ParamSpec("P")
T = TypeVar("T")
Made = TypeVar("Made")
AnyVerdict = TypeVar("AnyVerdict", bound=BaseModel)

STANDARD = api.QueryMethod("standard", "Searches for the question, and asks the model once.", thinks=False)
"""The method without phases of its own: what each other falls back to."""

_OPTIONS = tuple(field.name for field in fields(api.AskConfiguration) if field.name != "method")


def kind_of(text: str) -> api.QuestionKind:
    """A question's complexity by its number of words: below 5 simple, below 10 moderate, else complex."""
    count = len(words(text))
    return "simple" if count < 5 else "moderate" if count < 10 else "complex"


class _SearchRecord:
    """What the searches for a question have found: it can be answered from nothing else."""

    def __init__(self) -> None:
        self.last: RetrievedPassages | None = None
        self.drafts: list[Draft] = []
        self._all: set[Passage] = set()
        self._latest: dict[str, Passage] = {}

    def note(self, retrieved: RetrievedPassages) -> RetrievedPassages:
        """Keep in mind what was found."""
        self.last = retrieved
        for passage in (*retrieved.first, *retrieved.passages):
            self._all.add(passage)
            self._latest[passage.chunk_id] = passage
        return retrieved

    def originals(self, passages: Sequence[Passage]) -> list[Passage]:
        """Those that were found, each once and unchanged."""
        own = (one if one in self._all else self._latest.get(one.chunk_id) for one in passages)
        return list({one.chunk_id: one for one in own if one is not None}.values())


class _Limit:
    """The time that a plugin's own code may take; what it waits for here has limits of its own."""

    def __init__(self) -> None:
        self._timeout: asyncio.Timeout | None = None
        self._waits, self._left = 0, 0.0

    @contextmanager
    def over(self, timeout: asyncio.Timeout) -> Iterator[None]:
        """Holds while the plugin's code runs."""
        self._timeout, self._waits = timeout, 0
        try:
            yield
        finally:
            self._timeout = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Wraps work of this plugin; several may be under way at once."""
        timeout, clock = self._timeout, asyncio.get_running_loop().time
        self._waits += 1
        if timeout is not None and self._waits == 1:
            self._left = (timeout.when() or clock()) - clock()
            timeout.reschedule(None)
        try:
            yield
        finally:
            self._waits -= 1
            if timeout is not None and timeout is self._timeout and self._waits == 0:
                timeout.reschedule(clock() + self._left)


class MethodRun:
    """A method at work on one question."""

    def __init__(self, method: Method, question: Question, record: _SearchRecord | None = None) -> None:
        self._method = method
        self._question = question
        self._limit = _Limit()
        self._work = _Work(method.name, question, record or _SearchRecord(), self._limit)

    async def plan(self) -> api.SearchPlan:
        """What to search for."""
        plan = self._method.declared.plan
        if plan is None:
            return api.SearchPlan(self._question.text)
        return await self._called(_as_plan, plan, self._work)

    async def retrieve(self, plan: api.SearchPlan) -> RetrievedPassages:
        """The passages for the plan, or those that the method chose among what it was given."""
        search = self._method.declared.find
        if search is None:
            return await self._work.search(plan)
        return await self._called(self._work.chosen, search, self._work)

    async def check(self, retrieved: RetrievedPassages) -> RetrievedPassages | Draft:
        """The passages to write the answer from, or an answer that is already written and accepted."""
        check = self._method.declared.check
        if check is None:
            return retrieved
        return await self._called(self._work.accepted, check, self._work, retrieved)

    async def _called(
        self,
        read: Callable[[Made], Awaitable[T]],
        phase: Callable[P, Awaitable[Made]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """What the plugin's code made, as read here. Raises MethodFailed."""
        states = self._question.platform.resource(PLUGIN_STATES)
        seconds = self._question.platform.settings_of(RagSettings).question_seconds
        name, plugin = self._method.name, self._method.plugin
        whose = f"The method '{name}' of the plugin '{plugin}'"
        try:
            async with asyncio.timeout(seconds) as timeout:
                with self._limit.over(timeout):
                    return await read(await phase(*args, **kwargs))
        except PlatformError:
            raise
        except ANY_ERROR as error:  # boundary: another plugin's code
            states.hook_failed(plugin, f"method '{name}'", error)
            if timeout.expired():
                raise MethodFailed(f"{whose} took longer than {plural(seconds, 'second')}") from None
            raise MethodFailed(f"{whose} failed; the server's log says why") from None


async def _as_plan(plan: api.SearchPlan) -> api.SearchPlan:
    if not isinstance(plan, api.SearchPlan):
        raise TypeError(f"a plan must be a SearchPlan, not {type(plan).__name__}")
    return plan


class _Work:
    """`api.QuestionWork` for one method and one question."""

    def __init__(self, name: str, question: Question, record: _SearchRecord, limit: _Limit) -> None:
        self.caller = question.caller
        self.details = question.trace.details
        self._name = name
        self._question = question
        self._record = record
        self._limit = limit

    @property
    def question(self) -> str:
        return self._question.text

    @property
    def kind(self) -> api.QuestionKind:
        return kind_of(self._question.text)

    @property
    def top_k(self) -> int:
        return self._question.request.top_k

    @property
    def options(self) -> api.AskConfiguration:
        request = self._question.request
        values = {name: getattr(request, name) for name in _OPTIONS}
        return api.AskConfiguration(request.method, **{**values, "hybrid": self._question.hybrid})

    @property
    def chosen_options(self) -> Set[str]:
        return self._question.request.model_fields_set & set(_OPTIONS)

    def choose(self, **options: Any) -> api.AskConfiguration:
        unknown = options.keys() - set(_OPTIONS)
        if unknown:
            raise TypeError(f"a method can't choose {', '.join(sorted(unknown))}")
        if self._question.platform.resource(RERANKER) is None and "rerank" not in self.chosen_options:
            options.pop("rerank", None)
        self._question.request = self._question.request.model_copy(update=options)
        return self.options

    async def search(self, plan: api.SearchPlan) -> RetrievedPassages:
        with self._limit.paused():
            return self._record.note(await find(self._question, plan))

    async def has_model(self) -> bool:
        return await self._question.model.installed()

    async def write(self, instruction: str, text: str, *, max_tokens: int = 400) -> str | None:
        messages = (
            inference.ChatMessage("system", instruction),
            inference.ChatMessage("user", defused(text)),
        )
        with self._limit.paused():
            return await self._question.model.write(self._name, messages, max_tokens)

    async def judge(
        self,
        instruction: str,
        text: str,
        verdict: type[AnyVerdict],
        passages: Sequence[Passage] = (),
        *,
        draft: Draft | None = None,
        keep: int = 1,
    ) -> AnyVerdict | None:
        messages = verdict_messages(instruction, text, passages, draft=None if draft is None else draft.text)
        with self._limit.paused():
            return await self._question.model.judge(self._name, messages, verdict, keep=keep)

    async def draft(self, passages: Sequence[Passage]) -> Draft:
        own = await self.chosen(passages)
        with self._limit.paused():
            result = await draft(self._question, own)
        self._record.drafts.append(result)
        return result

    def lacks(self) -> str | None:
        budget = self._question.budget
        return budget.lacks(0, budget.answer_tokens(0), keep=0)

    async def support(self, passages: Sequence[Passage]) -> api.Support | None:
        own = await self.chosen(passages)
        with self._limit.paused():
            return await support(self._question, own)

    async def measured(self) -> api.MeasuredChoice | None:
        spec, platform, bases = api.choose_measured, self._question.platform, self._question.bases
        if len(bases) != 1 or not platform.hooks.implementations(spec):
            return None
        base, kind = bases[0].id, self.kind
        return await platform.database.read(
            lambda session: platform.hooks.ask_now(
                spec, platform=platform, session=session, knowledge_base_id=base, kind=kind
            )
        )

    def by(self, method: str) -> api.MethodPhases | None:
        other = self._question.platform.resource(METHODS).get(method)
        return (
            None if other is None else _Delegated(MethodRun(other, self._question, self._record), self._limit)
        )

    def keywords(self) -> str:
        text = self._question.text
        stems = set(content_stems(text))
        return " ".join(word for word in words(text) if stem(word) in stems) or text

    def step(self, name: str, message: str) -> AbstractContextManager[None]:
        return self._question.trace.step(name, message)

    def degrade(self, note: str) -> None:
        self._question.trace.degrade(f"{self._name}: {note}")

    def fall_back(self, note: str) -> None:
        self.degrade(note)
        if self._question.method == self._name:
            self._question.method = STANDARD.name

    async def chosen(self, choice: Sequence[Passage]) -> RetrievedPassages:
        """The plugin's choice; passages that it was never given are dropped."""
        passages, last = self._record.originals(choice), self._record.last
        if last is None:
            return (await self.search(api.SearchPlan(self.question))).of([])
        if isinstance(choice, RetrievedPassages):
            return replace(choice, passages=passages, first=self._record.originals(choice.first))
        return last.of(passages)

    async def accepted(self, choice: Sequence[Passage] | Draft) -> RetrievedPassages | Draft:
        """The plugin's choice, or its draft; one that it wrote itself has no other sources either."""
        if not isinstance(choice, Draft):
            return await self.chosen(choice)
        own = any(choice is one for one in self._record.drafts)
        return choice if own else replace(choice, passages=self._record.originals(choice.passages))


class _Delegated:
    """`api.MethodPhases`: another method's run, whose time is not that of the method that uses it."""

    def __init__(self, run: MethodRun, limit: _Limit) -> None:
        self._run = run
        self._limit = limit

    async def plan(self) -> api.SearchPlan:
        with self._limit.paused():
            return await self._run.plan()

    async def retrieve(self, plan: api.SearchPlan) -> RetrievedPassages:
        with self._limit.paused():
            return await self._run.retrieve(plan)

    async def check(self, retrieved: RetrievedPassages) -> RetrievedPassages | Draft:
        with self._limit.paused():
            return await self._run.check(retrieved)


class Method:
    """A declared method, and the plugin that declared it."""

    def __init__(self, plugin: str, declared: api.QueryMethod) -> None:
        self.plugin = plugin
        self.declared = declared
        self.name, self.thinks = declared.name, declared.thinks

    def begin(self, question: Question) -> MethodRun:
        """Put it to work on a question."""
        return MethodRun(self, question)


class Methods:
    """All methods of this server. Methods of a plugin are hidden while `in_service` says that it isn't."""

    def __init__(
        self,
        declared: Sequence[tuple[str, Sequence[api.QueryMethod]]],
        in_service: Callable[[str], bool],
    ) -> None:
        self._in_service = in_service
        self._methods = {STANDARD.name: Method("rag", STANDARD)}
        for plugin, methods in declared:
            for method in methods:
                if method.name in self._methods:
                    log.error("the method '%s' of '%s' is refused: the name is taken", method.name, plugin)
                else:
                    self._methods[method.name] = Method(plugin, method)

    @property
    def names(self) -> list[str]:
        return [name for name, method in self._methods.items() if self._serves(method)]

    def _serves(self, method: Method) -> bool:
        return method.declared is STANDARD or self._in_service(method.plugin)

    def get(self, name: str) -> Method | None:
        """The method of this name, in lower case, if it is in service."""
        method = self._methods.get(name)
        return method if method is not None and self._serves(method) else None

    def named(self, name: str) -> Method:
        """The same. Raises Unprocessable with the list of names."""
        method = self.get(name)
        if method is None:
            message = f"must be one of {', '.join(self.names)}"
            raise Unprocessable.field(("body", "method"), message, name)
        return method


METHODS: ResourceKey[Methods] = ResourceKey("query methods")
