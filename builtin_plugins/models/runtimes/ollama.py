"""Ollama's native API (docs.ollama.com/api): chat, embed, tags, show, pull, delete."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from pydantic import SecretStr

from builtin_plugins.inference import api as inference
from builtin_plugins.models.runtimes.errors import AnswerMalformed, RuntimeLacksModel, StreamBroken
from builtin_plugins.models.runtimes.ollama_chat import OllamaChatReader, chat_body, format_of
from builtin_plugins.models.runtimes.ollama_pull import PullTally
from builtin_plugins.models.runtimes.protocol import (
    Embeddings,
    GenerationRequest,
    ModelDetails,
    ModelInfo,
    PullProgress,
    RuntimeLimits,
    TextDelta,
    usable,
)
from builtin_plugins.models.runtimes.transport import Json, RuntimeTransport, authorization
from builtin_plugins.models.runtimes.vectors import batches, is_count, normalized, stacked
from builtin_plugins.models.runtimes.wire import LineSplitter
from kernel.sdk import OutgoingClient

# Ollama reads these beside ``options``; all other parameters belong inside it.
_TOP_LEVEL = frozenset({"format", "keep_alive", "think"})
_LONGEST_PULL = 7 * 24 * 3600.0
# Ollama's message in mid-stream when its registry has no such model.
_NOT_THERE = "file does not exist"


class OllamaRuntime:
    """``ModelRuntime`` over Ollama.

    ``context_tokens`` becomes ``num_ctx``: without it, Ollama silently cuts prompts to its default context of
    a few thousand tokens. Changing it from call to call makes Ollama load the model again.
    """

    def __init__(
        self,
        client: OutgoingClient,
        base_url: str,
        *,
        limits: RuntimeLimits | None = None,
        context_tokens: int | None = None,
        api_key: SecretStr | str | None = None,
    ) -> None:
        self._http = RuntimeTransport(
            client, base_url, limits or RuntimeLimits(), _names_unknown_model, authorization(api_key)
        )
        self._context_tokens = context_tokens

    async def generate(self, request: GenerationRequest) -> inference.Completion:
        """One call of /api/chat without streaming."""
        body = self._chat(request, stream=False)
        answer = await self._http.json("POST", "/api/chat", body, model=request.model)
        if "error" in answer:
            raise AnswerMalformed("it reports an error")
        return _generated(_content(answer), answer, request.model)

    async def stream(
        self, request: GenerationRequest
    ) -> AsyncGenerator[TextDelta | inference.Completion, None]:
        """One call of /api/chat; an ``error`` object or an end before ``done`` is ``StreamBroken``."""
        text: list[str] = []
        async with aclosing(self._parts(self._chat(request, stream=True), request.model)) as parts:
            async for part in parts:
                if piece := _content(part):
                    text.append(piece)
                    yield TextDelta(piece)
                if part.get("done") is True:
                    yield _generated("".join(text), part, request.model)
                    return
        raise StreamBroken

    async def chat(self, request: inference.ChatRequest, model: str) -> inference.ChatEvents:
        """A turn of a chat with tools; errors as in ``stream``, and ``RuntimeObjects``."""
        reader, body = OllamaChatReader(model), chat_body(request, model, self._context_tokens)
        async with aclosing(self._turn(body, model, stream=request.stream)) as parts:
            async for part in parts:
                for piece in reader.read(part):
                    yield piece
                if part.get("done") is True or not request.stream:
                    yield reader.end(part)
                    return
        raise StreamBroken

    async def embed(self, model: str, texts: Sequence[str]) -> Embeddings:
        """/api/embed in batches of ``limits.embed_batch``."""
        size = self._http.limits.embed_batch
        return stacked([await self._embed_batch(model, batch) for batch in batches(texts, size)])

    async def models(self) -> list[ModelInfo]:
        """/api/tags."""
        answer = await self._http.json("GET", "/api/tags")
        items = answer.get("models")
        if not isinstance(items, list):
            raise AnswerMalformed("it should list models")
        return usable(_info(item) for item in items if isinstance(item, dict))

    async def describe(self, model: str) -> ModelDetails:
        """/api/show."""
        details = await self._http.json("POST", "/api/show", {"model": model}, model=model)
        capabilities = details.get("capabilities")
        names = capabilities if isinstance(capabilities, list) else []
        return ModelDetails(id=model, details=details, capabilities=tuple(map(str, names)))

    async def healthy(self) -> bool:
        """/api/version, which touches no model; compatible servers may only have /api/tags."""
        return await self._http.answers("/api/version", "/api/tags")

    async def pull(self, model: str) -> AsyncGenerator[PullProgress, None]:
        """/api/pull as a stream, without a time limit: only silence ends it."""
        tally = PullTally()
        body: Json = {"model": model, "stream": True}
        async with aclosing(self._parts(body, model, "/api/pull", total_s=_LONGEST_PULL)) as parts:
            async for part in parts:
                progress = tally.read(part)
                yield progress
                if progress.done:
                    return
        raise StreamBroken

    async def delete(self, model: str) -> None:
        """/api/delete."""
        await self._http.done("DELETE", "/api/delete", {"model": model}, model=model)

    def _chat(self, request: GenerationRequest, *, stream: bool) -> Json:
        extra = dict(request.options)
        top_level = {name: extra.pop(name) for name in _TOP_LEVEL & extra.keys()}
        if (format_ := format_of(extra.pop("response_format", None))) is not None:
            top_level.setdefault("format", format_)
        return {
            **top_level,
            "model": request.model,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "stream": stream,
            "options": {**self._options(request), **extra},
        }

    def _options(self, request: GenerationRequest) -> Json:
        options: Json = {"temperature": request.temperature, "num_predict": request.max_tokens}
        if request.stop:
            options["stop"] = list(request.stop)
        if self._context_tokens is not None:
            options["num_ctx"] = self._context_tokens
        return options

    async def _turn(self, body: Json, model: str, *, stream: bool) -> AsyncGenerator[Json, None]:
        if stream:
            async with aclosing(self._parts(body, model, chat=True)) as parts:
                async for part in parts:
                    yield part
            return
        answer = await self._http.json("POST", "/api/chat", body, model=model, chat=True)
        if "error" in answer or not isinstance(answer.get("message"), dict):
            raise AnswerMalformed("it has no message")
        yield answer

    async def _parts(
        self,
        body: Json,
        model: str,
        path: str = "/api/chat",
        *,
        chat: bool = False,
        total_s: float | None = None,
    ) -> AsyncGenerator[Json, None]:
        splitter = LineSplitter(self._http.limits.max_line_bytes)
        chunks = self._http.stream(path, body, model=model, chat=chat, total_s=total_s)
        async with aclosing(chunks):
            async for chunk in chunks:
                for line in splitter.feed(chunk):
                    if line.strip():
                        yield _part(line, model)
        for line in splitter.close():
            yield _part(line, model)

    async def _embed_batch(self, model: str, texts: Sequence[str]) -> Embeddings:
        body: Json = {"model": model, "input": list(texts), "truncate": True}
        answer = await self._http.json("POST", "/api/embed", body, model=model)
        return normalized(answer.get("embeddings"), len(texts))


def _names_unknown_model(body: object) -> bool:
    """Ollama answers a wrong path with plain text, an unknown model with an ``error`` string."""
    return isinstance(body, dict) and isinstance(body.get("error"), str)


def _part(line: bytes, model: str) -> Json:
    try:
        part = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise StreamBroken from error
    if isinstance(part, dict) and _NOT_THERE in str(part.get("error", "")):
        raise RuntimeLacksModel(model)
    if not isinstance(part, dict) or "error" in part:
        raise StreamBroken
    return part


def _content(part: Mapping[str, Any]) -> str:
    message = part.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if content is not None and not isinstance(content, str):
        raise AnswerMalformed("its message has no text")
    if message is None and part.get("done") is not True:
        raise AnswerMalformed("it has no message")
    return content or ""


def _generated(text: str, last: Mapping[str, Any], requested_model: str) -> inference.Completion:
    model, reason = last.get("model"), last.get("done_reason")
    return inference.Completion(
        text=text,
        tokens_used=_tokens(last),
        model=model if isinstance(model, str) and model else requested_model,
        finish_reason=reason if isinstance(reason, str) else None,
        output_tokens=written if is_count(written := last.get("eval_count")) else None,
    )


def _tokens(last: Mapping[str, Any]) -> int | None:
    """Ollama omits a counter that is 0, as for a fully cached prompt."""
    counts = [last.get("prompt_eval_count"), last.get("eval_count")]
    present = [count for count in counts if is_count(count)]
    return sum(present) if present else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _info(item: Mapping[str, Any]) -> ModelInfo:
    details = item.get("details")
    facts = details if isinstance(details, dict) else {}
    size = item.get("size")
    return ModelInfo(
        id=str(item.get("name") or item.get("model") or ""),
        size_bytes=size if is_count(size) else None,
        modified_at=_text(item.get("modified_at")),
        family=_text(facts.get("family")),
        parameter_size=_text(facts.get("parameter_size")),
    )
