"""One question being answered: who asks, where and what; what it has found, spent and noted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.prompting import Turn
from builtin_plugins.rag.answering.weighing import Weighed
from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.questions.budget import Budget
from builtin_plugins.rag.questions.model import MAX_TOKENS, Model
from builtin_plugins.rag.questions.thread import language_of
from builtin_plugins.rag.questions.trace import Trace
from builtin_plugins.rag.schemas import GenerationConfig, QueryRequest, SearchRequest
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Caller, Platform


@dataclass
class Inquiry:
    """A search by a caller over knowledge bases that it may see.

    `hybrid_said`: whether the client or the pipeline requested hybrid search, which is also the default.
    `weighed` and `languages` cache results that several steps need.
    """

    caller: Caller
    bases: Sequence[KnowledgeBase]
    request: SearchRequest
    hybrid_said: bool = False
    trace: Trace = field(default_factory=Trace)
    weighed: dict[tuple[str, tuple[Passage, ...]], Weighed] = field(default_factory=dict, repr=False)
    languages: dict[str, str | None] = field(default_factory=dict, repr=False)

    async def language(self) -> str | None:
        """The question's language as an ISO 639 code; None if it can't be detected."""
        asked = self.request.question
        if asked not in self.languages:
            self.languages[asked] = await language_of(self.platform, asked)
        return self.languages[asked]

    def paused(self) -> AbstractContextManager[None]:
        """Wraps a search, whose time does not count against a budget."""
        return nullcontext()

    @property
    def platform(self) -> Platform:
        return self.caller.platform

    @property
    def hybrid(self) -> bool:
        return self.request.hybrid is not False


@dataclass
class Question(Inquiry):
    """A question to answer by a method, with the previous turns, oldest first."""

    request: QueryRequest
    config: GenerationConfig = field(default_factory=GenerationConfig)
    history: Sequence[Turn] = ()
    method: str = "standard"

    def __post_init__(self) -> None:
        settings, config = self.platform.settings_of(RagSettings), self.config
        self.method = self.request.method
        self.budget = Budget(settings, config.max_tokens or MAX_TOKENS)
        name = self.request.llm_model or config.model or self.bases[0].llm_model
        self.model = Model(self.platform, name, config, self.budget, self.trace)

    def paused(self) -> AbstractContextManager[None]:
        """See `Inquiry.paused`."""
        return self.budget.paused()

    @property
    def text(self) -> str:
        """The text of the question."""
        return self.request.question
