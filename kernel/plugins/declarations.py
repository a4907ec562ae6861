"""A plugin's declarations at start: each hook gets a time limit and a type check."""

from __future__ import annotations

from typing import TypeVar

from kernel.errors import ANY_ERROR
from kernel.hooks.types import Declaration
from kernel.plugins.declaration_checks import Misdeclared, checked
from kernel.plugins.resource_keys import ResourceKey
from kernel.plugins.states import PluginStates
from kernel.process.bounded import run_bounded

R = TypeVar("R")


class Undeclared(Exception):
    """A `register_*` hook raised, hung or returned the wrong type; the text says which."""


class Declarations:
    """Asks the plugins in service; one that hangs, raises or returns the wrong type is taken out."""

    def __init__(self, states: PluginStates, seconds: float) -> None:
        self._states = states
        self._seconds = seconds

    def of(self, spec: Declaration[[], R]) -> list[tuple[str, R]]:
        """(plugin, declaration) of a `register_*` hook, in loading order."""
        found: list[tuple[str, R]] = []
        for record in self._states.loaded():
            try:
                declared = ask(record.instance, spec, self._seconds)
            except Undeclared as error:
                self._states.fail(record.name, str(error), error)
            else:
                found += [] if declared is None else [(record.name, declared)]
        return [item for item in found if self._states.is_loaded(item[0])]


DECLARATIONS: ResourceKey[Declarations] = ResourceKey("declarations")


def ask(instance: object, spec: Declaration[[], R], seconds: float) -> R | None:
    """What `instance` declares through a hook; None if it declares nothing. Raises Undeclared."""
    implementation = getattr(instance, spec.name, None)
    if implementation is None:
        return None
    try:
        # Exhausted in the bounded thread: a generator runs only when it is read.
        return run_bounded(lambda: checked(spec.name, implementation()), seconds)  # type: ignore[no-any-return]
    except TimeoutError:
        raise Undeclared(f"{spec.name} did not return within {seconds:g} s") from None
    except Misdeclared as error:
        raise Undeclared(f"{spec.name} {error}") from None
    except ANY_ERROR as error:
        raise Undeclared(f"{spec.name} raised {type(error).__name__}: {error}") from error
