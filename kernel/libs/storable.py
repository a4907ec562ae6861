"""Finds what databases can't store: text with a NUL character, and numbers that are not finite."""

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
    """The first place in plain data or a model that can't be stored, and why; None if all can."""
    if why := _unfit(value):
        return (), why
    place: list[str | int] = []  # shared: copying the place for each value would cost depth times as much
    levels = [iter(_parts(value))]
    while levels:
        for name, item in levels[-1]:
            if isinstance(name, str) and "\x00" in name:
                return tuple(place), f"has a name that {NUL}"
            if why := _unfit(item):
                return (*place, name), why
            if isinstance(item, _NESTED) and item:
                place.append(name)
                levels.append(iter(_parts(item)))
                break
        else:
            levels.pop()
            del place[-1:]
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
    parts = {fields[name].alias or name: one for name, one in value.__dict__.items() if name in fields}
    return {**parts, **(value.model_extra or {})}.items()
