"""The single way to call models: finds the runtime, checks that the caller may use it, counts the use."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from builtin_plugins.inference import api as inference
from builtin_plugins.inference.api import Embedded
from builtin_plugins.models.addresses import Kind
from builtin_plugins.models.connections.rows import DefaultModels
from builtin_plugins.models.local.runtime import LocalRuntime
from builtin_plugins.models.names import canonical
from builtin_plugins.models.purposes import prepared
from builtin_plugins.models.runtimes.characters import Characters, mended
from builtin_plugins.models.runtimes.errors import (
    ModelRuntimeError,
    RuntimeLacksModel,
    RuntimeRefused,
    RuntimeTimeout,
)
from builtin_plugins.models.runtimes.protocol import (
    GenerationRequest,
    ModelInfo,
    ModelRuntime,
    TextDelta,
)
from builtin_plugins.models.services.caps import capped, capped_options
from builtin_plugins.models.services.media import refuse_addresses
from builtin_plugins.models.services.rules import Rules
from builtin_plugins.models.services.spans import (
    begin_chat,
    embedding_span,
    inside,
    note_embedded,
    note_generated,
    note_turn,
)
from builtin_plugins.models.services.usage import ModelUsage
from builtin_plugins.models.settings import ModelsSettings
from kernel.sdk import GatewayTimeout, PlatformError, ResourceKey, Unavailable
from kernel.sdk.telemetry import Tracing, note_span_error

if TYPE_CHECKING:
    from prometheus_client import Histogram

log = logging.getLogger("platform.models")

_OBJECTIONS: Final = frozenset({400, 422, 501})
_LISTED_FOR: Final = 30.0
_ASK_AGAIN: Final = 2.0


@dataclass
class Configured:
    """A runtime with its name and its last list of models. `is_here`: it runs on this machine."""

    name: str
    kind: Kind | Literal["local"]
    runtime: ModelRuntime
    is_here: bool
    listed: Sequence[ModelInfo] = ()
    listed_at: float = -1e9
    failed: bool = False
    _answered: asyncio.Event | None = None

    async def look(self, at_most: float = 0.0) -> Sequence[ModelInfo]:
        """Its models, from a list at most `at_most` seconds old; the last known ones if it doesn't answer.

        While one caller asks, others wait for the answer, unless an older list suffices for them.
        """
        if time.monotonic() - self.listed_at > at_most:
            await self._ask()
        elif self._answered is not None and at_most < _LISTED_FOR:
            await self._answered.wait()
            return await self.look(at_most)
        return self.listed

    async def _ask(self) -> None:
        before, self.listed_at = self.listed_at, time.monotonic()
        answered = self._answered = asyncio.Event()
        try:
            self.listed, self.failed = await self.runtime.models(), False
        except ModelRuntimeError as error:
            self.failed = True
            log.warning("the model runtime '%s' does not list its models: %s", self.name, error.detail)
        except asyncio.CancelledError:  # the caller that asked has left: the next one asks
            self.listed_at = before
            raise
        finally:
            if self._answered is answered:
                self._answered = None
            answered.set()

    def lists(self, model: str) -> bool:
        """Whether its last list had that model."""
        if isinstance(self.runtime, LocalRuntime):
            return self.runtime.knows(model)
        return self.find(model) is not None

    def find(self, model: str) -> str | None:
        """The name under which its last list had that model."""
        return next((info.id for info in self.listed if canonical(info.id) == canonical(model)), None)

    def listed_name(self, model: str) -> str | None:
        """The name if it lists that model; None for what may be arbitrary text."""
        return model if self.lists(model) else None


class Models:
    """All runtimes of one platform, in their order; local files come last."""

    def __init__(
        self,
        servers: Sequence[Configured],
        local: LocalRuntime,
        settings: ModelsSettings,
        rules: Rules,
        usage: ModelUsage,
        durations: Histogram,
        tracing: Tracing,
    ) -> None:
        self.servers = servers
        """Those of the settings, then the connected ones; replaced as a whole when these change."""
        self.defaults = DefaultModels()
        self.local = local
        self._here = Configured("local", "local", local, is_here=True)
        self.rules = rules
        self.usage = usage
        self._settings = settings
        self._durations = durations
        self._tracing = tracing

    @property
    def all(self) -> list[Configured]:
        """The servers, then this machine's own models."""
        return [*self.servers, self._here]

    @property
    def default_model(self) -> str:
        """The model that answers where none is named: the operator's, the administrators' or the usual."""
        return self._settings.answers_model or self.defaults.answers or self._settings.llm_model

    async def helper_model(self) -> str | None:
        """The administrators' model for helping work, if there is one that the caller may call."""
        model = self.defaults.helpers
        if model is None:
            return None
        prefix, slash, rest = model.partition("/")
        is_served = bool(slash) and any(configured.name == prefix for configured in self.all)
        return model if await self.rules.permits(rest if is_served else model) else None

    def may_have(self, model: str | None) -> bool:
        """Whether there is anything to call: a server, or a file of that name.

        Local files are only used by default if a setting names one: a file put into the folder just to try it
        out must not replace the extractive answers.
        """
        return bool(self.servers) or self.local.knows(self._local_name(model or self.default_model))

    async def choose(self, model: str) -> tuple[Configured, str]:
        """Which runtime has a model, and under which name. ``runtime/model`` may name one of our runtimes."""
        by_name = {configured.name: configured for configured in self.all}
        prefix, slash, rest = model.partition("/")
        if len(self.servers) == 1 and not self.local.has_files and not (slash and prefix in by_name):
            return self.servers[0], model
        for configured in self.all:
            await configured.look(_LISTED_FOR)
            if configured.lists(model):
                return configured, model
        if slash and prefix in by_name:
            return by_name[prefix], rest
        return await self._look_again(model)

    async def generate(
        self,
        messages: Sequence[inference.ChatMessage],
        model: str | None,
        temperature: float,
        max_tokens: int,
        options: Mapping[str, Any],
    ) -> inference.Generation:
        """See the hook `generate_text`."""
        try:
            chosen, name = await self.choose(model or self.default_model)
        except RuntimeLacksModel as error:
            raise Unavailable(error.detail) from None
        rule = await self.rules.admit(name)
        request = GenerationRequest(
            model=name,
            messages=messages,
            temperature=temperature,
            max_tokens=capped(max_tokens, rule),
            options=capped_options(options, rule),
        )
        started, tokens, failed = time.perf_counter(), None, True
        span = begin_chat(self._tracing, chosen.listed_name(name), chosen.kind)
        try:
            characters = Characters()
            async with aclosing(inside(span, _stream(chosen.runtime, request))) as stream:
                async for item in stream:
                    if isinstance(item, inference.Completion):
                        tokens, failed = item.tokens_used, False
                        note_generated(span, item)
                        self._observe(item.model, started)
                        if rest := characters.close():
                            yield rest
                        yield replace(item, text=mended(item.text))
                    elif text := characters.feed(item.text):
                        yield text
        except (GeneratorExit, asyncio.CancelledError):
            failed = False  # the caller has left, which is not the model's fault
            raise
        except RuntimeTimeout as error:
            note_span_error(span, error)
            raise GatewayTimeout(error.detail) from None
        except ModelRuntimeError as error:
            if isinstance(error, RuntimeLacksModel):
                name = "unknown"
            note_span_error(span, error)
            raise Unavailable(error.detail) from None
        finally:
            span.end()
            self.usage.count(name, time.perf_counter() - started, tokens, failed=failed)

    async def chat(self, request: inference.ChatRequest) -> inference.ChatEvents:
        """See the hook `chat_with_model`."""
        if not self._settings.media_addresses:
            refuse_addresses(request.messages)
        chosen, name = await self.choose(request.model or self.default_model)
        rule = await self.rules.admit(name)
        admitted = replace(request, model=name, options=capped_options(request.options, rule, add=True))
        started, tokens, failed = time.perf_counter(), None, True
        span = begin_chat(self._tracing, chosen.listed_name(name), chosen.kind)
        try:
            turn = inside(span, chosen.runtime.chat(admitted, name))
            async with aclosing(_whole_characters(turn)) as events:
                async for event in events:
                    if isinstance(event, inference.ChatEnd):
                        tokens, failed = _sum(event), False
                        note_turn(span, event)
                        self._observe(event.model, started)
                    yield event
        except (GeneratorExit, asyncio.CancelledError):
            failed = False
            raise
        except RuntimeLacksModel:
            name = "unknown"
            raise
        except PlatformError as error:
            note_span_error(span, error)
            raise
        finally:
            span.end()
            self.usage.count(name, time.perf_counter() - started, tokens, failed=failed)

    def _observe(self, reported: str, started: float) -> None:
        """Count the duration of a whole answer, by the model that the runtime reports: clients could invent
        names, and each would be another series.
        """
        self._durations.labels(reported).observe(time.perf_counter() - started)

    async def embed(self, model: str, texts: Sequence[str], purpose: inference.Purpose) -> Embedded | None:
        """Vectors by a model of a runtime; None if no runtime has it."""
        if not self.may_have(model):
            return None
        chosen, name = await self.choose(model)
        await self.rules.admit(name)
        started = time.perf_counter()
        try:
            with embedding_span(self._tracing, chosen.listed_name(name), chosen.kind) as span:
                vectors = await chosen.runtime.embed(name, prepared(name, texts, purpose))
                note_embedded(span, name)
        except RuntimeLacksModel:
            return None
        except ModelRuntimeError as error:
            self.usage.count(name, time.perf_counter() - started, None, failed=True)
            raise Unavailable(error.detail) from None
        self.usage.count(name, time.perf_counter() - started, None, failed=False)
        return Embedded(vectors, f"{chosen.kind}/{name}")

    def registered(self) -> int:
        """How many models there were in the last lists."""
        return len({canonical(info.id) for configured in self.all for info in configured.listed})

    async def healthy(self) -> bool | None:
        """Whether a server answers; None if none is configured."""
        if not self.servers:
            return None
        for server in self.servers:
            if await server.runtime.healthy():
                return True
        return False

    async def embedding_models(self) -> list[str]:
        """Models that embed, by their name; none of a runtime that doesn't answer."""
        return [model for model in await self._names() if embeds(model)]

    async def chat_models(self) -> list[str]:
        """The other models."""
        return [model for model in await self._names() if not embeds(model)]

    async def _names(self) -> list[str]:
        names: dict[str, None] = {}
        for configured in self.all:
            listed = await configured.look(_ASK_AGAIN if configured.kind == "local" else 0.0)
            names.update(dict.fromkeys(info.id for info in listed if not configured.failed))
        return list(names)

    async def _look_again(self, model: str) -> tuple[Configured, str]:
        """A model that was missing a while ago may exist by now; else the first server will refuse it."""
        for configured in self.servers:
            await configured.look(_ASK_AGAIN)
            if configured.lists(model):
                return configured, model
        if not self.servers:
            raise RuntimeLacksModel(model)
        return self.servers[0], model

    def _local_name(self, model: str) -> str:
        return model if self.local.knows(model) else model.removeprefix("local/")


