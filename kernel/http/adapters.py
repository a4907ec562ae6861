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
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _of_model(kind)
    return TypeAdapter(kind)


@lru_cache(_MODELS)
def _of_model(kind: type[BaseModel]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
