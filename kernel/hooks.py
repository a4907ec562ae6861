"""Calling hooks: ask and wait, ask at once, notify. The specification says what happens if a plugin fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, TypeVar, overload

import pluggy

from kernel.bounded import run_bounded
from kernel.db.outages import is_database_outage
from kernel.errors import ANY_ERROR, PlatformError
from kernel.hook_answers import AnswerChecks
from kernel.hook_types import (
    AllAnswers,
    AllAnswersNow,
    Declaration,
    Failure,
    FirstAnswer,
    FirstAnswerNow,
    HookSpec,
    Notification,
)
from kernel.hook_waits import Waits
from kernel.machine_faults import is_machine_fault

log = logging.getLogger("platform.hooks")

P = ParamSpec("P")
R = TypeVar("R")

OnFailure = Callable[[str, str, BaseException], None]
AnySpec = HookSpec[..., Any]

_FAILURE = "platform_failure"


@dataclass(frozen=True, slots=True)
class Implementation:
    """One plugin's implementation of a hook, and those of the hook's arguments that it takes."""

    plugin: str
    function: Callable[..., Any]
    accepted: tuple[str, ...]

    def call(self, arguments: dict[str, Any]) -> Any:
        """The implementation's answer, or an awaitable of it."""
        if len(self.accepted) == len(arguments):
            return self.function(**arguments)
        return self.function(**{name: arguments[name] for name in self.accepted})


class Hooks:
    """The hooks of one platform. `on_failure(plugin, hook, error)` is called when an implementation fails; in
    its place, `on_declaration_failure` when a declaration does, or takes longer than `seconds`.
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
        """Forget compiled call lists; called whenever the set of plugins changed."""
        self._compiled = {}  # a new one: a unit in another thread may just be filling the old

    def silence(self, plugins: frozenset[str]) -> None:
        """Call exactly these plugins no longer, until the next time."""
        self._silent = plugins
        self.freeze()

    def implementations(self, spec: AnySpec) -> Sequence[Implementation]:
        """Who implements a hook, in the order in which they are asked: the reverse of the loading order."""
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
                if hasattr(answer, "__await__"):  # what `inspect` would say, at a fifth of its price
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
        """Like `ask`, for hooks of plain functions. Declarations come as (plugin, what it declares)."""
        arguments = _named(spec, args, kwargs)
        if isinstance(spec, Declaration):
            return self._declared(spec, arguments)
        answers = (self._answer(impl, spec, arguments) for impl in self.implementations(spec))
        heard = (answer for answer in answers if answer is not None)
        return next(heard, None) if isinstance(spec, FirstAnswerNow) else list(heard)

    async def tell(self, spec: Notification[P], /, *args: P.args, **kwargs: P.kwargs) -> list[BaseException]:
        """Notify every plugin; failures are reported as those of `ask` are, and returned, and stop nobody."""
        arguments = _named(spec, args, kwargs)
        errors: list[BaseException] = []
        for implementation in self.implementations(spec):
            try:
                pending = implementation.call(arguments)
                if hasattr(pending, "__await__"):
                    await (pending if spec.seconds is None else self._waits.within(spec.seconds, pending))
            except ANY_ERROR as error:  # boundary: another author's code
                self._failed(implementation, spec, error)
                errors.append(error)
        return errors

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
        """Report it, unless the machine is at fault, or another plugin that was asked on the way."""
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
        """In the loading order."""
        found = []
        for implementation in reversed(self.implementations(spec)):
            ask = partial(self._declaration, implementation, spec, arguments)
            try:
                declared = run_bounded(ask, self._seconds)
            except ANY_ERROR as error:  # boundary: another author's code
                self._on_declaration_failure(implementation.plugin, spec.name, error)
                continue
            if declared is not None:
                found.append((implementation.plugin, declared))
        return found

    def _declaration(self, implementation: Implementation, spec: AnySpec, arguments: dict[str, Any]) -> Any:
        declared = implementation.call(arguments)
        if isinstance(declared, Iterator):  # a generator runs only when it is read
            declared = list(declared)
        if declared is not None:
            self._checks.check(spec, declared)
        return declared

    def _compile(self, spec: AnySpec) -> list[Implementation]:
        caller = getattr(self._manager.hook, spec.name, None)
        found = [] if caller is None else reversed(caller.get_hookimpls())
        return [
            Implementation(impl.plugin_name, impl.function, tuple(impl.argnames))
            for impl in found
            if impl.plugin_name not in self._silent
        ]


def failure_behind(error: BaseException) -> Failure | None:
    """Which plugin's hook raised an error that its caller let through; None where no plugin is to blame."""
    return error.__dict__.get(_FAILURE)


def _is_the_machines(error: BaseException) -> bool:
    """Whether a store or the machine is at fault: then the one that knows the answer must not be skipped,
    as if a valid credential were a bad one. A connection of the plugin's own is its own affair.
    """
    return is_database_outage(error) or is_machine_fault(error)


def _named(spec: AnySpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """All arguments by their names in the specification."""
    return {**dict(zip(spec.argument_names, args, strict=False)), **kwargs} if args else kwargs
