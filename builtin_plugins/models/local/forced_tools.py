"""A tool call that the client requires (``tool_choice``), forced by a grammar of the tools' parameters.

Without it, llama.cpp lets models whose templates don't know tools chat instead.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from builtin_plugins.inference import api as inference
from builtin_plugins.models.runtimes.errors import AnswerMalformed
from builtin_plugins.models.runtimes.openai import OpenAIRuntime

_ASKING: Final = (
    "Call the function that helps most. Reply with JSON: its name and its arguments. Functions:\n"
)
_FREE: Final = (None, "auto", "none")


def forced(request: inference.ChatRequest) -> inference.ChatRequest | None:
    """The same turn with a schema in place of the tools; None if the model need not call one."""
    choice = request.options.get("tool_choice")
    functions = _functions(request, choice) if choice not in _FREE else []
    if not functions:
        return None
    options = {
        name: value
        for name, value in request.options.items()
        if name not in ("tool_choice", "parallel_tool_calls")
    }
    schema = {"anyOf": [_schema(function) for function in functions]}
    response_format = {"type": "json_schema", "json_schema": {"name": "call", "schema": schema}}
    instruction = {
        "role": "user",
        "content": _ASKING + "\n".join(json.dumps(function) for function in functions),
    }
    return replace(
        request,
        messages=[*request.messages, instruction],
        tools=(),
        options={**options, "response_format": response_format},
        stream=False,
    )


async def forced_call(
    runtime: OpenAIRuntime, request: inference.ChatRequest, model: str
) -> inference.ChatEvents:
    """The whole call, or as much as `max_tokens` allowed, and the end of the turn."""
    text = ""
    async with aclosing(runtime.chat(request, model)) as events:
        async for event in events:
            if isinstance(event, str):
                text += event
            elif isinstance(event, inference.ChatEnd):
                is_cut_off = event.finish_reason == "length" and not _is_whole(text)
                if call := _cut_off(text) if is_cut_off else _call(text):
                    yield call
                yield event if is_cut_off else replace(event, finish_reason="tool_calls")


def _is_whole(text: str) -> bool:
    """Whether the call is complete: the limit may fall right after its last token."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _cut_off(text: str) -> inference.ToolCallPart | None:
    """The incomplete arguments, which no client takes for a whole call; None if there are none yet."""
    begun, _, arguments = text.partition('"arguments"')
    try:
        name = json.loads(begun.rstrip().rstrip(",") + "}")["name"]
    except (ValueError, KeyError):
        return None
    return inference.ToolCallPart(0, _new_id(), str(name), arguments.lstrip(": \n"))


def _new_id() -> str:
    return f"call_{secrets.token_hex(8)}"


def _call(text: str) -> inference.ToolCallPart:
    try:
        call = json.loads(text)
        return inference.ToolCallPart(0, _new_id(), str(call["name"]), json.dumps(call["arguments"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise AnswerMalformed("its call of a tool was cut off") from None


def _functions(request: inference.ChatRequest, choice: Any) -> list[Mapping[str, Any]]:
    functions = [tool["function"] for tool in request.tools if isinstance(tool.get("function"), Mapping)]
    named = None
    if isinstance(choice, Mapping):
        function = choice.get("function")
        named = function.get("name") if isinstance(function, Mapping) else ""
    return [function for function in functions if named is None or function.get("name") == named]


def _schema(function: Mapping[str, Any]) -> dict[str, Any]:
    parameters = function.get("parameters") or {"type": "object"}
    return {
        "type": "object",
        "properties": {"name": {"const": function.get("name", "")}, "arguments": parameters},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
