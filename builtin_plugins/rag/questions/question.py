"""One question being answered: who asks, where and what; what it has found, spent and noted."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel, ValidationError

from builtin_plugins.inference import api as inference
from builtin_plugins.rag.answering.prompting import EarlierTurn
from builtin_plugins.rag.answering.quotations import Support
from builtin_plugins.rag.errors import AnswerFailed, GenerationFailed
from builtin_plugins.rag.filters.binding import BoundFilter
from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.passages import Passage
from builtin_plugins.rag.questions.limiting import LimitingPeriod
from builtin_plugins.rag.questions.reporting import Trace, plural
from builtin_plugins.rag.schemas import GenerationConfig, QueryRequest, SearchRequest
from builtin_plugins.rag.services.loading import LANGUAGES
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Caller, GatewayTimeout, Platform, PlatformError, ResourceKey

_CHARS_OF_A_TOKEN = 4
_LEAST_TOKENS = 64


class Budget:
    """What a question has spent, and whether it may spend more.

    A preparatory model call is allowed while enough is left for the answer itself. The answer is always
    allowed, with the remaining tokens and seconds, and at least 64 tokens.
    """

    def __init__(self, settings: RagSettings, answer_tokens: int) -> None:
        self._settings = settings
        self._answer_tokens = answer_tokens
        self._started = time.monotonic()
        self._estimated = 0
        self.calls = 0
        self.tokens: int | None = None
        self._output: int | None = None
        self._uncounted = False

    @property
    def tokens_told(self) -> int | None:
        """Prompt and output tokens of all calls; None if the runtime didn't report them for some call."""
        return None if self._uncounted else self.tokens

    @property
    def output_tokens_told(self) -> int | None:
        """Output tokens of all calls; None if the runtime didn't report them for some call."""
        return None if self._uncounted else self._output

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock during other work: a search may wait for its embedding model to load."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._started += time.monotonic() - started

    @property
    def seconds_left(self) -> float:
        return self._settings.question_seconds - (time.monotonic() - self._started)

    @property
    def step_seconds(self) -> float:
        """How long a preparatory call may take; half of the question's time is kept for the answer."""
        reserve = self._settings.question_seconds / 2
        return max(0.0, min(self._settings.step_seconds, self.seconds_left - reserve))

    def lacks(self, prompt_chars: int, tokens: int, *, keep: int = 1) -> str | None:
        """What a further call would exceed with `keep` calls reserved for the answer; None if nothing."""
        settings = self._settings
        call_tokens = prompt_chars // _CHARS_OF_A_TOKEN + tokens
        reserve = (settings.answer_chars // _CHARS_OF_A_TOKEN + self._answer_tokens) if keep else 0
        if self.calls + 1 + keep > settings.question_model_calls:
            return plural(settings.question_model_calls, "model call")
        if self._estimated + call_tokens + reserve > settings.question_tokens:
            return f"{settings.question_tokens} tokens"
        if self.seconds_left < settings.question_seconds / 2:
            return f"half of {plural(settings.question_seconds, 'second')}"
        return None

    def answer_tokens(self, prompt_chars: int) -> int:
        """How many tokens an answer may have."""
        left = self._settings.question_tokens - self._estimated - prompt_chars // _CHARS_OF_A_TOKEN
        return max(_LEAST_TOKENS, min(self._answer_tokens, left))

    def begin(self) -> None:
        """Count a call that begins."""
        self.calls += 1

    def end(self, prompt_chars: int, text_chars: int, reported: int | None, output: int | None) -> None:
        """Count what a call has used: the runtime's token counts, or an estimate where they are None."""
        self._estimated += (prompt_chars + text_chars) // _CHARS_OF_A_TOKEN if reported is None else reported
        if reported is None:
            self._uncounted = True
        else:
            self.tokens = (self.tokens or 0) + reported
            self._output = (self._output or 0) + (output or 0)


log = logging.getLogger("platform.rag.generation")

TEMPERATURE = 0.7
MAX_TOKENS = 2000
_MOST_CHARS_OF_A_TOKEN = 32  # more than in any language or code
_SHOWN_AGAIN = 2000

AnyVerdict = TypeVar("AnyVerdict", bound=BaseModel)


class Model:
    """The model that a question is answered with; `name` None is the runtime's default."""

    def __init__(
        self, platform: Platform, name: str | None, config: GenerationConfig, budget: Budget, trace: Trace
    ) -> None:
        self._platform = platform
        self._name = name
        self._config = config
        self._budget = budget
        self._trace = trace

    async def installed(self) -> bool:
        """Whether a runtime is configured, without asking it."""
        stream = self._ask((), 0.0, 1, {})
        if stream is None:
            return False
        await stream.aclose()
        return True

    def answer(self, messages: Sequence[inference.ChatMessage]) -> inference.Generation | None:
        """The answer, by the pipeline's configuration; None without a runtime.

        Nothing is sent before the first piece is awaited. Raises Unavailable.
        """
        config = self._config
        stream = self._ask(
            messages,
            TEMPERATURE if config.temperature is None else config.temperature,
            tokens := self._budget.answer_tokens(_length(messages)),
            config.model_extra or {},
        )
        return None if stream is None else self._counted(stream, messages, tokens, self._budget.seconds_left)

    async def write(
        self,
        what: str,
        messages: Sequence[inference.ChatMessage],
        max_tokens: int,
        *,
        options: Mapping[str, Any] | None = None,
        temperature: float = 0.0,
        keep: int = 1,
    ) -> str | None:
        """Write an intermediate text, cut off if it is too long.

        None without a runtime; also None, noted as `what`, when the budget is spent or the model takes too
        long. `keep` calls stay reserved for the answer. Raises Unavailable when the runtime fails.
        """
        if lacking := self._budget.lacks(_length(messages), max_tokens, keep=keep):
            self._trace.degrade(f"{what}: left out, as a question may cost at most {lacking}")
            return None
        helper = await self._platform.hooks.ask(inference.choose_helper_model, platform=self._platform)
        stream = self._ask(messages, temperature, max_tokens, options or {}, helper)
        if stream is None:
            return None
        seconds = self._budget.step_seconds
        text: list[str] = []
        try:
            async with aclosing(self._counted(stream, messages, max_tokens, seconds)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, str):
                        text.append(piece)
        except _Overlong:
            self._trace.degrade(f"{what}: the model wrote too much and was stopped")
        except _Overdue:
            self._trace.degrade(
                f"{what}: the model took longer than {plural(round(seconds), 'second')} and was stopped"
            )
            return None
        except _Silent:
            self._trace.degrade(f"{what}: the model did not respond in time and was stopped")
            return None
        return "".join(text)

    async def judge(
        self,
        what: str,
        messages: Sequence[inference.ChatMessage],
        verdict: type[AnyVerdict],
        *,
        keep: int = 1,
    ) -> AnyVerdict | None:
        """The model's verdict, requested as JSON by its schema and parsed strictly; None after two tries.

        Raises Unavailable when the runtime fails.
        """
        form, rules = _form_of(verdict)
        prompt = [inference.ChatMessage("system", f"{messages[0].content}\n{rules}"), *messages[1:]]
        tokens = self._platform.settings_of(RagSettings).verdict_tokens
        for _ in range(2):
            text = await self.write(what, prompt, tokens, options={"response_format": form}, keep=keep)
            if text is None:
                return None
            try:
                return verdict.model_validate_json(text.strip(), strict=True)
            except ValidationError:
                prompt += [
                    inference.ChatMessage("assistant", text[:_SHOWN_AGAIN]),
                    inference.ChatMessage("user", f"That was not the JSON object asked for. {rules}"),
                ]
        self._trace.degrade(f"{what}: the model gave no valid JSON")
        return None

    def _ask(
        self,
        messages: Sequence[inference.ChatMessage],
        temperature: float,
        max_tokens: int,
        options: Mapping[str, Any],
        helper: str | None = None,
    ) -> inference.Generation | None:
        return self._platform.hooks.ask_now(
            inference.generate_text,
            platform=self._platform,
            messages=messages,
            model=helper or self._name,
            temperature=temperature,
            max_tokens=max_tokens,
            options=options,
        )

    async def _counted(
        self,
        stream: inference.Generation,
        messages: Sequence[inference.ChatMessage],
        max_tokens: int,
        seconds: float,
    ) -> inference.Generation:
        """Limit and count the stream. Raises Unavailable, _Overlong, _Overdue, _Silent."""
        self._budget.begin()
        clock = asyncio.get_running_loop().time
        written, reported, output, until = 0, None, None, clock() + seconds
        async with aclosing(stream):
            try:
                while (item := await _next(stream, until - clock())) is not None:
                    if isinstance(item, str):
                        written += len(item)
                        if written > max_tokens * _MOST_CHARS_OF_A_TOKEN:
                            raise _Overlong
                    else:
                        reported, output = item.tokens_used, item.output_tokens
                    yield item
            finally:
                self._budget.end(_length(messages), written, reported, output)


class _Overlong(AnswerFailed):
    """The model wrote much more than was requested."""

    default_detail = "The model wrote much more than max_tokens allows; check the model runtime"


class _Silent(AnswerFailed):
    """The runtime was silent for too long."""


class _Overdue(AnswerFailed):
    """The model took longer than the time left."""

    default_detail = "The model took longer than a question may take; ask for less, or use a faster model"


async def _next(stream: inference.Generation, seconds: float) -> str | inference.Completion | None:
    try:
        async with asyncio.timeout(max(seconds, 0.0)):
            return await anext(stream, None)
    except TimeoutError:
        raise _Overdue from None
    except GatewayTimeout as error:
        raise _Silent(error.detail) from None
    except PlatformError:
        raise
    except Exception:  # boundary: another plugin's runtime may fail in any way
        log.exception("generation failed")
        raise GenerationFailed() from None


@lru_cache(maxsize=64)
def _form_of(verdict: type[BaseModel]) -> tuple[Mapping[str, Any], str]:
    """The `response_format` for a verdict's schema, and the instruction for the model."""
    schema = verdict.model_json_schema()
    form = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": schema, "strict": True}}
    return form, f"Answer with one JSON object and nothing else. Its schema: {json.dumps(schema)}"


def _length(messages: Sequence[inference.ChatMessage]) -> int:
    return sum(len(message.content) for message in messages)


P = ParamSpec("P")
T = TypeVar("T")

QUESTION_THREAD: ResourceKey[ThreadPoolExecutor] = ResourceKey("rag question thread")


async def in_thread(platform: Platform, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `fn` in that thread, in the caller's context (contextvars)."""
    work = partial(contextvars.copy_context().run, fn, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(platform.resource(QUESTION_THREAD), work)


async def language_of(platform: Platform, question: str) -> str | None:
    """The language of a question as an ISO 639 code; None if it can't be detected.

    Once the model is loaded, this doesn't use the thread: detection takes less time than the switch, and
    would delay the question's embedding, which runs at the same time.
    """
    detector = platform.resource(LANGUAGES)
    return detector.of(question) if detector.is_loaded else await in_thread(platform, detector.of, question)


@asynccontextmanager
async def open_question_thread(_platform: Platform) -> AsyncIterator[ThreadPoolExecutor]:
    """Open this process's thread, which starts with the first question."""
    threads = ThreadPoolExecutor(1, "platform-questions")
    try:
        yield threads
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


@dataclass
class Inquiry:
    """A search by a caller over knowledge bases that it may see, in the documents that the filters leave.

    `matched` is what passages must answer, if not the question as it is: without the words of its period.

    `requests_hybrid`: whether the client or the pipeline requested hybrid search, which is also the default.
    `period` is the one that limits the documents, if any. `supports` and `languages` cache results that
    several steps need.
    """

    caller: Caller
    bases: Sequence[KnowledgeBase]
    request: SearchRequest
    documents: BoundFilter
    requests_hybrid: bool = False
    trace: Trace = field(default_factory=Trace)
    supports: dict[tuple[str, tuple[Passage, ...]], Support | None] = field(default_factory=dict, repr=False)
    languages: dict[str, str | None] = field(default_factory=dict, repr=False)
    period: LimitingPeriod | None = None
    matched: str | None = None

    async def language(self) -> str | None:
        """The question's language as an ISO 639 code; None if it can't be detected."""
        text = self.request.question
        if text not in self.languages:
            self.languages[text] = await language_of(self.platform, text)
        return self.languages[text]

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
    history: Sequence[EarlierTurn] = ()
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
