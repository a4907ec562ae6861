"""Chats with tools in Ollama's protocol, converted from and to OpenAI's (docs.ollama.com/api, chat)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from builtin_plugins.inference import api as inference
from builtin_plugins.models.runtimes.openai_chat import logprobs_of
from builtin_plugins.models.runtimes.vectors import is_count

Json = dict[str, Any]
# Parameters that go beside ``options``.
_TOP_LEVEL = frozenset({"format", "keep_alive", "think", "logprobs", "top_logprobs"})
# OpenAI's parameters with the same meaning inside ``options``.
_SAME = frozenset({"temperature", "top_p", "top_k", "seed", "stop", "presence_penalty", "frequency_penalty"})


def chat_body(request: inference.ChatRequest, model: str, context_tokens: int | None) -> Json:
    """The body of /api/chat for a chat."""
    sent = request.options
    inner = sent.get("options")
    options: Json = {name: sent[name] for name in _SAME & sent.keys() if sent[name] is not None}
    limit = sent.get("max_completion_tokens") or sent.get("max_tokens")
    if limit is not None:
        options["num_predict"] = limit
    if context_tokens is not None:
        options["num_ctx"] = context_tokens
    options |= inner if isinstance(inner, Mapping) else {}
    names = _called_names(request.messages)
    body: Json = {
        **{name: sent[name] for name in _TOP_LEVEL & sent.keys()},
        "model": model,
        "messages": [_message(message, names) for message in request.messages],
        "stream": request.stream,
        "options": options,
    }
    if (format_ := format_of(sent.get("response_format"))) is not None:
        body.setdefault("format", format_)
    if request.tools and sent.get("tool_choice") != "none":
        body["tools"] = list(request.tools)
    return body


def format_of(response_format: object) -> Any:
    """OpenAI's ``response_format`` as Ollama's ``format``; None for plain text."""
    if not isinstance(response_format, Mapping) or response_format.get("type") == "text":
        return None
    schema = response_format.get("json_schema")
    return schema.get("schema", "json") if isinstance(schema, Mapping) else "json"


def _called_names(messages: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The called functions by call id: OpenAI's clients send a result with only the id."""
    names = {}
    for call in (call for message in messages for call in _calls_of(message)):
        function = call.get("function")
        if isinstance(function, Mapping):
            names[str(call.get("id"))] = str(function.get("name", ""))
    return names


def _calls_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, Sequence) else []


def _message(message: Mapping[str, Any], names: Mapping[str, str]) -> Json:
    role = message.get("role")
    text, images = _content(message.get("content"))
    converted: Json = {"role": "system" if role == "developer" else role, "content": text}
    if images:
        converted["images"] = images
    if calls := _calls_of(message):
        converted["tool_calls"] = [_function_call(call) for call in calls]
    if role == "tool":
        called = names.get(str(message.get("tool_call_id")))
        if name := message.get("name") or message.get("tool_name") or called:
            converted["tool_name"] = name
    return converted


def _content(content: object) -> tuple[str, list[str]]:
    """The text of a message, and its images without their ``data:`` prefix."""
    if not isinstance(content, list):
        return (content if isinstance(content, str) else ""), []
    parts = [part for part in content if isinstance(part, Mapping)]
    text = "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
    urls = [part["image_url"] for part in parts if isinstance(part.get("image_url"), Mapping)]
    return text, [str(url.get("url", "")).rpartition("base64,")[2] for url in urls]


def _function_call(call: Mapping[str, Any]) -> Json:
    function = call.get("function")
    fields = function if isinstance(function, Mapping) else {}
    arguments = fields.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            arguments = {}
    return {"function": {"name": fields.get("name", ""), "arguments": arguments or {}}}


class OllamaChatReader:
    """Reads the parts of one turn, and the statistics in the last one."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._calls = 0
        self._logprobs: list[Json] = []

    def read(self, part: Mapping[str, Any]) -> Iterator[str | inference.Thought | inference.ToolCallPart]:
        """The text, thoughts and tool calls of one line of the stream."""
        self._logprobs += logprobs_of(part.get("logprobs"))
        message = part.get("message")
        if not isinstance(message, dict):
            return
        if isinstance(thought := message.get("thinking"), str) and thought:
            yield inference.Thought(thought)
        if isinstance(text := message.get("content"), str) and text:
            yield text
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                yield self._call(call)

    def end(self, last: Mapping[str, Any]) -> inference.ChatEnd:
        """The end of the turn, from its last part."""
        model, reason = last.get("model"), last.get("done_reason")
        prompt, completion = last.get("prompt_eval_count"), last.get("eval_count")
        finish = reason if isinstance(reason, str) and reason else "stop"
        return inference.ChatEnd(
            model if isinstance(model, str) and model else self._model,
            "tool_calls" if self._calls and finish == "stop" else finish,
            prompt if is_count(prompt) else None,
            completion if is_count(completion) else None,
            self._logprobs,
        )

    def _call(self, call: Mapping[str, Any]) -> inference.ToolCallPart:
        function = call.get("function")
        fields = function if isinstance(function, dict) else {}
        index, self._calls = self._calls, self._calls + 1
        arguments = fields.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
        name = str(call.get("id") or f"call_{secrets.token_hex(8)}")
        return inference.ToolCallPart(index, name, str(fields.get("name") or ""), text)
