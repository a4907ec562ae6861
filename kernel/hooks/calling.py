"""Calling hooks: ask and await, ask at once, notify. A hook's specification says what a failure does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, TypeVar, overload

import pluggy

from kernel.db.outages import is_database_outage
from kernel.errors import ANY_ERROR, PlatformError
from kernel.hooks.checks import AnswerChecks
from kernel.hooks.types import (
    AllAnswers,
    AllAnswersNow,
    Declaration,
    Failure,
    FirstAnswer,
    FirstAnswerNow,
    HookSpec,
    Notification,
)
from kernel.libs.background import run_bounded
from kernel.process.machine_faults import is_machine_fault

log = logging.getLogger("platform.hooks")

P = ParamSpec("P")
R = TypeVar("R")

OnFailure = Callable[[str, str, BaseException], None]
AnySpec = HookSpec[..., Any]

_FAILURE = "platform_failure"
_SOON = 1 / 30  # of the time that a specification allows


@dataclass(frozen=True, slots=True)
class Implementation:
    """One plugin's implementation of a hook, and which of the hook's arguments it takes."""

    plugin: str
    function: Callable[..., Any]
    accepted: tuple[str, ...]

    def call(self, arguments: dict[str, Any]) -> Any:
        """The implementation's answer, or an awaitable of it."""
        return self.function(**{name: arguments[name] for name in self.accepted if name in arguments})


class Waits:
    """Waits for answers and knows which plugins are stuck.

    Once an implementation has timed out, only one question to it at a time gets the full time, and others get
    a thirtieth of it, until it answers: a stalled store of its own must not hold everybody up.
    """

    def __init__(self) -> None:
        self._stuck: dict[Hashable, bool] = {}  # whether a question is waiting for the full time

    async def within(self, seconds: float, answer: Awaitable[Any], key: Hashable | None = None) -> Any:
        """The answer. Raises TimeoutError with a text; without a `key`, always after the full time."""
        is_tried = self._stuck.get(key)
        if is_tried:
            seconds *= _SOON
        elif is_tried is not None:
            self._stuck[key] = True
        try:
            async with asyncio.timeout(seconds) as limit:
                value = await answer
        except TimeoutError:
            if not limit.expired():
                raise
            if key is not None:
                self._stuck.setdefault(key, False)
            raise TimeoutError(f"no answer within {seconds:g} s") from None
        finally:
            if is_tried is False and key in self._stuck:
                self._stuck[key] = False
        self._stuck.pop(key, None)
        return value


