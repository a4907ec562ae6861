"""Pydantic's adapters for the types that routes declare: checked at the start, used by the endpoints."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import BaseModel, TypeAdapter

_MODELS = 1024  # more than routes declare; models of removed plugins are evicted


def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """The adapter for a type; a model's is made only once.

    Other types can't be cache keys: `A | B` equals `B | A`, but their schemas differ.
    """
    return _of_model(kind) if _is_model(kind) or kind is Any else TypeAdapter(kind)


def schema_check_of(kind: Any) -> Any:
    """A check of JSON against the schema that clients see for a type; a model's is built only once."""
    return _check_of_model(kind) if _is_model(kind) else _schema_check(TypeAdapter(kind))


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


@lru_cache(_MODELS)
def _of_model(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@lru_cache(_MODELS)
def _check_of_model(kind: type[BaseModel]) -> Any:
    return _schema_check(_of_model(kind))


def _schema_check(adapter: TypeAdapter[Any]) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(adapter.json_schema(mode="serialization"))
