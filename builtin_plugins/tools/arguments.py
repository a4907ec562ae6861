"""Parses a tool's arguments from a query or an object; errors name the argument."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from multidict import MultiMapping
from pydantic import BaseModel, ValidationError

from kernel.sdk import BadRequest
from kernel.sdk.storage import first_unfit

M = TypeVar("M", bound=BaseModel)

_PLAIN = frozenset({"string", "integer", "number", "boolean"})


def query_values(schema: Mapping[str, Any], query: MultiMapping[str]) -> dict[str, Any]:
    """Query parameters as arguments; values are text.

    If the schema wants a list or an object, the text may be JSON; repeated keys also make a list.
    """
    properties = schema.get("properties", {})
    return {key: _query_value(properties.get(key, {}), query.getall(key)) for key in query}


def _query_value(field: Mapping[str, Any], values: list[str]) -> Any:
    last = values[-1].strip()
    choices = [field["const"]] if "const" in field else field.get("enum", ())
    if choices:  # an enum of numbers and the like: text never equals one
        return next((one for one in choices if json.dumps(one) == last), values[-1])
    if field.get("type") in _PLAIN or not last.startswith(("[", "{")):
        return values if field.get("type") == "array" else values[-1]
    try:
        return json.loads(last)
    except (ValueError, RecursionError):
        return values if field.get("type") == "array" else values[-1]


def json_object(raw: bytes, what: str) -> dict[str, Any]:
    """Parse `raw` as a JSON object. Raises BadRequest if it is anything else."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        raise BadRequest(f"{what} is not valid JSON") from None
    if not isinstance(value, dict):
        raise BadRequest(f"{what} must be a JSON object")
    return value


def arguments_from_object(model: type[M], values: Mapping[str, Any]) -> M:
    """A JSON object as arguments. Raises BadRequest."""
    fields = _fields(model)
    for name in values:
        if name not in fields:
            raise BadRequest(f"There is no argument '{name[:80]}'; {_takes(fields)}")
    _require_storable(dict(values))
    try:
        arguments = model.model_validate(dict(values))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        texts = [
            f"'{'.'.join(map(str, item['loc'])) or 'arguments'}': {item['msg']}" for item in problems[:10]
        ]
        raise BadRequest(f"Wrong arguments: {'; '.join(texts)}; {_takes(fields)}") from None
    _require_storable(arguments)  # a number's text may spell infinity
    return arguments


def _require_storable(arguments: Any) -> None:
    unfit = first_unfit(arguments)
    if unfit is not None:
        place, why = unfit
        raise BadRequest(f"Wrong arguments: '{'.'.join(map(str, place)) or 'arguments'}': {why}")


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _takes(fields: Mapping[str, Any]) -> str:
    if not fields:
        return "the action takes none"
    names = (f"{name}{' (required)' if field.is_required() else ''}" for name, field in fields.items())
    return f"the action takes: {', '.join(names)}"