class Hooks:
    """The hooks of one platform. `on_failure(plugin, hook, error)` is called when an implementation fails; if
    a declaration fails or takes longer than `seconds`, `on_declaration_failure` is called instead.
    """

    def __init__(
        self,
        manager: pluggy.PluginManager,
        on_failure: OnFailure,
        on_declaration_failure: OnFailure,
        seconds: float = 30,
    ) -> None:
        self._seconds = seconds
        self._manager = manager
        self._on_failure = on_failure
        self._on_declaration_failure = on_declaration_failure
        self._compiled: dict[AnySpec, tuple[Implementation, ...]] = {}
        self._silent: frozenset[str] = frozenset()
        self._checks = AnswerChecks()
        self._waits = Waits()

    def implemented_by(self, plugin: str) -> list[str]:
        """The names of the hooks that a loaded plugin implements."""
        instance = self._manager.get_plugin(plugin)
        callers = self._manager.get_hookcallers(instance) if instance is not None else None
        return sorted(caller.name for caller in callers or ())

    def freeze(self) -> None:
        """Forget the compiled call lists; call it whenever the set of plugins has changed."""
        self._compiled = {}  # not `clear()`: a unit in another thread may be filling the old one

    def silence(self, plugins: frozenset[str]) -> None:
        """Stop calling exactly these plugins; replaces the previous set."""
        self._silent = plugins
        self.freeze()

    def implementations(self, spec: AnySpec) -> Sequence[Implementation]:
        """A hook's implementations in the order in which they are asked: the reverse of the loading order."""
        lists = self._compiled
        compiled = lists.get(spec)
        if compiled is None:
            compiled = lists[spec] = tuple(self._compile(spec))
        return compiled

    @overload
    async def ask(self, spec: FirstAnswer[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R | None: ...
    @overload
    async def ask(self, spec: AllAnswers[P, R], /, *args: P.args, **kwargs: P.kwargs) -> list[R]: ...
    async def ask(self, spec: AnySpec, /, *args: Any, **kwargs: Any) -> Any:
        """The first answer or all of them, as `spec` says; None is not an answer."""
        first = isinstance(spec, FirstAnswer)
        arguments = _named(spec, args, kwargs) if args else kwargs
        answers = []
        for implementation in self.implementations(spec):
            try:
                answer = implementation.call(arguments)
                if hasattr(answer, "__await__"):  # `inspect.isawaitable` at a fifth of the cost
                    if spec.seconds is not None:
                        answer = self._waits.within(spec.seconds, answer, implementation)
                    answer = await answer
                if answer is not None:
                    self._checks.check(spec, answer)
            except PlatformError:
                raise
            except ANY_ERROR as error:  # boundary: another author's code
                failure = self._failed(implementation, spec, error)
                if spec.failing == "raise" or (first and failure.is_machines):
                    raise
                answer = spec.failing(failure, **arguments) if callable(spec.failing) else None
            if answer is not None:
                if first:
                    return answer
                answers.append(answer)
        return None if first else answers

    @overload
    def ask_now(self, spec: FirstAnswerNow[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R | None: ...
    @overload
    def ask_now(self, spec: AllAnswersNow[P, R], /, *args: P.args, **kwargs: P.kwargs) -> list[R]: ...
    @overload
    def ask_now(
        self, spec: Declaration[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> list[tuple[str, R]]: ...
    def ask_now(self, spec: AnySpec, /, *args: Any, **kwargs: Any) -> Any:
        """Like `ask`, for plain functions. Declarations are returned as (plugin, declared) pairs."""
        arguments = _named(spec, args, kwargs)
        if isinstance(spec, Declaration):
            return self._declared(spec, arguments)
        answers = (self._answer(impl, spec, arguments) for impl in self.implementations(spec))
        present = (answer for answer in answers if answer is not None)
        return next(present, None) if isinstance(spec, FirstAnswerNow) else list(present)

    async def tell(self, spec: Notification[P], /, *args: P.args, **kwargs: P.kwargs) -> list[BaseException]:
        """Notify every plugin. Failures are reported as in `ask` and returned; they don't stop the others."""
        arguments = _named(spec, args, kwargs)
        errors = [await self.tell_one(one, spec, arguments) for one in self.implementations(spec)]
        return [error for error in errors if error is not None]

    async def tell_one(
        self, implementation: Implementation, spec: Notification[...], arguments: dict[str, Any]
    ) -> BaseException | None:
        """Notify one plugin; returns its failure, which is reported as in `ask`."""
        try:
            pending = implementation.call(arguments)
            if hasattr(pending, "__await__"):
                await (pending if spec.seconds is None else self._waits.within(spec.seconds, pending))
        except ANY_ERROR as error:  # boundary: another author's code
            self._failed(implementation, spec, error)
            return error
        return None

    def _answer(self, implementation: Implementation, spec: AnySpec, arguments: dict[str, Any]) -> Any:
        try:
            answer = implementation.call(arguments)
            if answer is not None:
                self._checks.check(spec, answer)
        except PlatformError:
            raise
        except ANY_ERROR as error:  # boundary: another author's code
            self._failed(implementation, spec, error)
            raise
        return answer

    def _failed(self, implementation: Implementation, spec: AnySpec, error: BaseException) -> Failure:
        """Report the failure, unless the machine is at fault or another plugin that this one asked."""
        failure = Failure(implementation.plugin, spec.name, error, _is_the_machines(error))
        if failure.is_machines:
            log.warning("plugin %s: %s raised %s", failure.plugin, failure.hook, type(error).__name__)
            return failure
        first = failure_behind(error) or failure
        if first.plugin == failure.plugin:
            error.__dict__[_FAILURE] = failure
            self._on_failure(failure.plugin, failure.hook, error)
        return failure

    def _declared(self, spec: AnySpec, arguments: dict[str, Any]) -> list[tuple[str, Any]]:
        """(plugin, declared) pairs in the loading order."""
        pairs = []
        for implementation in reversed(self.implementations(spec)):
            ask = partial(self._declaration, implementation, spec, arguments)
            try:
                declared = run_bounded(ask, self._seconds)
            except ANY_ERROR as error:  # boundary: another author's code
                self._on_declaration_failure(implementation.plugin, spec.name, error)
                continue
            if declared is not None:
                pairs.append((implementation.plugin, declared))
        return pairs

    def _declaration(self, implementation: Implementation, spec: AnySpec, arguments: dict[str, Any]) -> Any:
        declared = implementation.call(arguments)
        if isinstance(declared, Iterator):  # a generator runs only when it is read
            declared = list(declared)
        if declared is not None:
            self._checks.check(spec, declared)
        return declared

    def _compile(self, spec: AnySpec) -> list[Implementation]:
        caller = getattr(self._manager.hook, spec.name, None)
        hookimpls = [] if caller is None else reversed(caller.get_hookimpls())
        return [
            Implementation(impl.plugin_name, impl.function, (*impl.argnames, *impl.kwargnames))
            for impl in hookimpls
            if impl.plugin_name not in self._silent
        ]


def failure_behind(error: BaseException) -> Failure | None:
    """The failure of the plugin whose hook raised this error; None if no plugin is to blame."""
    return error.__dict__.get(_FAILURE)


def _is_the_machines(error: BaseException) -> bool:
    """Whether the database or the machine is at fault. Then the plugin must not be skipped: it may be the one
    that knows a valid credential. A plugin's own connections don't count.
    """
    return is_database_outage(error) or is_machine_fault(error)


def _named(spec: AnySpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """All arguments by their names in the specification."""
    return {**dict(zip(spec.argument_names, args, strict=False)), **kwargs} if args else kwargs
