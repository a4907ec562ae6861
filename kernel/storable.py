"""What no database holds: text with a NUL character, and numbers that are not finite."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

Place = tuple[str | int, ...]

NUL = "contains a NUL character; remove it"
NOT_FINITE = "must be a finite number"
_NESTED = (dict, list, tuple, BaseModel)


def first_unfit(value: Any) -> tuple[Place, str] | None:
    """Where something in plain data or a model can't be stored, and why; None if all of it can."""
    if why := _unfit(value):
        return (), why
    waiting: list[tuple[Place, Any]] = [((), value)]
    while waiting:
        place, nested = waiting.pop()
        for name, one in _parts(nested):
            if isinstance(name, str) and "\x00" in name:
                return place, f"has a name that {NUL}"
            if why := _unfit(one):
                return (*place, name), why
            if isinstance(one, _NESTED):
                waiting.append(((*place, name), one))
    return None


def _unfit(value: Any) -> str | None:
    if isinstance(value, str):
        return NUL if "\x00" in value else None
    return NOT_FINITE if isinstance(value, float) and not math.isfinite(value) else None


def _parts(value: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, list | tuple):
        return enumerate(value)
    if not isinstance(value, BaseModel):
        return ()
    fields = type(value).model_fields
    found = {fields[name].alias or name: one for name, one in value.__dict__.items() if name in fields}
    return {**found, **(value.model_extra or {})}.items()
