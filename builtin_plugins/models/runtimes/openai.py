"""OpenAI-compatible runtimes: /v1/chat/completions, /v1/embeddings, /v1/models (OpenAI API reference).

vLLM, llama.cpp, LM Studio, LiteLLM and Ollama's compatible API speak it, too, each a little loosely: what
they omit (usage, ``[DONE]``, ``index``) is tolerated as long as the answer is unambiguous.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any
from urllib.parse import quote

from pydantic import SecretStr

from builtin_plugins.inference import api as inference
from builtin_plugins.models.runtimes.errors import AnswerMalformed, StreamBroken
from builtin_plugins.models.runtimes.openai_chat import OpenAIChatReader, chat_body
from builtin_plugins.models.runtimes.protocol import (
    Embeddings,
    GenerationRequest,
    ModelDetails,
    ModelInfo,
    RuntimeLimits,
    TextDelta,
    usable,
)
from builtin_plugins.models.runtimes.transport import Json, RuntimeTransport, authorization
from builtin_plugins.models.runtimes.vectors import batches, is_count, normalized, stacked
from builtin_plugins.models.runtimes.wire import SseDecoder
from kernel.sdk import OutgoingClient

_DONE = "[DONE]"
_OURS = frozenset({"model", "messages", "stream", "stream_options", "n"})


class OpenAIRuntime:
    """``ModelRuntime`` over an OpenAI-compatible server; ``base_url`` with or without its ``/v1``.

    ``max_completion_tokens`` in a request's options replaces ``max_tokens``, which newer models refuse.
    """

    def __init__(
        self,
        client: OutgoingClient,
        base_url: str,
        *,
        api_key: SecretStr | str | None = None,
        limits: RuntimeLimits | None = None,
    ) -> None:
        base = base_url.rstrip("/").removesuffix("/v1")
        self._http = RuntimeTransport(
            client, base, limits or RuntimeLimits(), _names_unknown_model, authorization(api_key)
        )

    async def generate(self, request: GenerationRequest) -> inference.Completion:
        """One chat completion without streaming."""
        answer = await self._http.json("POST", "/v1/chat/completions", _chat(request), model=request.model)
        choice = _choice(answer)
        if choice is None or "error" in answer:
            raise AnswerMalformed("it has no choices")
        return _Tally(request.model).take(answer).finished(_text(choice.get("message")))

    async def stream(
        self, request: GenerationRequest
    ) -> AsyncGenerator[TextDelta | inference.Completion, None]:
        """One chat completion as server-sent events.

        ``StreamBroken`` for an ``error`` object, and for an end with neither ``[DONE]`` nor a finish reason.
        """
        text: list[str] = []
        tally = _Tally(request.model)
        body = {**_chat(request), "stream": True, "stream_options": {"include_usage": True}}
        async with aclosing(self._chunks(body, request.model)) as chunks:
            async for chunk in chunks:
                tally.take(chunk)
                choice = _choice(chunk)
                if choice is not None and (piece := _text(choice.get("delta"))):
                    text.append(piece)
                    yield TextDelta(piece)
        yield tally.finished("".join(text))

    async def chat(self, request: inference.ChatRequest, model: str) -> inference.ChatEvents:
        """A turn of a chat with tools; errors as in ``stream``, and ``RuntimeObjects``."""
        reader, body = OpenAIChatReader(model), chat_body(request, model)
        if not request.stream:
            answer = await self._http.json("POST", "/v1/chat/completions", body, model=model, chat=True)
            if _choice(answer) is None or "error" in answer:
                raise AnswerMalformed("it has no choice")
            for piece in reader.read(answer, "message"):
                yield piece
        else:
            async with aclosing(self._chunks(body, model, chat=True)) as chunks:
                async for chunk in chunks:
                    for piece in reader.read(chunk, "delta"):
                        yield piece
        yield reader.end()

    async def embed(self, model: str, texts: Sequence[str]) -> Embeddings:
        """/v1/embeddings in batches of ``limits.embed_batch``, put in order by each item's ``index``."""
        size = self._http.limits.embed_batch
        return stacked([await self._embed_batch(model, batch) for batch in batches(texts, size)])

    async def models(self) -> list[ModelInfo]:
        """/v1/models, which has little more than ids."""
        answer = await self._http.json("GET", "/v1/models")
        items = answer.get("data")
        if not isinstance(items, list):
            raise AnswerMalformed("it should list models")
        return usable(ModelInfo(id=str(item.get("id") or "")) for item in items if isinstance(item, dict))

    async def describe(self, model: str) -> ModelDetails:
        """/v1/models/{model}."""
        details = await self._http.json("GET", f"/v1/models/{quote(model, safe='/:')}", model=model)
        return ModelDetails(id=model, details=details)

    async def healthy(self) -> bool:
        """/v1/models, the one path that all servers have."""
        return await self._http.answers("/v1/models")

    async def _chunks(self, body: Json, model: str, *, chat: bool = False) -> AsyncGenerator[Json, None]:
        """The stream's objects up to ``[DONE]``."""
        finished = False
        async with aclosing(self._events(body, model, chat=chat)) as events:
            async for event in events:
                if event.strip() == _DONE:
                    return
                chunk = _chunk(event)
                finished = finished or bool((_choice(chunk) or {}).get("finish_reason"))
                yield chunk
        if not finished:
            raise StreamBroken

    async def _events(self, body: Json, model: str, *, chat: bool) -> AsyncGenerator[str, None]:
        decoder = SseDecoder(self._http.limits.max_line_bytes)
        chunks = self._http.stream("/v1/chat/completions", body, model=model, chat=chat)
        async with aclosing(chunks):
            async for chunk in chunks:
                for event in decoder.feed(chunk):
                    yield event
        for event in decoder.close():
            yield event

    async def _embed_batch(self, model: str, texts: Sequence[str]) -> Embeddings:
        body: Json = {"model": model, "input": list(texts), "encoding_format": "float"}
        answer = await self._http.json("POST", "/v1/embeddings", body, model=model)
        return normalized(_in_order(answer.get("data"), len(texts)), len(texts))


