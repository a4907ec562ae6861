"""Checks the shapes in a chat: errors are reported at once, as each runtime fails differently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

Json = dict[str, Any]
_CHOICES = ("none", "auto", "required")


def _wrong(what: str) -> PydanticCustomError:
    return PydanticCustomError("value_error", what)


def _function_of(part: Mapping[str, Any]) -> Mapping[str, Any]:
    function = part.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str) or not function["name"]:
        raise _wrong("'function' must be an object with a 'name'")
    return function


def _tool(tool: Json) -> Json:
    if tool.get("type", "function") == "function":
        parameters = _function_of(tool).get("parameters")
        if not isinstance(parameters, Mapping | None):
            raise _wrong("'function.parameters' must be a JSON schema, an object")
    return tool


def _call(call: Json) -> Json:
    if call.get("type", "function") == "function":
        _function_of(call)
    return call


def _choice(choice: str | Json) -> str | Json:
    if isinstance(choice, str):
        if choice not in _CHOICES:
            raise _wrong(f"must be one of: {', '.join(_CHOICES)}, or an object that names a function")
    elif choice.get("type", "function") == "function":
        _function_of(choice)
    return choice


def _part(part: Json) -> Json:
    if not isinstance(part.get("type"), str):
        raise _wrong("a part of a message needs a 'type', such as 'text'")
    if part["type"] == "text" and not isinstance(part.get("text"), str):
        raise _wrong("a part of type 'text' needs a 'text'")
    return part


ToolIn = Annotated[Json, AfterValidator(_tool)]
CallIn = Annotated[Json, AfterValidator(_call)]
PartIn = Annotated[Json, AfterValidator(_part)]
ChoiceIn = Annotated[str | Json, AfterValidator(_choice)]
