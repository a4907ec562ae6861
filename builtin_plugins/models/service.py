"""The configured model runtime, in the words of the platform's hooks."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from builtin_plugins.models.purposes import prepared
from builtin_plugins.models.runtimes.errors import ModelNotFound, ModelRuntimeError, RuntimeRefused
from builtin_plugins.models.runtimes.ollama import OllamaRuntime
from builtin_plugins.models.runtimes.openai import OpenAIRuntime
from builtin_plugins.models.runtimes.protocol import (
    GenerationRequest,
    ModelRuntime,
    RuntimeLimits,
    TextDelta,
)
from builtin_plugins.models.settings import ModelsSettings
from kernel.sdk import Embedded, OutgoingClient, Unavailable, contracts

if TYPE_CHECKING:
    from prometheus_client import Histogram

log = logging.getLogger("platform.models")

_OBJECTIONS = frozenset({400, 422, 501})


class Models:
    """One model runtime: Ollama's API or an OpenAI-compatible one."""

    def __init__(
        self, runtime: ModelRuntime, kind: str, settings: ModelsSettings, durations: Histogram
    ) -> None:
        self.runtime = runtime
        self._kind = kind
        self._settings = settings
        self._durations = durations

    async def generate(
        self,
        messages: Sequence[contracts.ChatMessage],
        model: str | None,
        temperature: float,
        max_tokens: int,
        options: Mapping[str, Any],
    ) -> contracts.Generation:
        """See the hook `generate_text`."""
        request = GenerationRequest(
            model=model or self._settings.llm_model,
            messages=messages,
            temperature=temperature,
            max_tokens=max_tokens,
            options=options,
        )
        started = time.perf_counter()
        try:
            async with aclosing(self._stream(request)) as stream:
                async for item in stream:
                    yield item.text if isinstance(item, TextDelta) else item
        except ModelRuntimeError as error:
            raise Unavailable(error.detail) from None
        finally:
            self._durations.labels(request.model).observe(time.perf_counter() - started)

    async def _stream(
        self, request: GenerationRequest
    ) -> AsyncGenerator[TextDelta | contracts.Generated, None]:
        """The runtime's stream; a runtime that refuses a `response_format` is asked again without it."""
        try:
            async with aclosing(self.runtime.stream(request)) as stream:
                async for item in stream:
                    yield item
        except RuntimeRefused as error:
            if error.upstream_status not in _OBJECTIONS or "response_format" not in request.options:
                raise
        else:
            return
        options = {name: value for name, value in request.options.items() if name != "response_format"}
        async with aclosing(self.runtime.stream(replace(request, options=options))) as stream:
            async for item in stream:
                yield item

    async def chat(self, request: contracts.ChatRequest) -> contracts.ChatEvents:
        """See the hook `chat_with_model`."""
        model = request.model or self._settings.llm_model
        started = time.perf_counter()
        async with aclosing(self.runtime.chat(request, model)) as events:
            async for event in events:
                if isinstance(event, contracts.ChatEnd):  # so that clients can't invent labels
                    self._durations.labels(event.model).observe(time.perf_counter() - started)
                yield event

    async def embed(self, model: str, texts: Sequence[str], purpose: contracts.Purpose) -> Embedded | None:
        """Vectors by a model of the runtime; None when it has no such model."""
        try:
            vectors = await self.runtime.embed(model, prepared(model, texts, purpose))
        except ModelNotFound:
            return None
        except ModelRuntimeError as error:
            raise Unavailable(error.detail) from None
        return Embedded(vectors, f"{self._kind}/{model}")

    async def embedding_models(self) -> list[str]:
        """Models whose name says that they embed; none when the runtime does not answer."""
        return [model for model in await self._listed() if _embeds(model)]

    async def chat_models(self) -> list[str]:
        """The other models; none when the runtime does not answer."""
        return [model for model in await self._listed() if not _embeds(model)]

    async def _listed(self) -> list[str]:
        try:
            return [model.id for model in await self.runtime.models()]
        except ModelRuntimeError as error:
            log.warning("the model runtime does not list its models: %s", error.detail)
            return []


def _embeds(model: str) -> bool:
    return "embed" in model.lower()


def open_runtime(client: OutgoingClient, settings: ModelsSettings) -> tuple[ModelRuntime, str] | None:
    """The runtime that the settings name, with its kind; None without one."""
    limits = RuntimeLimits(
        connect_s=settings.connect_seconds, idle_s=settings.silence_seconds, total_s=settings.total_seconds
    )
    if settings.ollama_url:
        runtime = OllamaRuntime(
            client, settings.ollama_url, limits=limits, context_tokens=settings.context_tokens
        )
        return runtime, "ollama"
    if settings.openai_url:
        key = settings.openai_key
        return OpenAIRuntime(client, settings.openai_url, api_key=key, limits=limits), "openai"
    return None