class _Tally:
    """What an answer's chunks report besides text: usage, tool calls, the finish reason."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._tokens: int | None = None
        self._output: int | None = None
        self._reason: str | None = None

    def take(self, chunk: Mapping[str, Any]) -> _Tally:
        if isinstance(model := chunk.get("model"), str) and model:
            self._model = model
        if (tokens := _tokens(chunk.get("usage"))) is not None:
            self._tokens, self._output = tokens, _output(chunk["usage"])
        if isinstance(reason := (_choice(chunk) or {}).get("finish_reason"), str):
            self._reason = reason
        return self

    def finished(self, text: str) -> inference.Completion:
        return inference.Completion(text, self._tokens, self._model, self._reason, self._output)


def _chat(request: GenerationRequest) -> Json:
    extra = {name: value for name, value in request.options.items() if name not in _OURS}
    body: Json = {
        "model": request.model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "temperature": request.temperature,
        "stream": False,
    }
    if "max_completion_tokens" not in extra:
        body["max_tokens"] = request.max_tokens
    if request.stop:
        body["stop"] = list(request.stop)
    return {**body, **extra}


def _names_unknown_model(body: object) -> bool:
    """Tells "no such model" from "no such path": by the code if there is one, else by the message."""
    error = body.get("error", body) if isinstance(body, dict) else None
    if isinstance(error, str):
        return "model" in error.lower()
    if not isinstance(error, dict):
        return False
    return error.get("code") == "model_not_found" or "model" in str(error.get("message", "")).lower()


def _chunk(event: str) -> Json:
    try:
        chunk = json.loads(event)
    except (ValueError, RecursionError) as error:
        raise StreamBroken from error
    if not isinstance(chunk, dict) or "error" in chunk:
        raise StreamBroken
    return chunk


def _choice(chunk: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The first choice; None for the chunk with only usage."""
    choices = chunk.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else None


def _text(message: object) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    if content is not None and not isinstance(content, str):
        raise AnswerMalformed("its message has no text")
    return content or ""


def _tokens(usage: object) -> int | None:
    if not isinstance(usage, dict):
        return None
    if is_count(total := usage.get("total_tokens")):
        return total
    parts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    present = [count for count in parts if is_count(count)]
    return sum(present) if present else None


def _output(usage: Mapping[str, Any]) -> int | None:
    return count if is_count(count := usage.get("completion_tokens")) else None


def _in_order(data: object, count: int) -> list[object]:
    items = [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []
    if any("index" in item for item in items):
        by_index = {item.get("index"): item.get("embedding") for item in items}
        if by_index.keys() != set(range(count)):
            raise AnswerMalformed("the indexes of its embeddings are not those of the texts")
        return [by_index[index] for index in range(count)]
    return [item.get("embedding") for item in items]
