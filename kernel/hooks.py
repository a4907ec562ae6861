"""Calling hooks: collect declarations, ask questions, report events; one plugin's error stops no other."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import pluggy

from kernel.errors import FAULTS, PlatformError

log = logging.getLogger("platform.hooks")

OnFailure = Callable[[str, str, BaseException], None]


class Hooks:
    """The hooks of one platform. `on_failure(plugin, hook, error)` hears of implementations that raise."""

    def __init__(self, manager: pluggy.PluginManager, on_failure: OnFailure) -> None:
        self._manager = manager
        self._on_failure = on_failure
        self._compiled: dict[str, list[tuple[str, Callable[..., Any], tuple[str, ...]]]] = {}
        self._silent: frozenset[str] = frozenset()

    def exists(self, name: str) -> bool:
        """Whether a loaded plugin implements the hook `name`."""
        return bool(self._implementations(name))

    def count(self, name: str) -> int:
        """How many loaded plugins implement the hook `name`."""
        return len(self._implementations(name))

    def freeze(self) -> None:
        """Forget compiled call lists; called whenever the set of plugins changed."""
        self._compiled.clear()

    def silence(self, plugins: frozenset[str]) -> None:
        """Call exactly these plugins no more, until the next time."""
        self._silent = plugins
        self.freeze()

    def declarations(self, name: str, **arguments: Any) -> list[tuple[str, Any]]:
        """(plugin, declaration) of a `register_*` hook, in loading order; one that raises is reported."""
        found = []
        for plugin, function, accepted in reversed(self._implementations(name)):
            try:
                result = function(**{key: arguments[key] for key in accepted})
            except FAULTS as error:  # boundary: a stranger's code
                self._on_failure(plugin, name, error)
                continue
            if result is not None:
                found.append((plugin, result))
        return found

    def calls(self, name: str, **arguments: Any) -> list[tuple[str, Callable[[], Any]]]:
        """(plugin, call) of every implementation, in loading order, for a caller that guards each."""
        return [
            (plugin, partial(function, **{key: arguments[key] for key in accepted}))
            for plugin, function, accepted in reversed(self._implementations(name))
        ]

    async def first_sound(self, name: str, **arguments: Any) -> Any:
        """Like `first`, but whoever fails is reported and passed over. A PlatformError is an answer."""
        for plugin, function, accepted in self._implementations(name):
            result = await self._ask_guarded(name, plugin, function, accepted, arguments, None)
            if result is not None:
                return result
        return None

    async def ask_each(self, name: str, instead: Any, **arguments: Any) -> list[Any]:
        """All answers that are not None; `instead` of one that fails, which is reported.

        A PlatformError is an answer, and passes through.
        """
        answers = [
            await self._ask_guarded(name, plugin, function, accepted, arguments, instead)
            for plugin, function, accepted in self._implementations(name)
        ]
        return [answer for answer in answers if answer is not None]

    async def first(self, name: str, **arguments: Any) -> Any:
        """The first answer that is not None of a `firstresult` hook. Errors pass through to the caller."""
        for _, function, accepted in self._implementations(name):
            result = await _ask(function, accepted, arguments)
            if result is not None:
                return result
        return None

    def first_now(self, name: str, **arguments: Any) -> Any:
        """The first answer that is not None of a `firstresult` hook whose answers need no awaiting."""
        for _, function, accepted in self._implementations(name):
            result = function(**{key: arguments[key] for key in accepted})
            if result is not None:
                return result
        return None

    async def ask_all(self, name: str, **arguments: Any) -> list[Any]:
        """All answers that are not None. Errors pass through: what all must answer is essential."""
        answers = [
            await _ask(function, accepted, arguments) for _, function, accepted in self._implementations(name)
        ]
        return [answer for answer in answers if answer is not None]

    async def tell(self, name: str, **arguments: Any) -> list[BaseException]:
        """Report an `on_*` event to every plugin; errors are reported, returned, and stop nobody."""
        errors: list[BaseException] = []
        for plugin, function, accepted in self._implementations(name):
            try:
                await _ask(function, accepted, arguments)
            except FAULTS as error:  # boundary: a stranger's code
                self._on_failure(plugin, name, error)
                errors.append(error)
        return errors

    async def _ask_guarded(
        self,
        name: str,
        plugin: str,
        function: Callable[..., Any],
        accepted: tuple[str, ...],
        arguments: dict[str, Any],
        instead: Any,
    ) -> Any:
        """One plugin's answer, or `instead` when it fails in another way than by a PlatformError."""
        try:
            result = _call(function, accepted, arguments)
            return await result if _is_pending(result) else result
        except PlatformError:
            raise
        except FAULTS as error:  # boundary: a stranger's code
            self._on_failure(plugin, name, error)
            return instead

    def _implementations(self, name: str) -> list[tuple[str, Callable[..., Any], tuple[str, ...]]]:
        compiled = self._compiled.get(name)
        if compiled is None:
            caller = getattr(self._manager.hook, name, None)
            impls = [] if caller is None else list(reversed(caller.get_hookimpls()))
            heard = [impl for impl in impls if impl.plugin_name not in self._silent]
            compiled = [(impl.plugin_name, impl.function, tuple(impl.argnames)) for impl in heard]
            self._compiled[name] = compiled
        return compiled


async def _ask(function: Callable[..., Any], accepted: tuple[str, ...], arguments: dict[str, Any]) -> Any:
    result = _call(function, accepted, arguments)
    return await result if _is_pending(result) else result


def _call(function: Callable[..., Any], accepted: tuple[str, ...], arguments: dict[str, Any]) -> Any:
    """Call with those of the hook's arguments that the implementation names."""
    if len(accepted) == len(arguments):
        return function(**arguments)
    return function(**{key: arguments[key] for key in accepted})


def _is_pending(result: Any) -> bool:
    """Whether to await it. What `inspect` would say, at a fifth of the price: every request asks hooks."""
    return hasattr(result, "__await__")
