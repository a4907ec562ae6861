"""Pydantic's adapters of what routes declare: checked at the start, then used by their endpoints."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import BaseModel, TypeAdapter

_MODELS = 1024  # more than routes declare; a plugin's models that are gone make room


def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """The adapter of a model, made once, or a new one of any other type.

    Only classes are told apart by `==`: `A | B` equals `B | A`, whose schemas differ.
    """
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _of_model(kind)
    return TypeAdapter(kind)


@lru_cache(_MODELS)
def _of_model(kind: type[BaseModel]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
