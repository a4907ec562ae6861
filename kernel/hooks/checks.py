"""Checks that a plugin's hooks exist and can be called, and that answers have the specified type."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partialmethod
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from kernel.hooks.manager import IMPL, HookManager, marked_names
from kernel.hooks.types import HookSpec
from kernel.plugins.places import Flaw

_NOT_METHODS = (property, cached_property, partialmethod)


def strange_argument(manager: HookManager, instance: Any) -> Flaw | None:
    """An argument that the plugin's hooks can't be given, as far as the hooks are known yet."""
    for name, method in _marked(instance):
        spec = manager.specs.get(name)
        strange = _unknown_parameters(spec, method) if spec is not None else []
        if spec is not None and strange:
            takes = ", ".join(spec.argument_names) or "nothing"
            meant = _closest(strange[0], spec.argument_names)
            reason = f"its hook '{name}' has no argument '{strange[0]}' (it may take: {takes}){meant}"
            return Flaw(reason, method)
    return None


def hook_mismatch(manager: HookManager, instance: Any) -> Flaw | None:
    """Why the registered plugin's hooks do not fit, and the remedy; None if they do."""
    for name, method in _marked(instance):
        reason = _unfit(manager, name, method)
        if reason is not None:
            return Flaw(reason, method)
    return _unmarked(manager, instance)


def _unfit(manager: HookManager, name: str, method: Any) -> str | None:
    options, spec = getattr(method, IMPL), manager.specs.get(name)
    if options["wrapper"] or options["hookwrapper"]:
        return f"its hook '{name}' is a wrapper, which is not supported; implement it as a plain method"
    if spec is None and options["optionalhook"]:
        return None
    if spec is None:
        return f"there is no hook '{name}'{_closest(name, manager.specs)}"
    if spec.plain and inspect.iscoroutinefunction(method):
        return f"its hook '{name}' must not be async: write 'def' instead of 'async def'"
    return None


def _unmarked(manager: HookManager, instance: Any) -> Flaw | None:
    """A method that looks like a hook but isn't marked as one, or not for pluggy to find, and so would
    silently never be called.
    """
    called = {hook.name for hook in manager.get_hookcallers(instance) or ()}
    for name in sorted(dir(type(instance))):
        looks_like_one = name in manager.specs or name.startswith("register_")
        static = inspect.getattr_static(instance, name)
        if name in manager.specs and isinstance(static, _NOT_METHODS):
            what = type(static).__name__
            reason = f"its {what} '{name}' is named like a hook; write a method with @hookimpl, or rename it"
            return Flaw(reason, getattr(static, "fget", None) or getattr(static, "func", None))
        if not looks_like_one or not (callable(static) or isinstance(static, classmethod)):
            continue
        method = getattr(instance, name)
        if options := getattr(method, IMPL, None):
            if (options["specname"] or name) in called:
                continue
            reason = f"its hook '{name}' can't be called through its other decorator; remove that one"
            return Flaw(reason, method)
        if name in manager.specs:
            reason = f"its method '{name}' is named like a hook but lacks @hookimpl; add it or rename it"
            return Flaw(reason, method)
        meant = _closest(name, manager.specs)
        return Flaw(f"its method '{name}' is named like a hook, but there is no such hook{meant}", method)
    return None


def _marked(instance: Any) -> Iterator[tuple[str, Any]]:
    for name in sorted(marked_names(instance)):
        method = getattr(instance, name, None)
        if inspect.isroutine(method) and isinstance(getattr(method, IMPL, None), dict):
            yield getattr(method, IMPL)["specname"] or name, method


def _unknown_parameters(spec: HookSpec[..., Any], method: Any) -> list[str]:
    return [name for name in inspect.signature(method).parameters if name not in spec.argument_names]


def _closest(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


class Misanswered(TypeError):
    """An answer of another type; the text continues after the hook's name."""


class AnswerChecks:
    """Remembers which types fit, so that checking a known type costs only a set lookup."""

    def __init__(self) -> None:
        self._fitting: set[tuple[HookSpec[..., Any], type, frozenset[type] | None]] = set()

    def check(self, spec: HookSpec[..., Any], answer: object) -> None:
        """Raise Misanswered if the answer is of another type, or contains something of another type."""
        items = frozenset(map(type, answer)) if isinstance(answer, list | tuple) else None
        kind = (spec, type(answer), items)
        if kind in self._fitting:
            return
        if spec.answer is not NoneType and not _fits(answer, spec.answer):
            annotation = str(inspect.signature(spec.function).return_annotation).removesuffix(" | None")
            raise Misanswered(f"returned {_described(answer, spec.answer)}; return {annotation} or None")
        self._fitting.add(kind)


def _fits(value: object, annotation: Any) -> bool:
    """Whether a value has a type; of what it contains, only the items of a list are checked."""
    kind, inner = get_origin(annotation) or annotation, get_args(annotation)
    if kind in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if kind is Any or kind is float or isinstance(kind, TypeVar):
        return True
    if kind is Sequence:
        items = value if isinstance(value, list | tuple) else ()
        is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
        return is_list and all(_fits(one, inner[0]) for one in items)
    try:
        return isinstance(value, kind)
    except TypeError:  # isinstance() refuses these: a TypedDict, a Literal, an unmarked Protocol
        return True


def _described(answer: object, annotation: Any) -> str:
    """What an answer is, with the first item that does not fit."""
    items = answer if isinstance(answer, list | tuple) else ()
    alternatives = [annotation, *get_args(annotation)]
    item = next((get_args(one)[0] for one in alternatives if get_origin(one) is Sequence), Any)
    strange = [one for one in items if not _fits(one, item)]
    return f"a list with {_kind(strange[0])}" if strange else _kind(answer)


def _kind(value: object) -> str:
    kind = type(value).__name__
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"
