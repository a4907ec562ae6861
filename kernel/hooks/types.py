"""Hook types: whose answers count, and what happens if an implementation fails.

A specification is a function with one of the decorators of `hookspec`. Its name, arguments and return type
are the contract, its docstring is the reference. Callers pass it to `platform.hooks` and get typed results.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    get_type_hints,
    overload,
)

import pluggy

PROJECT = "platform"

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Failing = Literal["raise", "skip"]
_BARE_MARK = pluggy.HookspecMarker(PROJECT)

PROMPTLY = 30.0
"""Seconds within which a plugin must answer what others wait for, such as who sends a request. As long as the
gateway waits for a service: an answer delayed by a stalled database must not fail sooner.
"""

hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True)
class Failure:
    """An error in a plugin's hook implementation. `is_machines`: a store or the machine is at fault."""

    plugin: str
    hook: str
    error: BaseException
    is_machines: bool


class HookSpec(Generic[P, R_co]):
    """A hook. Its kind sets `asks_for` and `plain` (implementations must not be async)."""

    asks_for: ClassVar[str]
    plain: ClassVar[bool] = False

    def __init__(
        self,
        function: Callable[P, R_co | None],
        failing: Failing | Callable[Concatenate[Failure, P], R_co | None] = "raise",
        seconds: float | None = None,
    ) -> None:
        self.function = _BARE_MARK(function)
        self.seconds = seconds
        self.name = function.__name__
        self.module = function.__module__
        self.text = inspect.getdoc(function) or ""
        self.failing = failing
        self.argument_names = tuple(inspect.signature(function).parameters)

    @cached_property
    def answer(self) -> Any:
        """The type of an answer; `Any` if its module imports that for type checkers alone."""
        annotations = {"answer": self.function.__annotations__.get("return", Any)}
        holder = type("Answer", (), {"__annotations__": annotations})
        try:
            return get_type_hints(holder, globalns=self.function.__globals__)["answer"]
        except NameError:
            return Any

    def __repr__(self) -> str:
        return f"<hook {self.name}>"


class FirstAnswer(HookSpec[P, R_co]):
    """The first answer that is not None counts."""

    asks_for = "the first answer"


class AllAnswers(HookSpec[P, R_co]):
    """Every implementation is asked."""

    asks_for = "everyone"


class FirstAnswerNow(HookSpec[P, R_co]):
    """The first answer counts. Implementations are plain functions, not async."""

    asks_for = "the first answer"
    plain = True


class AllAnswersNow(HookSpec[P, R_co]):
    """Every implementation is asked. Implementations are plain functions, not async."""

    asks_for = "everyone"
    plain = True


class Declaration(HookSpec[P, R_co]):
    """What a plugin offers; asked for once, at the start."""

    asks_for = "declarations"
    plain = True


class Notification(HookSpec[P, None]):
    """Every implementation is called; return values are ignored."""

    asks_for = "nothing"


class HookspecMarker:
    """The decorators that turn a function into a hook specification.

    An error in an implementation is reported and raised to the caller, unless the specification says
    otherwise: with ``failing="skip"``, the others are asked (unless the first answer counts and the database
    or the machine is at fault); with a function instead of ``"skip"``, that function is called with the
    `Failure` and the same arguments, and its result counts. An answer of another type than the
    specification's is an error, too, and so is no answer within `seconds`, which can interrupt only code that
    awaits; until that implementation answers again, further questions to it wait for a thirtieth of that,
    except one at a time. A PlatformError always reaches the caller. A declaration that fails takes its plugin
    out of service; a notification that fails is reported.
    """

    @overload
    def first(self, function: Callable[P, R | None], /) -> FirstAnswer[P, R]: ...
    @overload
    def first(
        self, /, *, failing: Failing = "raise", seconds: float | None = None
    ) -> Callable[[Callable[P, R | None]], FirstAnswer[P, R]]: ...
    @overload
    def first(
        self, /, *, failing: Callable[Concatenate[Failure, P], R | None], seconds: float | None = None
    ) -> Callable[[Callable[P, R | None]], FirstAnswer[P, R]]: ...
    def first(self, function: Any = None, /, *, failing: Any = "raise", seconds: float | None = None) -> Any:
        """A question whose first answer that is not None counts. Implementations may be async."""
        return _specify(FirstAnswer, function, failing, seconds)

    @overload
    def all(self, function: Callable[P, R | None], /) -> AllAnswers[P, R]: ...
    @overload
    def all(
        self, /, *, failing: Failing = "raise", seconds: float | None = None
    ) -> Callable[[Callable[P, R | None]], AllAnswers[P, R]]: ...
    @overload
    def all(
        self, /, *, failing: Callable[Concatenate[Failure, P], R | None], seconds: float | None = None
    ) -> Callable[[Callable[P, R | None]], AllAnswers[P, R]]: ...
    def all(self, function: Any = None, /, *, failing: Any = "raise", seconds: float | None = None) -> Any:
        """A question to all implementations, which may be async."""
        return _specify(AllAnswers, function, failing, seconds)

    def first_now(self, function: Callable[P, R | None], /) -> FirstAnswerNow[P, R]:
        """Like `first`, for callers that can't await, such as functions in a unit of work."""
        return FirstAnswerNow(function)

    def all_now(self, function: Callable[P, R | None], /) -> AllAnswersNow[P, R]:
        """Like `all`, for callers that can't await, such as functions in a unit of work."""
        return AllAnswersNow(function)

    def declaration(self, function: Callable[P, R | None], /) -> Declaration[P, R]:
        """A `register_…` hook."""
        return Declaration(function, "skip")

    @overload
    def notification(self, function: Callable[P, None], /) -> Notification[P]: ...
    @overload
    def notification(self, /, *, seconds: float) -> Callable[[Callable[P, None]], Notification[P]]: ...
    def notification(self, function: Any = None, /, *, seconds: float | None = None) -> Any:
        """An `on_…` hook, whose return value is ignored. Implementations may be async."""
        return _specify(Notification, function, "skip", seconds)


hookspec = HookspecMarker()


def _specify(kind: Any, function: Any, failing: Any, seconds: float | None) -> Any:
    if function is not None:
        return kind(function, failing, seconds)
    return lambda hook: kind(hook, failing, seconds)


def specs_in(holder: object) -> list[HookSpec[..., Any]]:
    """A module's specifications in the order of its file, or a single one."""
    if isinstance(holder, HookSpec):
        return [holder]
    specs = [value for value in vars(holder).values() if isinstance(value, HookSpec)]
    if isinstance(holder, ModuleType):
        return [spec for spec in specs if spec.module == holder.__name__]
    return specs