async def _whole_characters(events: inference.ChatEvents) -> inference.ChatEvents:
    """The same without halves of characters, which no answer could contain."""
    spoken, thought = Characters(), Characters()
    async with aclosing(events):
        async for event in events:
            if isinstance(event, str):
                if text := spoken.feed(event):
                    yield text
            elif isinstance(event, inference.Thought):
                if text := thought.feed(event.text):
                    yield inference.Thought(text)
            elif isinstance(event, inference.ToolCallPart):
                yield replace(event, name=mended(event.name), arguments=mended(event.arguments))
            else:
                if rest := spoken.close():
                    yield rest
                yield event


async def _stream(
    runtime: ModelRuntime, request: GenerationRequest
) -> AsyncGenerator[TextDelta | inference.Completion, None]:
    """The runtime's stream; if the runtime refuses a `response_format`, it is called again without one."""
    try:
        async with aclosing(runtime.stream(request)) as stream:
            async for item in stream:
                yield item
    except RuntimeRefused as error:
        if error.upstream_status not in _OBJECTIONS or "response_format" not in request.options:
            raise
    else:
        return
    options = {name: value for name, value in request.options.items() if name != "response_format"}
    async with aclosing(runtime.stream(replace(request, options=options))) as stream:
        async for item in stream:
            yield item


def embeds(model: str) -> bool:
    """Whether a model embeds, by its name."""
    return "embed" in model.lower()


def _sum(end: inference.ChatEnd) -> int | None:
    counts = [count for count in (end.prompt_tokens, end.completion_tokens) if count is not None]
    return sum(counts) if counts else None


MODELS: ResourceKey[Models] = ResourceKey("models")
