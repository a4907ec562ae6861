"""Arguments of a tool, from a query or an object; a misfit names the argument."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from multidict import MultiMapping
from pydantic import BaseModel, ValidationError

from kernel.errors import BadRequest

M = TypeVar("M", bound=BaseModel)


def query_values(schema: Mapping[str, Any], query: MultiMapping[str]) -> dict[str, Any]:
    """Query parameters as arguments, in text; repeated keys become a list where the schema asks for one."""
    properties = schema.get("properties", {})
    lists = {name for name, field in properties.items() if field.get("type") == "array"}
    return {key: query.getall(key) if key in lists else query.getall(key)[-1] for key in query}


def from_object(model: type[M], values: Mapping[str, Any]) -> M:
    """A JSON object as arguments. Raises BadRequest."""
    known = _fields(model)
    for name in values:
        if name not in known:
            raise BadRequest(f"There is no argument '{name[:80]}'; {_takes(known)}")
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        texts = [
            f"'{'.'.join(map(str, item['loc'])) or 'arguments'}': {item['msg']}" for item in problems[:10]
        ]
        raise BadRequest(f"Wrong arguments: {'; '.join(texts)}; {_takes(known)}") from None


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _takes(fields: Mapping[str, Any]) -> str:
    if not fields:
        return "the action takes none"
    names = (f"{name}{' (required)' if field.is_required() else ''}" for name, field in fields.items())
    return f"the action takes: {', '.join(names)}"
