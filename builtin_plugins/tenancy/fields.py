"""Fields shared by request bodies of several topics."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field


def _no_truth(value: Any) -> Any:
    """Otherwise `true` would be read as 1, the id of an account."""
    if isinstance(value, bool):
        raise ValueError("must be an integer")
    return value


Id = Annotated[int, Field(ge=1, lt=2**31), BeforeValidator(_no_truth)]
