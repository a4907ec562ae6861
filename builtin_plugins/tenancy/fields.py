"""Fields that bodies of several topics share."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any

from pydantic import BeforeValidator, Field


def _no_truth(value: Any) -> Any:
    """`true` would be read as 1, which is the id of an account."""
    if isinstance(value, bool):
        raise ValueError("must be an integer")
    return value


Id = Annotated[int, Field(ge=1, lt=2**31), BeforeValidator(_no_truth)]


def one_line(name: str) -> str:
    """The name, if it is one line. Raises ValueError."""
    if any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in name):
        raise ValueError("a name is one line, without control characters")
    return name
