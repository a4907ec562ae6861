"""Methods of answering, as plugins register them: plan → retrieve → check, then the answer is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from pydantic import BaseModel

from builtin_plugins.rag.answering.quotations import Support
from builtin_plugins.rag.passages import Draft, Passage, RetrievedPassages

if TYPE_CHECKING:
    from kernel.sdk import Caller

Verdict = TypeVar("Verdict", bound=BaseModel)

NO_RUNTIME = "no model runtime is configured"
"""Why a method fell back, as answers say it."""

QuestionKind = Literal["simple", "moderate", "complex"]


@dataclass(frozen=True, slots=True)
class AskConfiguration:
    """A way to ask a knowledge base, with the fields of a question's body."""

    method: str = "standard"
    hybrid: bool = True
    parent_context: bool = False
    rerank: bool = False
    top_k: int = 5


@dataclass(frozen=True, slots=True)
class MeasuredChoice:
    """The configuration that measured best for questions of a kind; `evidence` (JSON) says why."""

    configuration: AskConfiguration
    evidence: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What to search for: `text`, by its words and its meaning.

    `imagined` is a passage as it might appear in a document; its meaning is searched for along with that of
    `text`. `top_k` is the number of passages to find, None for the question's own. With `trees`, the
    summaries of document trees are searched, too.
    """

    text: str
    imagined: str | None = None
    top_k: int | None = None
    trees: bool = False


class MethodPhases(Protocol):
    """Another method at work on the same question (`QuestionWork.by`)."""

    async def plan(self) -> SearchPlan:
        """What it would search for."""
        ...

    async def retrieve(self, plan: SearchPlan) -> RetrievedPassages:
        """What it finds."""
        ...

    async def check(self, retrieved: RetrievedPassages) -> RetrievedPassages | Draft:
        """What it would answer from, or an answer."""
        ...


class QuestionWork(Protocol):
    """What a method may do for a question: search, ask the model, report its steps. All within limits.

    `question` is its text, completed if it was a follow-up; `kind` its complexity by its number of words.
    `details` is what the answer's `method_details` will say (JSON). `options` are those of the question, with
    what its pipeline and the defaults add; `chosen_options` names those that the client or
    the pipeline chose.
    """

    caller: Caller
    details: dict[str, Any]

    @property
    def question(self) -> str: ...

    @property
    def kind(self) -> QuestionKind: ...

    @property
    def top_k(self) -> int: ...

    @property
    def options(self) -> AskConfiguration: ...

    @property
    def chosen_options(self) -> Set[str]: ...

    def choose(self, **options: Any) -> AskConfiguration:
        """Change options for all that follows, such as `top_k` or `rerank`; returns all of them.

        Leave the `chosen_options` alone unless the method has a reason. `method` can't be changed: see `by`.
        Without a reranker, `rerank` stays as the question has it.
        """
        ...

    async def search(self, plan: SearchPlan) -> RetrievedPassages:
        """Passages that the caller may see, best first, by the question's filters and options."""
        ...

    async def has_model(self) -> bool:
        """Whether a model runtime is configured; it is not asked."""
        ...

    async def write(self, instruction: str, text: str, *, max_tokens: int = 400) -> str | None:
        """A short text by the model; None without a model runtime or once the question's budget is spent."""
        ...

    async def judge(
        self,
        instruction: str,
        text: str,
        verdict: type[Verdict],
        passages: Sequence[Passage] = (),
        *,
        draft: Draft | None = None,
        keep: int = 1,
    ) -> Verdict | None:
        """The model's verdict, strictly validated; None if there is none. Passages and a draft are passed as
        data, never as part of the instruction.

        `keep` model calls stay reserved for the answer: 0 if there is a draft already.
        """
        ...

    async def draft(self, passages: Sequence[Passage]) -> Draft:
        """The whole answer from these passages, without showing it. Raises AnswerFailed, Unavailable."""
        ...

    def lacks(self) -> str | None:
        """What one more draft would exceed (``8 model calls``); None if the question may cost that much."""
        ...

    async def support(self, passages: Sequence[Passage]) -> Support | None:
        """How well the best passages support an answer, by the plugin that measures it; None without one."""
        ...

    async def measured(self) -> MeasuredChoice | None:
        """What measured best for questions of this kind; None without figures, or over several bases."""
        ...

    def by(self, method: str) -> MethodPhases | None:
        """Another method for this question; None if there is none of this name. Its notes carry its name."""
        ...

    def keywords(self) -> str:
        """The content words of the question; the question itself if it has none."""
        ...

    def step(self, name: str, message: str) -> AbstractContextManager[None]:
        """Measure and report a step of the work; streams show `message`."""
        ...

    def degrade(self, note: str) -> None:
        """Note in `method_details.degraded` that something was not done as requested."""
        ...

    def fall_back(self, note: str) -> None:
        """The same; and the answer's method will be ``standard``, unless another method uses this one."""
        ...


Chosen = Sequence[Passage]
Checked = Sequence[Passage] | Draft


@dataclass(frozen=True, slots=True)
class QueryMethod:
    """A way to answer questions (`register_methods`), by what it does otherwise than ``standard``.

    `plan` says what to search for; without it, the question. `find` searches itself, any number of times, and
    returns passages from `search`, best first; others are dropped. Without it, the plan is searched for.
    `check` returns the passages to answer from, or a draft that is the answer; without it, what was found.
    The answer is then written as for any method.

    `name` is lower case, and what clients send as `method`. `thinks`: a stream reports its steps, as it
    should if the model is asked before the answer. Each phase may take `PLATFORM_RAG_QUESTION_SECONDS`,
    beside its searches and model calls, which have limits of their own.
    """

    name: str
    description: str
    find: Callable[[QuestionWork], Awaitable[Chosen]] | None = None
    plan: Callable[[QuestionWork], Awaitable[SearchPlan]] | None = None
    check: Callable[[QuestionWork, RetrievedPassages], Awaitable[Checked]] | None = None
    thinks: bool = True

    def __post_init__(self) -> None:
        if not self.name or self.name != self.name.lower() or len(self.name) > 32:
            raise ValueError("the name of a method must be lower case, with 1 to 32 characters")
