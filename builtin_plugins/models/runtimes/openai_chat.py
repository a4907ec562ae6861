"""Chats with tools in OpenAI's own protocol: request bodies, and reading answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from builtin_plugins.inference import api as inference
from builtin_plugins.models.runtimes.vectors import is_count

Json = dict[str, Any]
_OURS = frozenset({"model", "messages", "tools", "stream", "stream_options", "n"})
# Parameters of Ollama's API that servers of this protocol don't know.
_OLLAMAS = frozenset({"options", "format", "keep_alive", "think", "raw"})


def chat_body(request: inference.ChatRequest, model: str) -> Json:
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


class OpenAIChatReader:
    """Reads the answers of one turn, streamed or whole, including what they report besides text."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._reason = ""
        self._calls = _ToolCalls()
        self._usage: Mapping[str, Any] = {}
        self._logprobs: list[Json] = []

    def read(
        self, answer: Mapping[str, Any], part: str
    ) -> Iterator[str | inference.Thought | inference.ToolCallPart]:
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
        if isinstance(logprobs := choice.get("logprobs"), dict):
            self._logprobs += logprobs_of(logprobs.get("content"))
        message = choice.get(part)
        if isinstance(message, dict):
            yield from self._message(message)

    def end(self) -> inference.ChatEnd:
        """The end of the turn. Some runtimes report ``stop`` even when they call tools."""
        prompt, completion = self._usage.get("prompt_tokens"), self._usage.get("completion_tokens")
        reason = (
            "tool_calls" if self._calls.count and self._reason in ("", "stop") else self._reason or "stop"
        )
        return inference.ChatEnd(
            self._model,
            reason,
            prompt if is_count(prompt) else None,
            completion if is_count(completion) else None,
            self._logprobs,
        )

    def _message(
        self, message: Mapping[str, Any]
    ) -> Iterator[str | inference.Thought | inference.ToolCallPart]:
        thought = message.get("reasoning_content") or message.get("reasoning")
        if isinstance(thought, str) and thought:
            yield inference.Thought(thought)
        text = message.get("content")
        if isinstance(text, str) and text:
            yield text
        calls = message.get("tool_calls")
        for place, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                yield self._calls.read(call, place)


def logprobs_of(logprobs: object) -> list[Json]:
    """The entries for tokens, which Ollama writes in the same form."""
    return [entry for entry in logprobs if isinstance(entry, dict)] if isinstance(logprobs, list) else []


@dataclass
class _ToolCall:
    number: int
    id: str = ""
    name: str = ""
    arguments: str = ""

    def is_another(self, call_id: str, name: str) -> bool:
        """Whether a piece with this id and name, below the same index, begins another call."""
        if call_id and self.id:
            return call_id != self.id
        return bool(name and self.name) and (name != self.name or _is_json(self.arguments))


class _ToolCalls:
    """Numbers the calls of a turn. Some servers send the same index, or none, with each call."""

    def __init__(self) -> None:
        self.count = 0
        self._latest: dict[int, _ToolCall] = {}
        self._by_id: dict[str, _ToolCall] = {}

    def read(self, call: Mapping[str, Any], place: int) -> inference.ToolCallPart:
        """A piece of a call, with the call's number; `place` is the piece's in its list."""
        function = call.get("function")
        fields = function if isinstance(function, dict) else {}
        index, call_id, name = call.get("index"), str(call.get("id") or ""), str(fields.get("name") or "")
        current = self._find(index if is_count(index) else place, call_id, name)
        arguments = _json_text(fields.get("arguments"))
        current.id, current.name = current.id or call_id, current.name or name
        current.arguments += arguments
        return inference.ToolCallPart(current.number, call_id, name, arguments)

    def _find(self, index: int, call_id: str, name: str) -> _ToolCall:
        current = self._by_id.get(call_id) or self._latest.get(index)
        if current is None or current.is_another(call_id, name):
            current = _ToolCall(self.count)
            self.count += 1
        self._latest[index] = current
        if call_id:
            self._by_id[call_id] = current
        return current


def _json_text(arguments: object) -> str:
    """Arguments as OpenAI writes them; some servers send an object instead of its text."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
