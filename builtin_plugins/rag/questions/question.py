"""One question under way: who asks, where, what for; what it found, spent and noted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from builtin_plugins.rag.answering import support
from builtin_plugins.rag.answering.prompting import Turn
from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.questions.budget import Budget
from builtin_plugins.rag.questions.model import MAX_TOKENS, Model
from builtin_plugins.rag.questions.ranked import Retrieved
from builtin_plugins.rag.questions.trace import Trace
from builtin_plugins.rag.schemas import GenerationConfig, QueryRequest, SearchRequest
from builtin_plugins.rag.services.languages import LANGUAGES
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Caller, Platform


@dataclass
class Inquiry:
    """A search by a caller over knowledge bases that it may see.

    `hybrid_said` tells whether the client or the pipeline asked for hybrid search; by default it is hybrid.
    """

    caller: Caller
    bases: Sequence[KnowledgeBase]
    request: SearchRequest
    hybrid_said: bool = False
    trace: Trace = field(default_factory=Trace)
    _coverage: dict[str, support.Coverage] = field(default_factory=dict, repr=False)
    _assessed: list[tuple[str, Retrieved, support.Support]] = field(default_factory=list, repr=False)

    def support(self, found: Retrieved) -> support.Support:
        """How well passages support an answer to the question; those seen before are not read again."""
        asked = self.request.question
        for question, seen, made in self._assessed:
            if seen is found and question == asked:
                return made
        coverage = self._coverage.setdefault(asked, support.Coverage(asked))
        judged = found.judged
        passages, near = [item.passage for item in judged], [item.dense for item in judged]
        made = support.assess(asked, passages, cosines=near, coverage=coverage)
        self._assessed.append((asked, found, made))
        return made

    @property
    def language(self) -> str | None:
        """The question's, by its ISO 639 code; None where it can't be told. Takes a thread's time."""
        return self.platform.resource(LANGUAGES).of(self.request.question)

    @property
    def platform(self) -> Platform:
        return self.caller.platform

    @property
    def hybrid(self) -> bool:
        return self.request.hybrid is not False


@dataclass
class Question(Inquiry):
    """A question to answer by a method, with the turns before it, oldest first."""

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

    @property
    def text(self) -> str:
        """What is asked."""
        return self.request.question
