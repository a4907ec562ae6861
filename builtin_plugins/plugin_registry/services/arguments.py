"""Arguments of an action, from a query or an object, into its model; a misfit names the argument."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

from multidict import MultiMapping
from pydantic import BaseModel, ValidationError

from kernel.sdk import BadRequest


def from_query(model: type[BaseModel], query: MultiMapping[str]) -> BaseModel:
    """Query parameters as arguments; repeated keys become a list where the argument is one.

    Raises BadRequest.
    """
    lists = {name for name, field in _fields(model).items() if _is_list(field.annotation)}
    values = {key: query.getall(key) if key in lists else query.getall(key)[-1] for key in query}
    return from_object(model, values)


def from_object(model: type[BaseModel], values: Mapping[str, Any]) -> BaseModel:
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


def _is_list(annotation: Any) -> bool:
    origins = {typing.get_origin(annotation), *(typing.get_origin(a) for a in typing.get_args(annotation))}
    return bool(origins & {list, tuple, set})
