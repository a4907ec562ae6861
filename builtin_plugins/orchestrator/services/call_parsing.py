"""Calls as models write them: as JSON text, in an envelope, or instead of an answer (wire-facts 8.2)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Container, Mapping
from typing import Any

from builtin_plugins.orchestrator.events import ToolCall
from builtin_plugins.tools.api import Tool
from kernel.sdk import BadRequest

_ENVELOPE = frozenset({"tool_name", "parameters"})
_LONGEST_TEXT = 20_000


def arguments_of(call: ToolCall, tool: Tool) -> dict[str, Any]:
    """The arguments of a call. Raises BadRequest for anything but a JSON object."""
    try:
        arguments = json.loads(call.arguments) if call.arguments.strip() else {}
        json.dumps(arguments, ensure_ascii=False).encode()  # halves of characters can't be sent on
    except (ValueError, RecursionError):
        raise BadRequest("the arguments are not valid JSON") from None
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        raise BadRequest("the arguments must be a JSON object")
    return unwrapped(arguments, tool)


def unwrapped(arguments: Mapping[str, Any], tool: Tool) -> dict[str, Any]:
    """``{tool_name, parameters: {…}}`` without its envelope, unless the tool has such arguments itself."""
    inner = arguments.get("parameters")
    properties = tool.parameters.get("properties", {})
    if isinstance(inner, dict) and arguments.keys() <= _ENVELOPE and "parameters" not in properties:
        return inner
    return dict(arguments)


def loose_object(raw: bytes) -> dict[str, Any]:
    """The JSON object in a body; an empty body, or anything else, means no arguments (wire-facts 8.1)."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def call_in_text(text: str, names: Container[str]) -> ToolCall | None:
    """The call in a text that is exactly one JSON object naming one of these tools."""
    text = text.strip()
    if not text.startswith("{") or len(text) > _LONGEST_TEXT:
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    name = document.get("name")
    arguments = document.get("arguments", document.get("parameters", {}))
    if not isinstance(name, str) or name not in names or not isinstance(arguments, dict):
        return None
    return ToolCall(f"call_{secrets.token_hex(8)}", name, json.dumps(arguments))
