"""Finds the place in a plugin's code to look at."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from traceback import walk_tb
from typing import Any, NamedTuple, TypeAlias

Cause: TypeAlias = "BaseException | Callable[..., Any]"
"""What is wrong with a plugin: an error that it raised, or one of its functions that doesn't fit."""


class Flaw(NamedTuple):
    """What is wrong with a plugin, and the function concerned."""

    reason: str
    function: Callable[..., Any] | None = None


def place_of(cause: Cause, package: str) -> str | None:
    """`file:line` of a function, or of an error's last frame in `package`; None if there is none."""
    return _of_error(cause, package) if isinstance(cause, BaseException) else _of_function(cause)


def _of_function(function: Callable[..., Any]) -> str | None:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _of_error(error: BaseException, package: str) -> str | None:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    places = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] == package
    ]
    if places:
        return places[-1]
    return _of_error(error.__cause__, package) if error.__cause__ is not None else None
