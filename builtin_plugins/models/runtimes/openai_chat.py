"""Chats with tools in OpenAI's own protocol: request bodies, and reading answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

from builtin_plugins.models.runtimes.vectors import is_count
from kernel.sdk import contracts

Json = dict[str, Any]
_OURS = frozenset({"model", "messages", "tools", "stream", "stream_options", "n"})
# Parameters of Ollama's API that servers of this protocol don't know.
_OLLAMAS = frozenset({"options", "format", "keep_alive", "think", "raw"})


def chat_body(request: contracts.ChatRequest, model: str) -> Json:
    """The body of /v1/chat/completions; Ollama's `options` move up to the top level."""
    options = request.options.get("options")
    inner = _without(options, _OURS) if isinstance(options, Mapping) else {}
    if "num_predict" in inner:
        inner.setdefault("max_tokens", inner.pop("num_predict"))
    outer = _without(request.options, _OURS | _OLLAMAS)
    body: Json = {**inner, **outer, "model": model, "messages": list(request.messages)}
    if request.tools:
        body["tools"] = list(request.tools)
    else:
        body.pop("tool_choice", None)
        body.pop("parallel_tool_calls", None)
    if request.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def _without(options: Mapping[str, Any], names: Set[str]) -> Json:
    return {name: value for name, value in options.items() if name not in names}


class ChatReader:
    """Reads the answers of one turn, streamed or whole, including what they report besides text."""

    def __init__(self, asked: str) -> None:
        self._model = asked
        self._reason = ""
        self._called = False
        self._usage: Mapping[str, Any] = {}
        self._logprobs: list[Json] = []

    def read(
        self, answer: Mapping[str, Any], part: str
    ) -> Iterator[str | contracts.Thought | contracts.ToolCallPart]:
        """The pieces of an answer whose choices contain a `part`: ``delta`` or ``message``."""
        if isinstance(model := answer.get("model"), str) and model:
            self._model = model
        if isinstance(usage := answer.get("usage"), dict):
            self._usage = usage
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        if isinstance(reason := choice.get("finish_reason"), str):
            self._reason = reason
        if isinstance(told := choice.get("logprobs"), dict):
            self._logprobs += logprobs_of(told.get("content"))
        message = choice.get(part)
        if isinstance(message, dict):
            yield from self._message(message)

    def end(self) -> contracts.ChatEnd:
        """The end of the turn. Some runtimes report ``stop`` even when they call tools."""
        prompt, completion = self._usage.get("prompt_tokens"), self._usage.get("completion_tokens")
        reason = "tool_calls" if self._called and self._reason in ("", "stop") else self._reason or "stop"
        return contracts.ChatEnd(
            self._model,
            reason,
            prompt if is_count(prompt) else None,
            completion if is_count(completion) else None,
            self._logprobs,
        )

    def _message(
        self, message: Mapping[str, Any]
    ) -> Iterator[str | contracts.Thought | contracts.ToolCallPart]:
        thought = message.get("reasoning_content") or message.get("reasoning")
        if isinstance(thought, str) and thought:
            yield contracts.Thought(thought)
        text = message.get("content")
        if isinstance(text, str) and text:
            yield text
        calls = message.get("tool_calls")
        for place, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                self._called = True
                yield _call_part(call, place)


def logprobs_of(told: object) -> list[Json]:
    """The entries for tokens, which Ollama writes in the same form."""
    return [entry for entry in told if isinstance(entry, dict)] if isinstance(told, list) else []


def _call_part(call: Mapping[str, Any], place: int) -> contracts.ToolCallPart:
    function = call.get("function")
    said = function if isinstance(function, dict) else {}
    index = call.get("index")
    return contracts.ToolCallPart(
        index if is_count(index) else place,
        str(call.get("id") or ""),
        str(said.get("name") or ""),
        str(said.get("arguments") or ""),
    )
